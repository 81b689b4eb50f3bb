// What fpr_model.h offers for the layouts, for any shape of block (counting layouts too).
#pragma once

#include <cstdint>

#include "bloomline/layout.h"
#include "engine/block_rates.h"

namespace bloomline::detail {

// The FPR where a block receives Poisson(keys_per_block) keys: the limit of many blocks. NaN for NaN or below 0.
double FprAtLoad(const BlockRates& rates, double keys_per_block);
// n keys in `blocks` blocks; 1 where there are no blocks.
double FprOfBlocks(const BlockRates& rates, uint64_t blocks, uint64_t n);
// The fewest blocks, up to `max_blocks`, whose FPR at n keys is at most `fpr`; 0 where none is.
uint64_t FewestBlocks(const BlockRates& rates, uint64_t max_blocks, uint64_t n, double fpr);

// The largest number of blocks that a layout can address: 2^32 − 1, split256 2^26.
uint64_t MaxBlocks(Layout layout) noexcept;

}  // namespace bloomline::detail
