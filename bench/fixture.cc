#include "bench/fixture.h"

#include <algorithm>
#include <bit>
#include <fstream>

#include "kernels/counting_layout.h"
#include "kernels/layout.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomline::bench {
namespace {

constexpr size_t kFillChunk = size_t{1} << 16;
constexpr size_t kFprProbes = size_t{1} << 20;

uint64_t Checksum(const FilterReader& filter) {
  return XXH3_64bits(filter.words().data(), filter.words().size() * sizeof(uint64_t));
}

// A chunk of strings as the library takes them.
struct StringChunk {
  std::vector<char> bytes = std::vector<char>(kFillChunk * kMaxStringBytes);
  std::vector<std::string_view> keys;
  std::span<const std::string_view> Make(uint64_t first, size_t count) {
    keys.clear();
    for (size_t i = 0; i < count; ++i) {
      char* out = bytes.data() + i * kMaxStringBytes;
      keys.emplace_back(out, WriteStringKey(first + i, out));
    }
    return keys;
  }
};

struct IntegerChunk {
  std::vector<uint64_t> keys;
  std::span<const uint64_t> Make(uint64_t first, size_t count) {
    keys.resize(count);
    for (size_t i = 0; i < count; ++i) keys[i] = KeyAt(first + i);
    return keys;
  }
};

// Calls body(keys) for the keys first … first + count − 1, in chunks.
template <class Chunk, class Body>
void ForKeys(uint64_t first, uint64_t count, const Body& body) {
  Chunk chunk;
  for (uint64_t done = 0; done < count; done += kFillChunk) {
    body(chunk.Make(first + done, static_cast<size_t>(std::min<uint64_t>(kFillChunk, count - done))));
  }
}

template <class Chunk>
double MeasureFpr(const FilterReader& filter) {
  std::vector<uint64_t> bitmap(kFillChunk / 64);
  uint64_t hits = 0;
  // Other absent keys than the probe sets use.
  ForKeys<Chunk>(kFirstAbsent << 1, kFprProbes, [&](auto keys) {
    filter.MayContainBatch(keys, bitmap);
    for (size_t w = 0; w < (keys.size() + 63) / 64; ++w) hits += static_cast<uint64_t>(std::popcount(bitmap[w]));
  });
  return static_cast<double>(hits) / static_cast<double>(kFprProbes);
}

std::mutex g_mutex;
std::map<FilterShape, std::shared_ptr<Fixture>> g_fixtures;  // guarded by g_mutex

}  // namespace

void Fixture::Fill() {
  if (IsCounting(shape_.layout)) {
    ForKeys<IntegerChunk>(0, shape_.keys(), [&](auto keys) { counting_.AddBatch(keys); });
  } else if (shape_.strings) {
    ForKeys<StringChunk>(0, shape_.keys(), [&](auto keys) { filter_.InsertBatch(keys); });
  } else {
    ForKeys<IntegerChunk>(0, shape_.keys(), [&](auto keys) { filter_.InsertBatch(keys); });
  }
}

Result<std::shared_ptr<Fixture>> Fixture::Create(const FilterShape& shape) {
  Result<FilterConfig> config = FilterConfig::TryForBits(shape.bytes * 8, shape.k, shape.layout);
  if (!config.ok()) return config.error();
  MemoryPolicy memory;
  memory.pages = shape.pages;
  const FilterConfig full = config.value().WithTarget(shape.target).WithMemory(memory);
  // Of the two that a fixture can hold, the other one is as small as can be.
  const bool counts = IsCounting(shape.layout);
  Result<Filter> filter = Filter::Create(counts ? FilterConfig::ForBits(1) : full);
  if (!filter.ok()) return filter.error();
  Result<CountingFilter> counting =
      CountingFilter::Create(counts ? full : FilterConfig::ForBits(1, 8, Layout::kCounting4));
  if (!counting.ok()) return counting.error();
  std::shared_ptr<Fixture> fixture(new Fixture(shape, std::move(filter).value(), std::move(counting).value()));
  fixture->Fill();
  const FilterReader& reader = fixture->reader();
  fixture->checksum_ = Checksum(reader);
  fixture->granted_ = reader.memory().granted;
  if (shape.pages == Pages::kDefault && reader.memory().huge_page_bytes != 0) {
    return Error(ErrorCode::kUnsupported, "the kernel gave huge pages unasked: " + fixture->granted_);
  }
  fixture->fpr_ = shape.strings ? MeasureFpr<StringChunk>(reader) : MeasureFpr<IntegerChunk>(reader);
  const double predicted = reader.PredictedFpr(shape.keys());
  if (!(fixture->fpr_ >= predicted / 2 && fixture->fpr_ <= predicted * 2)) {
    return Error(ErrorCode::kCorrupt, "wrong answers: FPR " + std::to_string(fixture->fpr_) + ", the model says " +
                                          std::to_string(predicted));
  }
  return fixture;
}

detail::BlockBits Fixture::bits() {
  detail::BlockBits bits;
  bits.words = const_cast<uint64_t*>(reader().words().data());  // this filter's own, writable memory
  bits.blocks = reader().blocks();
  bits.seed = reader().seed();
  return bits;
}

Result<std::shared_ptr<const std::vector<uint64_t>>> Fixture::Answers(const ProbeShape& shape) {
  const std::shared_ptr<const ProbeSet> probes = GetProbeSet(shape);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const std::vector<uint64_t>>& cached = answers_[shape];
  if (cached != nullptr) return cached;
  const bool counts = IsCounting(shape_.layout);
  const kernels::Spec spec = kernels::Describe(counts ? Layout::kSplit512 : shape_.layout, shape_.k);
  const uint64_t* words = reader().words().data();
  std::vector<uint64_t> bitmap(probes->member_bitmap.size());
  for (size_t i = 0; i < probes->size(); ++i) {
    const uint64_t hash =
        shape.strings ? HashBytes(probes->strings[i], reader().seed()) : HashInteger(probes->keys[i], reader().seed());
    const uint64_t* block = words + kernels::BlockOf(spec.layout, hash, reader().blocks()) * spec.words_per_block();
    if (counts) {
      const int counter_bits = kernels::CounterBits(shape_.layout);
      const uint64_t count = kernels::SmallestCounter(counter_bits, block, kernels::CounterGOf(hash));
      bitmap[i / 64] |= uint64_t{count != 0} << (i % 64);
      continue;
    }
    const kernels::LineMask mask = kernels::MaskOf(spec, hash);
    uint64_t missing = 0;
    for (size_t w = 0; w < spec.words_per_block(); ++w) missing |= mask.words[w] & ~block[w];
    bitmap[i / 64] |= uint64_t{missing == 0} << (i % 64);
  }
  for (size_t w = 0; w < bitmap.size(); ++w) {
    if ((probes->member_bitmap[w] & ~bitmap[w]) != 0) {
      return Error(ErrorCode::kCorrupt, "wrong answers: an inserted key is missing");
    }
  }
  cached = std::make_shared<const std::vector<uint64_t>>(std::move(bitmap));
  return cached;
}

bool Fixture::Unchanged() const { return Checksum(reader()) == checksum_; }

Result<std::shared_ptr<Fixture>> GetFixture(const FilterShape& shape) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (const auto found = g_fixtures.find(shape); found != g_fixtures.end()) return found->second;
  // Interleaved repetitions of several large filters would fill each of them again and again.
  if (shape.bytes > kSmallFilterBytes && AvailableMemory() < shape.bytes * 8) {
    std::erase_if(g_fixtures, [](const auto& entry) { return entry.first.bytes > kSmallFilterBytes; });
  }
  Result<std::shared_ptr<Fixture>> made = Fixture::Create(shape);
  if (made.ok()) g_fixtures.emplace(shape, made.value());
  return made;
}

void DropFixture(const FilterShape& shape) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_fixtures.erase(shape);
}

uint64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kib = 0;
  std::string unit;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

}  // namespace bloomline::bench
