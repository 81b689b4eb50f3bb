#include "bloomline/concurrent_counting_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "engine/key_chunks.h"
#include "engine/out_of_memory.h"
#include "engine/spill_counters.h"
#include "engine/storage.h"
#include "kernels/counting_layout.h"

namespace bloomline {
namespace {

// Stripes trade memory (64 bytes each) against two writers meeting at one lock: with t writers the chance per operation
// is about t / 4096.
constexpr size_t kMaxStripes = 4096;
constexpr size_t kChunk = 64;
constexpr int kSpinsBeforeYield = 64;

using Line = std::array<uint64_t, detail::kWordsPerLine>;

// The words are plain memory elsewhere; all that runs beside other threads reads and writes them as relaxed atomics.
Line LoadLine(const uint64_t* words) {
  Line line;
  for (size_t w = 0; w < line.size(); ++w) {
    line[w] = std::atomic_ref<uint64_t>(const_cast<uint64_t&>(words[w])).load(std::memory_order_relaxed);
  }
  return line;
}

void StoreLine(const Line& old_line, const Line& line, uint64_t* words) {
  for (size_t w = 0; w < line.size(); ++w) {
    if (line[w] != old_line[w]) std::atomic_ref<uint64_t>(words[w]).store(line[w], std::memory_order_relaxed);
  }
}

}  // namespace

class ConcurrentCountingFilter::StripeLock {
 public:
  explicit StripeLock(Stripe& stripe) : stripe_(stripe) { Take(stripe); }
  ~StripeLock() { Give(stripe_); }
  static void Take(Stripe& stripe) {
    for (int spins = 0; stripe.locked.exchange(true, std::memory_order_acquire); ++spins) {
      while (stripe.locked.load(std::memory_order_relaxed)) {
        // The holder may have lost its core.
        if (++spins >= kSpinsBeforeYield) std::this_thread::yield();
      }
    }
  }
  static void Give(Stripe& stripe) { stripe.locked.store(false, std::memory_order_release); }
  StripeLock(const StripeLock&) = delete;
  StripeLock& operator=(const StripeLock&) = delete;

 private:
  Stripe& stripe_;
};

ConcurrentCountingFilter::ConcurrentCountingFilter(const FilterConfig& config, OverflowPolicy policy)
    : ConcurrentCountingFilter(CountingFilter(config, policy)) {}

ConcurrentCountingFilter::ConcurrentCountingFilter(CountingFilter filter)
    : filter_(std::move(filter)),
      stripe_count_(std::bit_ceil(static_cast<size_t>(std::clamp<uint64_t>(filter_.blocks(), 1, kMaxStripes)))) {
  detail::OrThrowError([&] {
    if (filter_.blocks() != 0) return;
    throw Error(ErrorCode::kInvalidArgument, "the filter was moved from: it has no counters");
  });
  stripes_.reset(new (std::nothrow) Stripe[stripe_count_]);
  if (stripes_ == nullptr) detail::ThrowError(detail::NoMemory());
}

Result<std::unique_ptr<ConcurrentCountingFilter>> ConcurrentCountingFilter::Create(CountingFilter filter) try {
  return std::make_unique<ConcurrentCountingFilter>(std::move(filter));
} catch (...) {
  return detail::CaughtError();
}

ConcurrentCountingFilter::~ConcurrentCountingFilter() = default;

bool ConcurrentCountingFilter::Change(uint64_t hash, bool add) noexcept {
  const int bits = kernels::CounterBits(filter_.layout());
  const uint64_t block = kernels::BlockOf(Layout::kSplit512, hash, filter_.blocks());
  const uint64_t g = kernels::CounterGOf(hash);
  uint64_t* words = filter_.bits_.words + block * detail::kWordsPerLine;
  Stripe& stripe = StripeOf(block);
  const StripeLock lock(stripe);
  const Line old_line = LoadLine(words);
  Line line = old_line;
  const OverflowPolicy policy = filter_.policy_;
  bool done = true;
  if (policy == OverflowPolicy::kSpill && kernels::AnyCounterFull(bits, line.data(), g) &&
      (add || kernels::SmallestCounter(bits, line.data(), g) != 0)) {
    const std::lock_guard<std::mutex> table(spill_mutex_);
    const detail::KeyCounters key{bits, line.data(), block, g};
    if (add) {
      done = detail::AddSpilled(key, *filter_.spill_);
    } else {
      detail::RemoveSpilled(key, *filter_.spill_);
    }
  } else {
    done = add ? kernels::AddCounters(bits, policy, line.data(), g)
               : kernels::RemoveCounters(bits, policy, line.data(), g);
  }
  if (!done) return false;
  StoreLine(old_line, line, words);
  stripe.keys.store(stripe.keys.load(std::memory_order_relaxed) + (add ? 1 : -1), std::memory_order_relaxed);
  return true;
}

bool ConcurrentCountingFilter::AddHash(uint64_t hash) noexcept { return Change(hash, true); }
bool ConcurrentCountingFilter::RemoveHash(uint64_t hash) noexcept { return Change(hash, false); }

bool ConcurrentCountingFilter::MayContainHash(uint64_t hash) const noexcept {
  const uint64_t block = kernels::BlockOf(Layout::kSplit512, hash, filter_.blocks());
  const Line line = LoadLine(filter_.bits_.words + block * detail::kWordsPerLine);
  return kernels::SmallestCounter(kernels::CounterBits(filter_.layout()), line.data(), kernels::CounterGOf(hash)) != 0;
}

uint64_t ConcurrentCountingFilter::CountHash(uint64_t hash) const noexcept {
  const int bits = kernels::CounterBits(filter_.layout());
  const uint64_t block = kernels::BlockOf(Layout::kSplit512, hash, filter_.blocks());
  const uint64_t g = kernels::CounterGOf(hash);
  const uint64_t* words = filter_.bits_.words + block * detail::kWordsPerLine;
  if (filter_.spill_ == nullptr) {
    const Line line = LoadLine(words);
    return kernels::SmallestCounter(bits, line.data(), g);
  }
  // The counters and the table of one moment.
  const StripeLock lock(StripeOf(block));
  Line line = LoadLine(words);
  const uint64_t smallest = kernels::SmallestCounter(bits, line.data(), g);
  if (smallest < kernels::CounterMax(bits)) return smallest;
  const std::lock_guard<std::mutex> table(spill_mutex_);
  return detail::CountSpilled({bits, line.data(), block, g}, *filter_.spill_);
}

// ---- Batches: hashes of a chunk, prefetches, one key after the other.

size_t ConcurrentCountingFilter::ChangeHashes(const uint64_t* hashes, size_t count, uint64_t* bitmap,
                                              bool add) noexcept {
  const std::span all(hashes, count);
  size_t failed = 0;
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t size = std::min(kChunk, count - first);
    for (size_t i = 0; i < size; ++i) {
      const uint64_t block = kernels::BlockOf(Layout::kSplit512, detail::KeyAt(all, first + i), filter_.blocks());
      __builtin_prefetch(filter_.bits_.words + block * detail::kWordsPerLine, 1);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < size; ++i) word |= uint64_t{!Change(detail::KeyAt(all, first + i), add)} << i;
    failed += static_cast<size_t>(std::popcount(word));
    if (bitmap != nullptr) bitmap[first / kChunk] = word;
  }
  return failed;
}

template <class Keys>
size_t ConcurrentCountingFilter::ChangeBatch(const Keys& keys, std::span<uint64_t> bitmap, bool add) noexcept {
  const size_t count = detail::CoveredOrAll(keys.size(), bitmap);
  uint64_t hashes[kChunk];
  size_t failed = 0;
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t size = std::min(kChunk, count - first);
    for (size_t i = 0; i < size; ++i) hashes[i] = HashOf(detail::KeyAt(keys, first + i));
    failed += ChangeHashes(hashes, size, detail::WordsFrom(bitmap, first), add);
  }
  return failed;
}

size_t ConcurrentCountingFilter::AddBatch(std::span<const uint64_t> keys, std::span<uint64_t> refused) noexcept {
  return ChangeBatch(keys, refused, true);
}
size_t ConcurrentCountingFilter::AddBatch(std::span<const std::string_view> keys,
                                          std::span<uint64_t> refused) noexcept {
  return ChangeBatch(keys, refused, true);
}
size_t ConcurrentCountingFilter::AddHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> refused) noexcept {
  return ChangeHashes(hashes.data(), detail::CoveredOrAll(hashes.size(), refused), detail::WordsFrom(refused, 0), true);
}
size_t ConcurrentCountingFilter::RemoveBatch(std::span<const uint64_t> keys, std::span<uint64_t> absent) noexcept {
  return ChangeBatch(keys, absent, false);
}
size_t ConcurrentCountingFilter::RemoveBatch(std::span<const std::string_view> keys,
                                             std::span<uint64_t> absent) noexcept {
  return ChangeBatch(keys, absent, false);
}
size_t ConcurrentCountingFilter::RemoveHashBatch(std::span<const uint64_t> hashes,
                                                 std::span<uint64_t> absent) noexcept {
  return ChangeHashes(hashes.data(), detail::CoveredOrAll(hashes.size(), absent), detail::WordsFrom(absent, 0), false);
}

void ConcurrentCountingFilter::MayContainHashBatch(std::span<const uint64_t> hashes,
                                                   std::span<uint64_t> bitmap) const noexcept {
  const size_t count = detail::Covered(hashes.size(), bitmap.size());
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t size = std::min(kChunk, count - first);
    for (size_t i = 0; i < size; ++i) {
      const uint64_t block = kernels::BlockOf(Layout::kSplit512, detail::KeyAt(hashes, first + i), filter_.blocks());
      __builtin_prefetch(filter_.bits_.words + block * detail::kWordsPerLine);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < size; ++i) word |= uint64_t{MayContainHash(detail::KeyAt(hashes, first + i))} << i;
    bitmap[first / kChunk] = word;
  }
}

void ConcurrentCountingFilter::MayContainBatch(std::span<const uint64_t> keys,
                                               std::span<uint64_t> bitmap) const noexcept {
  uint64_t hashes[kChunk];
  const size_t count = detail::Covered(keys.size(), bitmap.size());
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t size = std::min(kChunk, count - first);
    for (size_t i = 0; i < size; ++i) hashes[i] = HashOf(detail::KeyAt(keys, first + i));
    MayContainHashBatch({hashes, size}, bitmap.subspan(first / kChunk, 1));
  }
}
void ConcurrentCountingFilter::MayContainBatch(std::span<const std::string_view> keys,
                                               std::span<uint64_t> bitmap) const noexcept {
  detail::ForHashChunks(
      keys, detail::Covered(keys.size(), bitmap.size()), filter_.seed(),
      [&](size_t first, const detail::KeySpan& hashes) {
        MayContainHashBatch({static_cast<const uint64_t*>(hashes.data), hashes.size}, bitmap.subspan(first / 64));
      });
}

// ---- As a whole.

uint64_t ConcurrentCountingFilter::InsertedCount() const noexcept {
  auto keys = static_cast<int64_t>(filter_.InsertedCount());
  for (size_t i = 0; i < stripe_count_; ++i) keys += stripes_[i].keys.load(std::memory_order_relaxed);
  return keys > 0 ? static_cast<uint64_t>(keys) : 0;
}

Result<CountingFilter> ConcurrentCountingFilter::TryCopy() const try {
  Result<FilterConfig> config = FilterConfig::TryForBits(filter_.bits(), 8, filter_.layout());
  if (!config.ok()) return config.error();
  Result<CountingFilter> copy = CountingFilter::Create(config->WithSeed(filter_.seed())
                                                           .WithKeyKind(filter_.key_kind())
                                                           .WithTarget(filter_.target())
                                                           .WithMemory(filter_.storage_->policy()),
                                                       filter_.policy_);
  if (!copy.ok()) return copy;
  copy->expected_keys_ = filter_.expected_keys_;
  copy->target_fpr_ = filter_.target_fpr_;
  const auto copy_line = [&](uint64_t block) {
    const size_t at = static_cast<size_t>(block) * detail::kWordsPerLine;
    const Line line = LoadLine(filter_.bits_.words + at);
    std::copy(line.begin(), line.end(), copy->bits_.words + at);
  };
  if (filter_.spill_ == nullptr) {
    for (uint64_t block = 0; block < filter_.blocks(); ++block) {
      const StripeLock lock(StripeOf(block));
      copy_line(block);
    }
    copy->inserted_ = InsertedCount();
    copy->CopyToReplicas();
    return copy;
  }
  // The side table's entries belong to counters of any stripe: all are held at once.
  for (size_t i = 0; i < stripe_count_; ++i) StripeLock::Take(stripes_[i]);
  for (uint64_t block = 0; block < filter_.blocks(); ++block) copy_line(block);
  bool has_memory = true;
  try {
    *copy->spill_ = *filter_.spill_;
  } catch (const std::bad_alloc&) {
    has_memory = false;
  }
  copy->inserted_ = InsertedCount();
  for (size_t i = 0; i < stripe_count_; ++i) StripeLock::Give(stripes_[i]);
  if (!has_memory) return Error(ErrorCode::kOutOfMemory, "no memory for a copy of the spilled counters");
  copy->CopyToReplicas();
  return copy;
} catch (...) {
  return detail::CaughtError();
}

CountingFilter ConcurrentCountingFilter::Release() && {
  filter_.inserted_ = InsertedCount();
  filter_.CopyToReplicas();  // here only copy 0 is read and written
  return std::move(filter_);
}

}  // namespace bloomline
