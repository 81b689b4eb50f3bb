#include "bench/baselines.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>

#include "bench/cases.h"
#include "bench/keys.h"
#include "bench/run.h"
#include "bench/split_block_plain.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef BLOOMLINE_BENCH_LIBBLOOM
extern "C" {
#include <bloom.h>
}
#endif
#ifdef BLOOMLINE_BENCH_LEVELDB
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#endif

namespace bloomline::bench {
namespace {

using benchmark::State;

constexpr uint64_t kSizes[] = {uint64_t{32} << 10, uint64_t{1} << 20, uint64_t{16} << 20};
constexpr uint64_t kLargeSize = uint64_t{512} << 20;
constexpr size_t kFprProbes = size_t{1} << 20;

// ---- What each can do: a filter of `bytes` for `keys` keys, 10 bits each; Insert; CountMayContain over many keys.

class UnorderedSet {
 public:
  static constexpr const char* kName = "unordered_set";
  static constexpr bool kInserts = true;
  static constexpr bool kExact = true;
  static constexpr uint64_t kLargest = uint64_t{16} << 20;
  UnorderedSet(uint64_t, uint64_t keys) { set_.reserve(keys); }
  void Insert(std::span<const uint64_t> keys) {
    for (const uint64_t key : keys) set_.insert(key);
  }
  size_t CountMayContain(std::span<const uint64_t> keys) const {
    size_t found = 0;
    for (const uint64_t key : keys) found += set_.contains(key);
    return found;
  }
  // A node of a pointer and the key, as the heap rounds it up, and the table.
  uint64_t memory_bytes() const { return set_.size() * 32 + set_.bucket_count() * sizeof(void*); }

 private:
  std::unordered_set<uint64_t> set_;
};

class ClassicPlain {
 public:
  static constexpr const char* kName = "classic_plain";
  static constexpr bool kInserts = true;
  static constexpr bool kExact = false;
  static constexpr uint64_t kLargest = kLargeSize;
  static constexpr int kHashes = 7;
  ClassicPlain(uint64_t bytes, uint64_t) : bits_(bytes * 8), words_(bytes / 8) {}
  void Insert(std::span<const uint64_t> keys) {
    for (const uint64_t key : keys) {
      const Steps steps(key);
      for (uint64_t i = 0; i < kHashes; ++i) {
        const uint64_t bit = steps.At(i) % bits_;
        words_[bit / 64] |= uint64_t{1} << (bit % 64);
      }
    }
  }
  size_t CountMayContain(std::span<const uint64_t> keys) const {
    size_t found = 0;
    for (const uint64_t key : keys) found += MayContain(key);
    return found;
  }
  uint64_t memory_bytes() const { return bits_ / 8; }

 private:
  // Kirsch and Mitzenmacher 2006: two hashes make all k.
  struct Steps {
    explicit Steps(uint64_t key) {
      const XXH128_hash_t hash = XXH3_128bits(&key, sizeof key);
      first = hash.low64;
      step = hash.high64 | 1;
    }
    uint64_t At(uint64_t i) const { return first + i * step; }
    uint64_t first;
    uint64_t step;
  };
  bool MayContain(uint64_t key) const {
    const Steps steps(key);
    for (uint64_t i = 0; i < kHashes; ++i) {
      const uint64_t bit = steps.At(i) % bits_;
      if ((words_[bit / 64] >> (bit % 64) & 1) == 0) return false;
    }
    return true;
  }
  uint64_t bits_;
  std::vector<uint64_t> words_;
};

class Split256Plain {
 public:
  static constexpr const char* kName = "split256_plain";
  static constexpr bool kInserts = true;
  static constexpr bool kExact = false;
  static constexpr uint64_t kLargest = kLargeSize;
  Split256Plain(uint64_t bytes, uint64_t) : filter_(bytes) {}
  void Insert(std::span<const uint64_t> keys) { filter_.Insert(keys.data(), keys.size()); }
  size_t CountMayContain(std::span<const uint64_t> keys) const {
    return filter_.CountMayContain(keys.data(), keys.size());
  }
  uint64_t memory_bytes() const { return filter_.memory_bytes(); }

 private:
  SplitBlockPlain filter_;
};

#ifdef BLOOMLINE_BENCH_LIBBLOOM
class LibBloom {
 public:
  static constexpr const char* kName = "libbloom";
  static constexpr bool kInserts = true;
  static constexpr bool kExact = false;
  static constexpr uint64_t kLargest = uint64_t{16} << 20;  // it counts bits in an int
  LibBloom(uint64_t, uint64_t keys) {
    // The FPR at which its formula takes 10 bits per key.
    const double fpr = std::exp(-10 * std::log(2.0) * std::log(2.0));
    ok_ = bloom_init(&bloom_, static_cast<int>(keys), fpr) == 0;
  }
  ~LibBloom() { bloom_free(&bloom_); }
  LibBloom(const LibBloom&) = delete;
  LibBloom& operator=(const LibBloom&) = delete;
  void Insert(std::span<const uint64_t> keys) {
    for (const uint64_t key : keys) bloom_add(&bloom_, &key, sizeof key);
  }
  size_t CountMayContain(std::span<const uint64_t> keys) {
    size_t found = 0;
    for (const uint64_t key : keys) found += bloom_check(&bloom_, &key, sizeof key) == 1;
    return found;
  }
  uint64_t memory_bytes() const { return ok_ ? static_cast<uint64_t>(bloom_.bytes) : 0; }

 private:
  struct bloom bloom_ = {};
  bool ok_ = false;
};
#endif

#ifdef BLOOMLINE_BENCH_LEVELDB
class LevelDb {
 public:
  static constexpr const char* kName = "leveldb";
  static constexpr bool kInserts = false;
  static constexpr bool kExact = false;
  static constexpr uint64_t kLargest = uint64_t{16} << 20;  // takes 16 bytes more per key while it is made
  LevelDb(uint64_t, uint64_t) : policy_(leveldb::NewBloomFilterPolicy(10)) {}
  // From all keys at once.
  void Insert(std::span<const uint64_t> keys) {
    std::vector<leveldb::Slice> slices;
    slices.reserve(keys.size());
    for (const uint64_t& key : keys) slices.emplace_back(reinterpret_cast<const char*>(&key), sizeof key);
    filter_.clear();
    policy_->CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter_);
  }
  size_t CountMayContain(std::span<const uint64_t> keys) const {
    size_t found = 0;
    for (const uint64_t& key : keys) {
      found += policy_->KeyMayMatch(leveldb::Slice(reinterpret_cast<const char*>(&key), sizeof key), filter_);
    }
    return found;
  }
  uint64_t memory_bytes() const { return filter_.size(); }

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
  std::string filter_;
};
#endif

// ---- The rows.

uint64_t KeysOf(uint64_t bytes) { return bytes * 8 / kBitsPerKey; }

template <class Baseline>
struct Filled {
  Filled(uint64_t bytes, uint64_t keys) : filter(bytes, keys) {}
  Baseline filter;
  double fpr = 0;
};

// At its design load, its FPR measured; large ones are not kept beside the next.
template <class Baseline>
Filled<Baseline>& GetFilled(uint64_t bytes) {
  static std::map<uint64_t, std::unique_ptr<Filled<Baseline>>> all;
  if (bytes > kSmallFilterBytes) std::erase_if(all, [&](const auto& entry) { return entry.first != bytes; });
  std::unique_ptr<Filled<Baseline>>& filled = all[bytes];
  if (filled == nullptr) {
    const uint64_t n = KeysOf(bytes);
    filled = std::make_unique<Filled<Baseline>>(bytes, n);
    filled->filter.Insert(MemberKeys(n));
    ForgetMemberKeys();
    std::vector<uint64_t> absent(kFprProbes);
    for (size_t i = 0; i < absent.size(); ++i) absent[i] = KeyAt((kFirstAbsent << 1) + i);
    filled->fpr = static_cast<double>(filled->filter.CountMayContain(absent)) / static_cast<double>(absent.size());
  }
  return *filled;
}

// What must hold whatever the filter: its size, every member found, a plausible FPR. Empty: all is well.
template <class Baseline>
std::string Check(Filled<Baseline>& filled, uint64_t bytes, const ProbeSet& probes) {
  const uint64_t memory = filled.filter.memory_bytes();
  if (!Baseline::kExact && (memory < bytes / 100 * 98 || memory > bytes / 100 * 102 + 64)) {
    return "has " + std::to_string(memory) + " bytes of memory";
  }
  if (filled.fpr > (Baseline::kExact ? 0 : 0.03)) return "wrong answers: FPR " + std::to_string(filled.fpr);
  std::vector<uint64_t> members;
  for (size_t i = 0; i < probes.keys.size(); ++i) {
    if ((probes.member_bitmap[i / 64] >> (i % 64) & 1) != 0) members.push_back(probes.keys[i]);
  }
  if (filled.filter.CountMayContain(members) != members.size())
    return "wrong answers: a key that was inserted is missing";
  return "";
}

template <class Baseline>
void Finish(State& state, const Filled<Baseline>& filled, size_t keys) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(keys));
  state.counters["fpr"] = filled.fpr;
  state.SetLabel(std::to_string((filled.filter.memory_bytes() + 512) / 1024) + " KiB");
}

template <class Baseline>
void Measure(State& state, const Case& c) {
  const std::shared_ptr<const ProbeSet> probes = GetProbeSet(ProbesOf(c, 0));
  Filled<Baseline>& filled = GetFilled<Baseline>(c.filter.bytes);
  if (c.operation == Operation::kBuild) {
    const std::vector<uint64_t>& keys = MemberKeys(KeysOf(c.filter.bytes));
    for (auto _ : state) filled.filter.Insert(keys);
    Finish(state, filled, keys.size());
    ForgetMemberKeys();
  } else if (c.operation == Operation::kInsertOne) {
    for (auto _ : state) {
      filled.filter.Insert(probes->keys);
      benchmark::ClobberMemory();
    }
    Finish(state, filled, probes->size());
  } else {
    size_t found = 0;
    for (auto _ : state) benchmark::DoNotOptimize(found = filled.filter.CountMayContain(probes->keys));
    Finish(state, filled, probes->size());
  }
  if (const std::string wrong = Check(filled, c.filter.bytes, *probes); !wrong.empty()) FailRow(state, wrong);
}

template <class Baseline>
void Register() {
  const auto add = [](Operation operation, const char* name, uint64_t bytes) {
    Case c;
    c.operation = operation;
    c.filter.bytes = bytes;
    c.name = std::string(name) + "/" + Baseline::kName + "/" + SizeName(bytes);
    RegisterRow(c.name, [c](State& state) { Measure<Baseline>(state, c); });
  };
  std::vector<uint64_t> sizes(std::begin(kSizes), std::end(kSizes));
  if (Baseline::kLargest >= kLargeSize) sizes.push_back(kLargeSize);
  for (const uint64_t bytes : sizes) {
    add(Operation::kLookupOne, "lookup_one", bytes);
    add(Baseline::kInserts ? Operation::kInsertOne : Operation::kBuild, Baseline::kInserts ? "insert_one" : "build",
        bytes);
  }
}

template <class Body>
void ForBaselines(const Body& body) {
  body.template operator()<UnorderedSet>();
  body.template operator()<ClassicPlain>();
  body.template operator()<Split256Plain>();
#ifdef BLOOMLINE_BENCH_LIBBLOOM
  body.template operator()<LibBloom>();
#endif
#ifdef BLOOMLINE_BENCH_LEVELDB
  body.template operator()<LevelDb>();
#endif
}

}  // namespace

void RegisterBaselines() {
  ForBaselines([]<class Baseline>() { Register<Baseline>(); });
}

std::vector<std::string> BaselineNames() {
  std::vector<std::string> names;
  ForBaselines([&]<class Baseline>() { names.emplace_back(Baseline::kName); });
  return names;
}

}  // namespace bloomline::bench
