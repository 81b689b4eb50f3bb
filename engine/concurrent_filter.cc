#include "bloomline/concurrent_filter.h"

#include <sched.h>

#include <new>
#include <utility>

#include "engine/key_chunks.h"
#include "engine/out_of_memory.h"
#include "engine/shared_words.h"
#include "engine/storage.h"

namespace bloomline {

using detail::Covered;
using detail::ForHashChunks;
using detail::Hashes;
using detail::Keys;
using detail::KeySpan;

ConcurrentFilter::ConcurrentFilter(const FilterConfig& config) : ConcurrentFilter(Filter(config)) {}

ConcurrentFilter::ConcurrentFilter(Filter filter) : filter_(std::move(filter)) {
  if (filter_.blocks() == 0) {
    detail::ThrowError(Error(ErrorCode::kInvalidArgument, "the filter was moved from: it has no bits"));
  }
  slots_.reset(new (std::nothrow) Slot[kSlots]);
  if (slots_ == nullptr) detail::ThrowError(detail::NoMemory());
}

Result<std::unique_ptr<ConcurrentFilter>> ConcurrentFilter::Create(Filter filter) try {
  return std::make_unique<ConcurrentFilter>(std::move(filter));
} catch (...) {
  return detail::CaughtError();
}

Result<std::unique_ptr<ConcurrentFilter>> ConcurrentFilter::Create(const FilterConfig& config) {
  Result<Filter> filter = Filter::Create(config);
  if (!filter.ok()) return filter.error();
  return Create(std::move(filter).value());
}

ConcurrentFilter::~ConcurrentFilter() = default;

// After their bits are set: whoever sees the count, for a copy say, sees the bits.
void ConcurrentFilter::Count(uint64_t keys) noexcept {
  const auto slot = static_cast<size_t>(sched_getcpu()) % kSlots;  // -1, where it is not known, is a slot too
  slots_[slot].keys.fetch_add(keys, std::memory_order_release);
}

uint64_t ConcurrentFilter::InsertedCount() const noexcept {
  uint64_t keys = filter_.InsertedCount();
  for (size_t i = 0; i < kSlots; ++i) keys += slots_[i].keys.load(std::memory_order_acquire);
  return keys;
}

bool ConcurrentFilter::TryInsertHash(uint64_t hash) noexcept {
  const bool changed = filter_.ops_->shared_try_insert(filter_.bits_, hash);
  Count(1);
  return changed;
}

void ConcurrentFilter::InsertBatch(std::span<const uint64_t> keys) noexcept {
  filter_.ops_->shared_insert_batch(filter_.bits_, Keys(keys, 0, keys.size()));
  Count(keys.size());
}
void ConcurrentFilter::InsertBatch(std::span<const uint32_t> keys) noexcept {
  filter_.ops_->shared_insert_batch(filter_.bits_, Keys(keys, 0, keys.size()));
  Count(keys.size());
}
void ConcurrentFilter::InsertBatch(std::span<const std::string_view> keys) noexcept {
  ForHashChunks(keys, keys.size(), filter_.seed(),
                [&](size_t, const KeySpan& hashes) { filter_.ops_->shared_insert_batch(filter_.bits_, hashes); });
  Count(keys.size());
}
void ConcurrentFilter::InsertHashBatch(std::span<const uint64_t> hashes) noexcept {
  filter_.ops_->shared_insert_batch(filter_.bits_, Hashes(hashes.data(), hashes.size()));
  Count(hashes.size());
}

void ConcurrentFilter::TryInsertBatch(std::span<const uint64_t> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  filter_.ops_->shared_try_insert_batch(filter_.bits_, Keys(keys, 0, count), changed.data());
  Count(count);
}
void ConcurrentFilter::TryInsertBatch(std::span<const uint32_t> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  filter_.ops_->shared_try_insert_batch(filter_.bits_, Keys(keys, 0, count), changed.data());
  Count(count);
}
void ConcurrentFilter::TryInsertBatch(std::span<const std::string_view> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  ForHashChunks(keys, count, filter_.seed(), [&](size_t first, const KeySpan& hashes) {
    filter_.ops_->shared_try_insert_batch(filter_.bits_, hashes, changed.data() + first / 64);
  });
  Count(count);
}
void ConcurrentFilter::TryInsertHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(hashes.size(), changed.size());
  filter_.ops_->shared_try_insert_batch(filter_.bits_, Hashes(hashes.data(), count), changed.data());
  Count(count);
}

void ConcurrentFilter::MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap) const noexcept {
  filter_.ops_->shared_contains_batch(filter_.bits_, Keys(keys, 0, Covered(keys.size(), bitmap.size())), bitmap.data());
}
void ConcurrentFilter::MayContainBatch(std::span<const uint32_t> keys, std::span<uint64_t> bitmap) const noexcept {
  filter_.ops_->shared_contains_batch(filter_.bits_, Keys(keys, 0, Covered(keys.size(), bitmap.size())), bitmap.data());
}
void ConcurrentFilter::MayContainBatch(std::span<const std::string_view> keys,
                                       std::span<uint64_t> bitmap) const noexcept {
  ForHashChunks(keys, Covered(keys.size(), bitmap.size()), filter_.seed(), [&](size_t first, const KeySpan& hashes) {
    filter_.ops_->shared_contains_batch(filter_.bits_, hashes, bitmap.data() + first / 64);
  });
}
void ConcurrentFilter::MayContainHashBatch(std::span<const uint64_t> hashes,
                                           std::span<uint64_t> bitmap) const noexcept {
  filter_.ops_->shared_contains_batch(filter_.bits_, Hashes(hashes.data(), Covered(hashes.size(), bitmap.size())),
                                      bitmap.data());
}

Result<Filter> ConcurrentFilter::TryCopy() const try {
  const uint64_t inserted = InsertedCount();  // of before: the copy has all of them
  Result<FilterConfig> config = FilterConfig::TryForBits(filter_.bits(), filter_.k(), filter_.layout());
  if (!config.ok()) return config.error();
  Result<Filter> copy = Filter::Create(config->WithSeed(filter_.seed())
                                           .WithKeyKind(filter_.key_kind())
                                           .WithTarget(filter_.target())
                                           .WithMemory(filter_.storage_->policy()));
  if (!copy.ok()) return copy;
  copy->expected_keys_ = filter_.expected_keys_;
  copy->target_fpr_ = filter_.target_fpr_;
  copy->inserted_ = inserted;
  detail::CopySharedWords(filter_.words().data(), copy->bits_.words, filter_.words().size());
  copy->CopyToReplicas();
  return copy;
} catch (...) {
  return detail::CaughtError();
}

void ConcurrentFilter::Save(const std::string& path) const { TrySave(path).value(); }

Filter ConcurrentFilter::Release() && {
  filter_.inserted_ = InsertedCount();
  return std::move(filter_);
}

}  // namespace bloomline
