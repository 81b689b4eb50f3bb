// CountingFilter: making, changing, counting. Merging and expanding are in counting_merge.cc, files in
// filter_snapshot.cc.
#include "bloomline/counting_filter.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <utility>

#include "bloomline/fpr_model.h"
#include "engine/fill.h"
#include "engine/key_chunks.h"
#include "engine/out_of_memory.h"
#include "engine/replicas.h"
#include "engine/spill_counters.h"
#include "engine/spill_table.h"
#include "engine/storage.h"
#include "kernels/counting_layout.h"
#include "kernels/kernels.h"

namespace bloomline {
namespace {

using detail::CoveredOrAll;
using detail::ForHashChunks;
using detail::Hashes;
using detail::KeySpan;
using detail::WordsFrom;

// What the kernels call for keys that meet a full counter.
struct SpillContext {
  int bits;
  uint64_t* words;
  detail::SpillTable* table;

  detail::KeyCounters Of(uint64_t block, uint64_t g) const {
    return {bits, words + block * detail::kWordsPerLine, block, g};
  }
  static bool Add(void* context, uint64_t block, uint64_t g) noexcept {
    const auto& spill = *static_cast<SpillContext*>(context);
    return detail::AddSpilled(spill.Of(block, g), *spill.table);
  }
  static bool Remove(void* context, uint64_t block, uint64_t g) noexcept {
    const auto& spill = *static_cast<SpillContext*>(context);
    detail::RemoveSpilled(spill.Of(block, g), *spill.table);
    return true;
  }
};

Status CheckPolicy(OverflowPolicy policy) {
  if (policy >= OverflowPolicy::kSaturate && policy <= OverflowPolicy::kSpill) return {};
  return Error(ErrorCode::kInvalidArgument, "policy = " + std::to_string(static_cast<int>(policy)) +
                                                ": must be saturate (1), reject (2) or spill (3)");
}

uint32_t Narrow(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

const char* OverflowPolicyName(OverflowPolicy policy) noexcept {
  switch (policy) {
    case OverflowPolicy::kNone:
      return "none";
    case OverflowPolicy::kSaturate:
      return "saturate";
    case OverflowPolicy::kReject:
      return "reject";
    case OverflowPolicy::kSpill:
      return "spill";
  }
  return "unknown";
}

CountingFilter::CountingFilter() = default;
CountingFilter::~CountingFilter() = default;
CountingFilter::CountingFilter(CountingFilter&& other) noexcept { *this = std::move(other); }
CountingFilter& CountingFilter::operator=(CountingFilter&& other) noexcept {
  if (this == &other) return *this;
  counting_ops_ = std::exchange(other.counting_ops_, nullptr);
  FilterReader::operator=(std::move(other));
  return *this;
}

Result<CountingFilter> CountingFilter::Create(const FilterConfig& config, OverflowPolicy policy) try {
  if (!IsCounting(config.layout())) {
    return Error(ErrorCode::kInvalidArgument, "layout = " + LayoutNameWithK(config.layout(), config.k()) +
                                                  ": must be counting4 or counting8; Filter takes the others");
  }
  if (Status checked = CheckPolicy(policy); !checked.ok()) return checked.error();
  CountingFilter filter;
  if (Status made = filter.MakeEmpty(config); !made.ok()) return made.error();
  filter.policy_ = policy;
  if (policy == OverflowPolicy::kSpill) {
    filter.spill_.reset(new (std::nothrow) detail::SpillTable);
    if (filter.spill_ == nullptr) return Error(ErrorCode::kOutOfMemory, "no memory for the table of spilled counters");
  }
  if (Status bound = filter.BindCounting(); !bound.ok()) return bound.error();
  return Result<CountingFilter>(std::move(filter));
} catch (...) {
  return detail::CaughtError();
}

CountingFilter::CountingFilter(const FilterConfig& config, OverflowPolicy policy)
    : CountingFilter(Create(config, policy).value()) {}

Status CountingFilter::BindCounting() {
  counting_ops_ = kernels::FindCountingOps(layout_, policy_, target_);
  if (counting_ops_ == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "target = " + std::string(target_) + ": has no kernels for " +
                                                  LayoutName(layout_, k_) + " on this CPU");
  }
  if (detail::Replicas* const replicas = storage_ == nullptr ? nullptr : storage_->replicas(); replicas != nullptr) {
    replicas->counting_ops = counting_ops_;
    counting_ops_ = &detail::ReplicatedCountingOps();
  }
  return {};
}

// Runs body(spill handler) with the side table at hand, where there is one.
template <class Body>
auto CountingFilter::WithSpill(const Body& body) noexcept {
  SpillContext context{kernels::CounterBits(layout_), bits_.words, spill_.get()};
  return body(detail::SpillHandler{&context, &SpillContext::Add, &SpillContext::Remove});
}

// ---- One key.

bool CountingFilter::AddHash(uint64_t hash) noexcept {
  if (counting_ops_ == nullptr) return false;
  const bool added = WithSpill([&](const auto& spill) { return counting_ops_->add(bits_, hash, spill); });
  if (added) ++inserted_;
  return added;
}

bool CountingFilter::RemoveHash(uint64_t hash) noexcept {
  if (counting_ops_ == nullptr) return false;
  const bool removed = WithSpill([&](const auto& spill) { return counting_ops_->remove(bits_, hash, spill); });
  if (removed) TakeFromCount(1);
  return removed;
}

uint64_t CountingFilter::CountHash(uint64_t hash) const noexcept {
  if (counting_ops_ == nullptr) return 0;
  const uint64_t count = counting_ops_->count(bits_, hash);
  const int bits = kernels::CounterBits(layout_);
  if (spill_ == nullptr || count < kernels::CounterMax(bits)) return count;
  // All eight are full: the smallest is the one with the least beyond.
  const uint64_t block = kernels::BlockOf(Layout::kSplit512, hash, bits_.blocks);
  return detail::CountSpilled(SpillContext{bits, bits_.words, spill_.get()}.Of(block, kernels::CounterGOf(hash)),
                              *spill_);
}

// ---- Batches.

size_t CountingFilter::Change(const KeySpan& keys, uint64_t* bitmap, bool add) noexcept {
  if (counting_ops_ == nullptr) {
    if (bitmap != nullptr) {
      std::fill_n(bitmap, keys.size / 64, ~uint64_t{0});
      if (keys.size % 64 != 0) bitmap[keys.size / 64] = (uint64_t{1} << (keys.size % 64)) - 1;
    }
    return keys.size;
  }
  const auto batch = add ? counting_ops_->add_batch : counting_ops_->remove_batch;
  const size_t failed = WithSpill([&](const auto& spill) { return batch(bits_, keys, bitmap, spill); });
  if (add) {
    inserted_ += keys.size - failed;
  } else {
    TakeFromCount(keys.size - failed);
  }
  return failed;
}

template <class Fixed>
size_t CountingFilter::ChangeFixed(std::span<const Fixed> keys, std::span<uint64_t> bitmap, bool add) noexcept {
  return Change(detail::Keys(keys, 0, CoveredOrAll(keys.size(), bitmap)), WordsFrom(bitmap, 0), add);
}

template <class Strings>
size_t CountingFilter::ChangeStrings(const Strings& keys, std::span<uint64_t> bitmap, bool add) noexcept {
  size_t failed = 0;
  ForHashChunks(keys, CoveredOrAll(keys.size(), bitmap), bits_.seed,
                [&](size_t first, const KeySpan& hashes) { failed += Change(hashes, WordsFrom(bitmap, first), add); });
  return failed;
}

size_t CountingFilter::AddBatch(std::span<const uint64_t> keys, std::span<uint64_t> refused) noexcept {
  return ChangeFixed(keys, refused, true);
}
size_t CountingFilter::AddBatch(std::span<const uint32_t> keys, std::span<uint64_t> refused) noexcept {
  return ChangeFixed(keys, refused, true);
}
size_t CountingFilter::AddBatch(std::span<const std::string_view> keys, std::span<uint64_t> refused) noexcept {
  return ChangeStrings(keys, refused, true);
}
size_t CountingFilter::AddBatch(std::span<const std::string> keys, std::span<uint64_t> refused) noexcept {
  return ChangeStrings(keys, refused, true);
}
size_t CountingFilter::AddBatch(const BinaryColumn& keys, std::span<uint64_t> refused) noexcept {
  return ChangeStrings(keys, refused, true);
}
size_t CountingFilter::AddHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> refused) noexcept {
  return Change(Hashes(hashes.data(), CoveredOrAll(hashes.size(), refused)), WordsFrom(refused, 0), true);
}

size_t CountingFilter::RemoveBatch(std::span<const uint64_t> keys, std::span<uint64_t> absent) noexcept {
  return ChangeFixed(keys, absent, false);
}
size_t CountingFilter::RemoveBatch(std::span<const uint32_t> keys, std::span<uint64_t> absent) noexcept {
  return ChangeFixed(keys, absent, false);
}
size_t CountingFilter::RemoveBatch(std::span<const std::string_view> keys, std::span<uint64_t> absent) noexcept {
  return ChangeStrings(keys, absent, false);
}
size_t CountingFilter::RemoveBatch(std::span<const std::string> keys, std::span<uint64_t> absent) noexcept {
  return ChangeStrings(keys, absent, false);
}
size_t CountingFilter::RemoveBatch(const BinaryColumn& keys, std::span<uint64_t> absent) noexcept {
  return ChangeStrings(keys, absent, false);
}
size_t CountingFilter::RemoveHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> absent) noexcept {
  return Change(Hashes(hashes.data(), CoveredOrAll(hashes.size(), absent)), WordsFrom(absent, 0), false);
}

// `hash_of(i)` is asked for keys whose counters are all full under spill only.
template <class HashOf>
void CountingFilter::Counts(const KeySpan& keys, uint32_t* counts, const HashOf& hash_of) const noexcept {
  if (counting_ops_ == nullptr) {
    std::fill_n(counts, keys.size, uint32_t{0});
    return;
  }
  counting_ops_->count_batch(bits_, keys, counts);
  if (spill_ == nullptr) return;
  const uint64_t max = kernels::CounterMax(kernels::CounterBits(layout_));
  for (size_t i = 0; i < keys.size; ++i) {
    if (counts[i] == max) counts[i] = Narrow(CountHash(hash_of(i)));
  }
}

template <class Strings>
void CountingFilter::CountStrings(const Strings& keys, std::span<uint32_t> counts) const noexcept {
  ForHashChunks(keys, std::min(keys.size(), counts.size()), bits_.seed, [&](size_t first, const KeySpan& hashes) {
    const auto* values = static_cast<const uint64_t*>(hashes.data);
    Counts(hashes, counts.data() + first, [&](size_t i) { return values[i]; });
  });
}

void CountingFilter::CountBatch(std::span<const uint64_t> keys, std::span<uint32_t> counts) const noexcept {
  Counts(detail::Keys(keys, 0, std::min(keys.size(), counts.size())), counts.data(),
         [&](size_t i) { return detail::MixMasked(detail::KeyAt(keys, i), key_mask_); });
}
void CountingFilter::CountBatch(std::span<const uint32_t> keys, std::span<uint32_t> counts) const noexcept {
  Counts(detail::Keys(keys, 0, std::min(keys.size(), counts.size())), counts.data(),
         [&](size_t i) { return detail::MixMasked(detail::KeyAt(keys, i), key_mask_); });
}
void CountingFilter::CountBatch(std::span<const std::string_view> keys, std::span<uint32_t> counts) const noexcept {
  CountStrings(keys, counts);
}
void CountingFilter::CountBatch(std::span<const std::string> keys, std::span<uint32_t> counts) const noexcept {
  CountStrings(keys, counts);
}
void CountingFilter::CountBatch(const BinaryColumn& keys, std::span<uint32_t> counts) const noexcept {
  CountStrings(keys, counts);
}
void CountingFilter::CountHashBatch(std::span<const uint64_t> hashes, std::span<uint32_t> counts) const noexcept {
  Counts(Hashes(hashes.data(), std::min(hashes.size(), counts.size())), counts.data(),
         [&](size_t i) { return detail::KeyAt(hashes, i); });
}

OverflowReport CountingFilter::Overflow() const noexcept {
  OverflowReport report;
  report.policy = policy_;
  if (bits_.blocks == 0) return report;
  const int bits = kernels::CounterBits(layout_);
  report.counters = bits_.blocks * static_cast<uint64_t>(CellsPerBlock(layout_));
  for (const uint64_t word : words()) {
    report.full_counters += static_cast<uint64_t>(std::popcount(detail::CountersFull(bits, word)));
  }
  if (spill_ != nullptr) {
    report.spilled_counters = spill_->entries().size();
    report.spilled_keys = spill_->total();
    report.spill_bytes = spill_->MemoryBytes();
  }
  report.predicted_any = CounterOverflowChance(layout_, bits_.blocks, inserted_);
  return report;
}

}  // namespace bloomline
