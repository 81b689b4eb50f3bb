// Filter and FilterReader: making, moving, combining and describing them. Batches are in filter_batch.cc.
#include "bloomline/filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "bloomline/fpr_model.h"
#include "bloomline/target.h"
#include "engine/fill.h"
#include "engine/out_of_memory.h"
#include "engine/replicas.h"
#include "engine/same_shape.h"
#include "engine/spill_table.h"
#include "engine/storage.h"
#include "engine/target_name.h"
#include "engine/topology.h"
#include "kernels/kernels.h"

namespace bloomline {
namespace {

// What a filter without blocks answers: it holds nothing.
constexpr detail::BlockOps kEmptyOps = {
    [](const detail::BlockBits&, uint64_t) noexcept { return false; },
    [](const detail::BlockBits&, uint64_t) noexcept {},
    [](const detail::BlockBits&, uint64_t) noexcept { return false; },
    [](const detail::BlockBits&, const detail::KeySpan& keys, uint64_t* bitmap) noexcept {
      std::fill_n(bitmap, (keys.size + 63) / 64, uint64_t{0});
    },
    [](const detail::BlockBits&, const detail::KeySpan&) noexcept {},
    [](const detail::BlockBits&, const detail::KeySpan& keys, uint64_t* changed) noexcept {
      std::fill_n(changed, (keys.size + 63) / 64, uint64_t{0});
    },
    [](const detail::BlockBits&, const detail::KeySpan& keys, uint64_t* hashes) noexcept {
      std::fill_n(hashes, keys.size, uint64_t{0});
    },
    [](const detail::BlockBits&, uint64_t) noexcept { return false; },
    [](const detail::BlockBits&, uint64_t) noexcept { return false; },
    [](const detail::BlockBits&, const detail::KeySpan& keys, uint64_t* bitmap) noexcept {
      std::fill_n(bitmap, (keys.size + 63) / 64, uint64_t{0});
    },
    [](const detail::BlockBits&, const detail::KeySpan&) noexcept {},
    [](const detail::BlockBits&, const detail::KeySpan& keys, uint64_t* changed) noexcept {
      std::fill_n(changed, (keys.size + 63) / 64, uint64_t{0});
    },
};

// From this size on batches prefetch: the filter fills the core's own cache. Trades one prefetch per key, wasted where
// the line is near already, against misses that wait for one another. Measured on AVX-512 (Zen 5, L2 of 1 MiB), change
// by prefetching, lookup_batch and insert_batch of split512: 256 KiB +9 % and +2 %, 512 KiB +5 % and -9 %, 1 MiB 0 %
// and -16 %, 2 MiB -4 % and -21 %, 16 MiB -10 % and -12 %. word64 reads and writes one word per key, which the core
// overlaps by itself for longer: 1 MiB +6 % and +20 %, 16 MiB 0 % and +10 %.
bool WantsPrefetch(Layout layout, uint64_t bytes) {
  const uint64_t l2 = detail::MachineCaches().l2;
  return bytes >= (l2 != 0 ? l2 : uint64_t{1} << 20) * (layout == Layout::kWord64 ? 16 : 1);
}

// The insertion count of a filter whose history is not known: the estimate, or `fallback` where there is none.
uint64_t CountFromBits(const FilterReader& filter, uint64_t fallback) {
  const double estimate = filter.EstimatedCount();
  return std::isfinite(estimate) ? static_cast<uint64_t>(std::llround(estimate)) : fallback;
}

// Calls body(first, count) for the pages of `words` that hold a set bit. Pages that were never written stay unwritten,
// so that a filter in lazy memory stays sparse.
template <class Body>
void ForUsedPages(const uint64_t* words, size_t size, const Body& body) {
  constexpr size_t kPageWords = 4096 / sizeof(uint64_t);
  for (size_t first = 0; first < size; first += kPageWords) {
    const size_t count = std::min(kPageWords, size - first);
    uint64_t any = 0;
    for (size_t i = first; i < first + count; ++i) any |= words[i];
    if (any != 0) body(first, count);
  }
}

uint64_t SaturatingAdd(uint64_t a, uint64_t b) { return a + b < a ? ~uint64_t{0} : a + b; }

}  // namespace

FilterReader::FilterReader() : ops_(&kEmptyOps) {}
FilterReader::~FilterReader() = default;

FilterReader::FilterReader(FilterReader&& other) noexcept : ops_(&kEmptyOps) { *this = std::move(other); }

FilterReader& FilterReader::operator=(FilterReader&& other) noexcept {
  if (this == &other) return *this;
  bits_ = std::exchange(other.bits_, {});
  ops_ = std::exchange(other.ops_, &kEmptyOps);
  key_mask_ = other.key_mask_;
  inserted_ = std::exchange(other.inserted_, 0);
  layout_ = other.layout_;
  k_ = other.k_;
  key_kind_ = other.key_kind_;
  expected_keys_ = other.expected_keys_;
  target_fpr_ = other.target_fpr_;
  target_ = other.target_;
  policy_ = other.policy_;
  storage_ = std::move(other.storage_);
  spill_ = std::move(other.spill_);
  return *this;
}

Status FilterReader::Bind(const std::string& target) {
  const Result<std::string> canonical = target.empty() ? TryChosenTarget() : detail::CanonicalTarget(target, "target");
  if (!canonical.ok()) return canonical.error();
  const std::string& chosen = canonical.value();
  for (const std::string_view name : kernels::SupportedTargetNames()) {
    if (name != chosen) continue;
    const detail::BlockOps* ops = kernels::FindBlockOps(layout_, k_, name);
    if (ops == nullptr) break;
    ops_ = ops;
    target_ = name;
    key_mask_ = detail::KeyMask(bits_.seed);
    bits_.prefetch = WantsPrefetch(layout(), memory_bytes()) ? 1 : 0;
    AttachReplicas();
    return {};
  }
  return Error(ErrorCode::kInvalidArgument,
               "target = " + chosen + ": has no kernels for " + LayoutNameWithK(layout_, k_) + " on this CPU");
}

void FilterReader::AttachReplicas() noexcept {
  detail::Replicas* const replicas = storage_ == nullptr ? nullptr : storage_->replicas();
  if (replicas == nullptr) return;
  replicas->ops = ops_;
  ops_ = &detail::ReplicatedOps();
  bits_.replicas = replicas;
}

void FilterReader::CopyToReplicas() noexcept {
  if (bits_.replicas != nullptr) detail::CopyToOthers(*bits_.replicas, words().size());
}

double FilterReader::EstimatedCount() const noexcept {
  return bits_.blocks == 0 ? 0 : EstimateCount(layout_, k_, bits_.blocks, FillFraction());
}
double FilterReader::PredictedFpr() const noexcept { return PredictedFpr(inserted_); }
double FilterReader::PredictedFpr(uint64_t n) const noexcept {
  return bits_.blocks == 0 ? 0 : bloomline::PredictedFpr(layout_, k_, bits_.blocks, n);
}
double FilterReader::MeasuredFillFpr() const noexcept { return detail::MeasureFill(layout_, k_, words()).fpr; }
double FilterReader::FillFraction() const noexcept {
  if (bits_.blocks == 0) return 0;
  return detail::FractionSet(layout_, words());
}
bool FilterReader::Saturated() const noexcept { return bits_.blocks != 0 && detail::AllSet(layout_, words()); }

MemoryReport FilterReader::memory() const {
  if (storage_) return detail::OrThrowError([&] { return storage_->Report(); });
  MemoryReport report;
  report.bytes = memory_bytes();
  report.note = bits_.blocks == 0 ? "no memory: the filter was moved from" : "the caller's memory";
  return report;
}

Status FilterReader::MakeEmpty(const FilterConfig& config) {
  if (config.key_kind() > KeyKind::kHashed) {
    return Error(ErrorCode::kInvalidArgument, "key_kind = " + std::to_string(static_cast<int>(config.key_kind())) +
                                                  ": must be one of the KeyKind values, 0 … 3");
  }
  layout_ = config.layout();
  k_ = config.k();
  bits_ = {};
  bits_.blocks = config.blocks();
  bits_.seed = config.seed();
  key_kind_ = config.key_kind();
  expected_keys_ = config.expected_keys();
  target_fpr_ = config.target_fpr();
  if (Status bound = Bind(config.target()); !bound.ok()) return bound;
  Result<std::unique_ptr<detail::Storage>> storage = detail::Storage::Allocate(config.bits() / 8, config.memory());
  if (!storage.ok()) return storage.error();
  bits_.words = storage.value()->words();
  storage_ = std::move(storage).value();
  AttachReplicas();
  return {};
}

Result<Filter> Filter::Create(const FilterConfig& config) try {
  if (IsCounting(config.layout())) {
    return Error(ErrorCode::kInvalidArgument,
                 "layout = " + LayoutName(config.layout(), config.k()) + ": holds counters; use CountingFilter");
  }
  Filter filter;
  if (Status made = filter.MakeEmpty(config); !made.ok()) return made.error();
  return Result<Filter>(std::move(filter));
} catch (...) {
  return detail::CaughtError();
}

Filter::Filter(const FilterConfig& config) : Filter(Create(config).value()) {}

void Filter::Clear() noexcept {
  ForUsedPages(bits_.words, words().size(),
               [&](size_t first, size_t count) { std::fill_n(bits_.words + first, count, uint64_t{0}); });
  CopyToReplicas();
  inserted_ = 0;
}

Status Filter::TryMerge(const FilterReader& other) try {
  if (Status same = detail::RequireSameShape(*this, other); !same.ok()) return same;
  const uint64_t sum = SaturatingAdd(inserted_, other.InsertedCount());
  const uint64_t* from = other.words().data();
  ForUsedPages(from, words().size(), [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) bits_.words[i] |= from[i];
  });
  CopyToReplicas();
  inserted_ = CountFromBits(*this, sum);
  return {};
} catch (...) {
  return detail::CaughtError();
}

Status Filter::TryIntersect(const FilterReader& other) try {
  if (Status same = detail::RequireSameShape(*this, other); !same.ok()) return same;
  const uint64_t fewer = std::min(inserted_, other.InsertedCount());
  const uint64_t* from = other.words().data();
  ForUsedPages(bits_.words, words().size(), [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) bits_.words[i] &= from[i];
  });
  CopyToReplicas();
  inserted_ = CountFromBits(*this, fewer);
  return {};
} catch (...) {
  return detail::CaughtError();
}

void Filter::Merge(const FilterReader& other) { TryMerge(other).value(); }
void Filter::Intersect(const FilterReader& other) { TryIntersect(other).value(); }

Status FilterReader::CopyTo(FilterReader& copy) const {
  Result<std::unique_ptr<detail::Storage>> storage = detail::Storage::Allocate(memory_bytes(), storage_->policy());
  if (!storage.ok()) return storage.error();
  if (spill_ != nullptr) copy.spill_ = std::make_unique<detail::SpillTable>(*spill_);
  copy.bits_ = bits_;
  copy.bits_.words = storage.value()->words();
  copy.bits_.replicas = nullptr;
  ForUsedPages(bits_.words, words().size(), [&](size_t first, size_t count) {
    std::memcpy(copy.bits_.words + first, bits_.words + first, count * sizeof(uint64_t));
  });
  copy.ops_ = bits_.replicas == nullptr ? ops_ : bits_.replicas->ops;
  copy.key_mask_ = key_mask_;
  copy.inserted_ = inserted_;
  copy.layout_ = layout_;
  copy.k_ = k_;
  copy.key_kind_ = key_kind_;
  copy.expected_keys_ = expected_keys_;
  copy.target_fpr_ = target_fpr_;
  copy.target_ = target_;
  copy.policy_ = policy_;
  copy.storage_ = std::move(storage).value();
  copy.AttachReplicas();
  copy.CopyToReplicas();
  return {};
}

Result<Filter> Filter::TryClone() const try {
  Filter copy;
  if (bits_.blocks == 0) return Result<Filter>(std::move(copy));
  if (Status copied = CopyTo(copy); !copied.ok()) return copied.error();
  return Result<Filter>(std::move(copy));
} catch (...) {
  return detail::CaughtError();
}

Filter Filter::Clone() const { return TryClone().value(); }

}  // namespace bloomline
