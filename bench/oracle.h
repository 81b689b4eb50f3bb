// The scalar oracle as a batch: what the vector targets must at least be as fast as.
#pragma once

#include <cstdint>
#include <span>

#include "bloomline/detail/block_ops.h"
#include "bloomline/layout.h"

namespace bloomline::bench {

using OracleBatch = void (*)(const detail::BlockBits& bits, std::span<const uint64_t> keys, uint64_t* bitmap);
// nullptr for a (layout, k) that is not among the suite's own.
OracleBatch FindOracleBatch(Layout layout, int k);

}  // namespace bloomline::bench
