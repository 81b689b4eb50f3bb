// CountingFilter under every policy against counters as wide as they need to be: adds and removes interleaved, merges,
// snapshots. A key that was added more often than removed must be found.
#include <algorithm>
#include <map>

#include "bloomline/counting_filter.h"
#include "tests/counting_util.h"
#include "tests/fuzz/fuzz_util.h"

namespace bloomline::fuzz {
namespace {

constexpr uint64_t kBlocks[] = {1, 2, 5, 16};

struct Shape {
  Layout layout = Layout::kCounting4;
  OverflowPolicy policy = OverflowPolicy::kSaturate;
  uint64_t blocks = 1;
  size_t target = 0;
  auto operator<=>(const Shape&) const = default;
};

CountingFilter& Kept(const Shape& shape, int which) {
  static std::map<std::pair<Shape, int>, CountingFilter> all;
  const auto key = std::pair(shape, which);
  auto found = all.find(key);
  if (found == all.end()) {
    MemoryPolicy memory;
    memory.pages = Pages::kDefault;
    Result<CountingFilter> made = CountingFilter::Create(FilterConfig::ForBits(shape.blocks * 512, 8, shape.layout)
                                                             .WithTarget(Targets()[shape.target])
                                                             .WithMemory(memory),
                                                         shape.policy);
    found = all.emplace(key, std::move(Must(made))).first;
  }
  found->second.Clear();
  return found->second;
}

struct Pair {
  Pair(const Shape& shape, int which) : filter(Kept(shape, which)), model(shape.layout, shape.policy, shape.blocks) {}
  void Check() const {
    Require(std::ranges::equal(filter.words(), model.Words()), "the counters are the model's");
    Require(filter.InsertedCount() == inserted, "InsertedCount");
  }
  CountingFilter& filter;
  test::CounterModel model;
  // Adds less removes. Under saturate a key whose counters are full can be removed for ever: 0 is the least.
  uint64_t inserted = 0;
  std::map<uint64_t, uint64_t> members;  // how often a hash was added, where removals kept to what was added
};

void Change(FuzzedDataProvider& input, Pair& pair, bool add) {
  const auto count = input.ConsumeIntegralInRange<size_t>(0, 150);
  const KeyArray<uint64_t> keys(input, count, size_t{1} << input.ConsumeIntegralInRange<size_t>(0, 7));
  std::vector<uint64_t> not_done(WordsFor(count));
  size_t refused = 0;
  const bool batch = input.ConsumeBool();
  if (batch)
    refused = add ? pair.filter.AddBatch(keys.keys(), not_done) : pair.filter.RemoveBatch(keys.keys(), not_done);
  size_t expected = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t hash = HashInteger(keys[i], 0);
    const bool done = add ? pair.model.Add(hash) : pair.model.Remove(hash);
    expected += !done;
    if (batch) {
      Require(BitOf(not_done, i) == !done, "the bitmap has what was refused or absent");
    } else {
      Require((add ? pair.filter.Add(keys[i]) : pair.filter.Remove(keys[i])) == done,
              "Add and Remove say what they did");
    }
    if (!done) continue;
    if (add) {
      ++pair.inserted;
    } else if (pair.inserted > 0) {
      --pair.inserted;
    }
    uint64_t& times = pair.members[hash];
    if (add) {
      ++times;
    } else if (times > 0) {
      --times;
    } else {
      pair.members.clear();  // a false positive was removed: others may be missing now, as documented
    }
  }
  Require(!batch || refused == expected, "the number of refused or absent keys");
  pair.Check();
  for (const auto& [hash, times] : pair.members) {
    if (times > 0) Require(pair.filter.MayContainHash(hash), "no false negative");
  }
}

void Count(FuzzedDataProvider& input, const CountingFilter& filter, const Pair& pair) {
  const auto count = input.ConsumeIntegralInRange<size_t>(0, 150);
  const KeyArray<uint64_t> keys(input, count, 128);
  std::vector<uint32_t> counts(count);
  std::vector<uint64_t> bitmap(WordsFor(count));
  filter.CountBatch(keys.keys(), counts);
  filter.MayContainBatch(keys.keys(), bitmap);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t expected = pair.model.Count(HashInteger(keys[i], 0));
    Require(counts[i] == std::min<uint64_t>(expected, ~uint32_t{0}), "CountBatch counts as the model");
    Require(filter.Count(keys[i]) == expected, "Count counts as the model");
    Require(BitOf(bitmap, i) == (expected != 0), "MayContainBatch answers as the model");
  }
}

void SaveAndLoad(FuzzedDataProvider& input, const Pair& pair) {
  std::vector<std::byte> bytes(pair.filter.SerializedBytes());
  Result<size_t> written = pair.filter.TrySerializeTo(bytes);
  Require(Must(written) == bytes.size(), "SerializeTo fills SerializedBytes");
  Result<CountingFilter> loaded = CountingFilter::TryDeserialize(bytes);
  Require(std::ranges::equal(Must(loaded).words(), pair.filter.words()), "Deserialize gives the words back");
  Count(input, *loaded, pair);
}

}  // namespace
}  // namespace bloomline::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bloomline;
  using namespace bloomline::fuzz;
  FuzzedDataProvider input(data, size);
  Shape shape;
  shape.layout = input.ConsumeBool() ? Layout::kCounting4 : Layout::kCounting8;
  shape.policy = test::kPolicies[input.ConsumeIntegralInRange<size_t>(0, 2)];
  shape.blocks = input.PickValueInArray(kBlocks);
  shape.target = input.ConsumeIntegralInRange<size_t>(0, Targets().size() - 1);
  Pair first(shape, 0);
  Pair second(shape, 1);
  for (int step = 0; step < 12 && input.remaining_bytes() > 0; ++step) {
    Pair& one = input.ConsumeBool() ? first : second;
    Pair& other = &one == &first ? second : first;
    switch (input.ConsumeIntegralInRange<int>(0, 6)) {
      case 0:
      case 1:
        Change(input, one, true);
        break;
      case 2:
      case 3:
        Change(input, one, false);
        break;
      case 4:
        Count(input, one.filter, one);
        break;
      case 5:
        SaveAndLoad(input, one);
        break;
      default: {
        // What both held is found in the merged filter, or the merge was refused and nothing changed.
        const std::vector<uint64_t> before = test::WordsOf(one.filter);
        if (one.filter.TryMerge(other.filter).ok()) {
          for (const Pair* pair : {&one, &other}) {
            for (const auto& [hash, times] : pair->members) {
              if (times > 0) Require(one.filter.MayContainHash(hash), "no false negative after a merge");
            }
          }
          one.filter.Clear();
          one.model = test::CounterModel(shape.layout, shape.policy, shape.blocks);
          one.members.clear();
          one.inserted = 0;
        } else {
          Require(std::ranges::equal(one.filter.words(), before), "a refused merge changes nothing");
        }
        one.Check();
      }
    }
  }
  return 0;
}
