// Filter's batches, merges and snapshots against the scalar oracle of kernels/layout.h, on every target of this
// machine.
#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/layout.h"
#include "tests/fuzz/fuzz_util.h"
#include "tests/test_util.h"

namespace bloomline::fuzz {
namespace {

constexpr uint64_t kBlocks[] = {1, 2, 3, 5, 8, 13, 64};
constexpr uint64_t kSeeds[] = {0, 1, ~uint64_t{0}};

struct Shape {
  Layout layout = Layout::kSplit512;
  int k = 8;
  uint64_t blocks = 1;
  uint64_t seed = 0;
  size_t target = 0;
  auto operator<=>(const Shape&) const = default;
};

Shape ConsumeShape(FuzzedDataProvider& input) {
  Shape shape;
  shape.layout = input.PickValueInArray(test::kLayouts);
  const std::vector<int> ks = test::HashCounts(shape.layout);
  shape.k = ks[input.ConsumeIntegralInRange<size_t>(0, ks.size() - 1)];
  shape.blocks = input.PickValueInArray(kBlocks);
  shape.seed = input.PickValueInArray(kSeeds);
  shape.target = input.ConsumeIntegralInRange<size_t>(0, Targets().size() - 1);
  return shape;
}

// Two filters of each shape are kept, for making one costs more than all that is done with it here.
Filter& Kept(const Shape& shape, int which) {
  static std::map<std::pair<Shape, int>, Filter> all;
  const auto key = std::pair(shape, which);
  auto found = all.find(key);
  if (found == all.end()) {
    const uint64_t bits = shape.blocks * static_cast<uint64_t>(BlockBits(shape.layout));
    MemoryPolicy memory;
    memory.pages = Pages::kDefault;
    Result<Filter> made = Filter::Create(FilterConfig::ForBits(bits, shape.k, shape.layout)
                                             .WithSeed(shape.seed)
                                             .WithTarget(Targets()[shape.target])
                                             .WithMemory(memory));
    found = all.emplace(key, std::move(Must(made))).first;
  }
  found->second.Clear();
  return found->second;
}

// A filter and what must be in it.
class Pair {
 public:
  Pair(const Shape& shape, int which)
      : shape_(shape),
        filter_(Kept(shape, which)),
        words_(static_cast<size_t>(shape.blocks) * kernels::WordsPerBlock(shape.layout)) {}

  Filter& filter() { return filter_; }
  std::vector<uint64_t>& words() { return words_; }
  bool Mark(uint64_t hash) {
    ++inserted_;
    return kernels::MarkKey(shape_.layout, shape_.k, words_.data(), shape_.blocks, hash);
  }
  bool Test(uint64_t hash) const {
    return kernels::TestKey(shape_.layout, shape_.k, words_.data(), shape_.blocks, hash);
  }
  void Clear() {
    filter_.Clear();
    std::ranges::fill(words_, 0);
    inserted_ = 0;
  }
  void Check(bool count = true) const {
    Require(std::ranges::equal(filter_.words(), words_), "the filter's words are the model's");
    Require(!count || filter_.InsertedCount() == inserted_, "InsertedCount");
  }
  uint64_t seed() const { return shape_.seed; }

 private:
  Shape shape_;
  Filter& filter_;
  std::vector<uint64_t> words_;
  uint64_t inserted_ = 0;
};

enum class Form { kU64, kU32, kStrings, kHashes, kCount };

uint64_t HashOf(uint64_t key, uint64_t seed) { return HashInteger(key, seed); }
uint64_t HashOf(std::string_view key, uint64_t seed) { return HashBytes(key, seed); }

// Calls body(keys, hash of key i, name of the batch functions' argument) for keys of some form.
template <class Body>
void WithKeys(FuzzedDataProvider& input, uint64_t seed, const Body& body) {
  const auto form = static_cast<Form>(input.ConsumeIntegralInRange<int>(0, static_cast<int>(Form::kCount) - 1));
  const auto count = input.ConsumeIntegralInRange<size_t>(0, 200);
  const auto values = size_t{1} << input.ConsumeIntegralInRange<size_t>(0, 8);
  if (form == Form::kStrings) {
    const StringArray keys(input, count);
    body(
        keys, [&](size_t i) { return HashOf(keys[i], seed); }, std::false_type());
  } else if (form == Form::kU32) {
    const KeyArray<uint32_t> keys(input, count, values);
    body(
        keys, [&](size_t i) { return HashOf(uint64_t{keys[i]}, seed); }, std::false_type());
  } else {
    const KeyArray<uint64_t> keys(input, count, values);
    if (form == Form::kHashes) {
      body(
          keys, [&](size_t i) { return keys[i]; }, std::true_type());
    } else {
      body(
          keys, [&](size_t i) { return HashOf(keys[i], seed); }, std::false_type());
    }
  }
}

void LookUp(FuzzedDataProvider& input, const FilterReader& reader, const Pair& model) {
  WithKeys(input, model.seed(), [&](const auto& keys, const auto& hash, auto hashed) {
    std::vector<uint64_t> bitmap(WordsFor(keys.size()), ~uint64_t{0});
    std::vector<uint32_t> positions(keys.size());
    size_t selected = 0;
    if constexpr (hashed.value) {
      reader.MayContainHashBatch(keys.keys(), bitmap);
      selected = reader.SelectHashBatch(keys.keys(), positions);
    } else {
      reader.MayContainBatch(keys.keys(), bitmap);
      selected = reader.SelectBatch(keys.keys(), positions);
    }
    size_t next = 0;
    for (size_t i = 0; i < bitmap.size() * 64; ++i) {
      const bool expected = i < keys.size() && model.Test(hash(i));
      Require(BitOf(bitmap, i) == expected, "MayContainBatch answers as the model");
      if (i < keys.size()) Require(reader.MayContainHash(hash(i)) == expected, "MayContainHash answers as the model");
      if (expected) Require(next < selected && positions[next++] == i, "SelectBatch has the positions");
    }
    Require(next == selected, "SelectBatch has no more positions");
  });
}

void Insert(FuzzedDataProvider& input, Pair& model) {
  const auto way = input.ConsumeIntegralInRange<int>(0, 3);
  WithKeys(input, model.seed(), [&](const auto& keys, const auto& hash, auto hashed) {
    using Keys = std::decay_t<decltype(keys)>;
    std::vector<uint64_t> changed(WordsFor(keys.size()), ~uint64_t{0});
    Filter& filter = model.filter();
    if (way == 0) {  // one by one
      for (size_t i = 0; i < keys.size(); ++i) filter.InsertHash(hash(i));
    } else if (way == 1) {
      if constexpr (hashed.value) {
        filter.TryInsertHashBatch(keys.keys(), changed);
      } else {
        filter.TryInsertBatch(keys.keys(), changed);
      }
    } else if (way == 2) {
      if constexpr (hashed.value) {
        filter.InsertHashBatch(keys.keys());
      } else {
        filter.InsertBatch(keys.keys());
      }
    } else {
      if constexpr (std::is_same_v<Keys, KeyArray<uint64_t>> && !hashed.value) {
        const Status inserted = filter.TryInsertBulk(keys.keys());
        Require(inserted.ok(), "TryInsertBulk");
      } else {
        for (size_t i = 0; i < keys.size(); ++i) filter.TryInsertHash(hash(i));
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool is_new = model.Mark(hash(i));
      if (way == 1) Require(BitOf(changed, i) == is_new, "TryInsertBatch says what changed");
    }
  });
  model.Check();
}

void SaveAndLoad(FuzzedDataProvider& input, Pair& model) {
  const Filter& filter = model.filter();
  std::vector<std::byte> memory(filter.SerializedBytes() + 64);
  void* start = memory.data();
  size_t space = memory.size();
  std::align(64, filter.SerializedBytes(), start, space);
  const std::span<std::byte> bytes(static_cast<std::byte*>(start), filter.SerializedBytes());
  Result<size_t> written = filter.TrySerializeTo(bytes);
  Require(Must(written) == bytes.size(), "SerializeTo fills SerializedBytes");
  if (input.ConsumeBool()) {
    Result<Filter> loaded = Filter::TryDeserialize(bytes);
    Require(std::ranges::equal(Must(loaded).words(), model.words()), "Deserialize gives the words back");
    Require(loaded->InsertedCount() == filter.InsertedCount(), "Deserialize gives the count back");
    LookUp(input, *loaded, model);
  } else {
    Result<FilterView> view = FilterView::TryWrap(bytes);
    LookUp(input, Must(view), model);
  }
}

}  // namespace
}  // namespace bloomline::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bloomline;
  using namespace bloomline::fuzz;
  FuzzedDataProvider input(data, size);
  const Shape shape = ConsumeShape(input);
  Pair first(shape, 0);
  Pair second(shape, 1);
  for (int step = 0; step < 16 && input.remaining_bytes() > 0; ++step) {
    Pair& one = input.ConsumeBool() ? first : second;
    Pair& other = &one == &first ? second : first;
    switch (input.ConsumeIntegralInRange<int>(0, 6)) {
      case 0:
      case 1:
        Insert(input, one);
        break;
      case 2:
        LookUp(input, one.filter(), one);
        break;
      case 3: {
        Require(one.filter().TryMerge(other.filter()).ok(), "Merge of the same shape");
        for (size_t i = 0; i < one.words().size(); ++i) one.words()[i] |= other.words()[i];
        one.Check(false);
        one.Clear();  // counts after a merge are estimates
        break;
      }
      case 4: {
        Require(one.filter().TryIntersect(other.filter()).ok(), "Intersect of the same shape");
        for (size_t i = 0; i < one.words().size(); ++i) one.words()[i] &= other.words()[i];
        one.Check(false);
        one.Clear();
        break;
      }
      case 5:
        SaveAndLoad(input, one);
        break;
      default:
        one.Clear();
        one.Check();
    }
  }
  first.Check();
  second.Check();
  return 0;
}
