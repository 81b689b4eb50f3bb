// The engine's door to a filter's fields: for what makes filters from files and files from filters.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "engine/spill_table.h"
#include "engine/storage.h"

namespace bloomline {

struct FilterAccess {
  // What a filter is, without its bits.
  struct Shape {
    Layout layout = Layout::kSplit512;
    int k = 8;
    uint64_t blocks = 1;
    uint64_t seed = 0;
    KeyKind key_kind = KeyKind::kUnspecified;
    uint64_t expected_keys = 0;
    double target_fpr = 0;
    uint64_t inserted = 0;
    OverflowPolicy policy = OverflowPolicy::kNone;
  };

  // A Filter, CountingFilter or FilterView of this shape over `words`, which are `storage`'s or, where that is empty,
  // the caller's. The kernels are those of the process's target.
  template <class T>
  static Result<T> Make(const Shape& shape, uint64_t* words, std::unique_ptr<detail::Storage> storage,
                        std::unique_ptr<detail::SpillTable> spill = nullptr) {
    T filter;
    FilterReader& reader = filter;
    reader.layout_ = shape.layout;
    reader.k_ = shape.k;
    reader.bits_.words = words;
    reader.bits_.blocks = shape.blocks;
    reader.bits_.seed = shape.seed;
    reader.key_kind_ = shape.key_kind;
    reader.expected_keys_ = shape.expected_keys;
    reader.target_fpr_ = shape.target_fpr;
    reader.inserted_ = shape.inserted;
    reader.policy_ = shape.policy;
    reader.storage_ = std::move(storage);
    reader.spill_ = std::move(spill);
    if (Status bound = reader.Bind(""); !bound.ok()) return bound.error();
    reader.CopyToReplicas();
    return Result<T>(std::move(filter));
  }

  static const detail::Replicas* ReplicasOf(const FilterReader& filter) noexcept { return filter.bits_.replicas; }

  // The same filter with the operations that only counters have.
  static Result<CountingFilter> Bound(Result<CountingFilter> filter) {
    if (filter.ok()) {
      if (Status bound = filter->BindCounting(); !bound.ok()) return bound.error();
    }
    return filter;
  }
};

}  // namespace bloomline
