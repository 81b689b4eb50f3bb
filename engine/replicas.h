// Filters with a copy on each NUMA node: tables of operations that stand before the kernels' own. Lookups go to the
// copy of the node that the calling thread runs on, changes to all copies; copy 0 decides what an operation answers.
#pragma once

#include "bloomline/detail/block_ops.h"
#include "bloomline/filter.h"

namespace bloomline::detail {

// They call the kernels in BlockBits::replicas.
const BlockOps& ReplicatedOps() noexcept;
const CountingOps& ReplicatedCountingOps() noexcept;

// The copy that is near the calling thread: an index below replicas.count. No system call: the C library keeps the
// number of the hardware thread in memory (restartable sequences) or asks the vDSO.
size_t NearCopy(const Replicas& replicas) noexcept;

// Makes copies 1 … of `words` words what copy 0 is. Pages that hold no bit in either stay as they are.
void CopyToOthers(const Replicas& replicas, size_t words) noexcept;

// The copies of a filter; null where it has one.
const Replicas* ReplicasOf(const FilterReader& filter) noexcept;

}  // namespace bloomline::detail
