// Which filters can be combined.
#pragma once

#include "bloomline/error.h"
#include "bloomline/filter.h"

namespace bloomline::detail {

// Error(kMismatch) with both values where two filters differ in layout, k, blocks, seed, key kind or overflow policy.
Status RequireSameShape(const FilterReader& a, const FilterReader& b);

}  // namespace bloomline::detail
