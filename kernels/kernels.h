// The tables of kernels: one per (layout, k, target). No Highway here.
#pragma once

#include <string_view>
#include <vector>

#include "bloomline/detail/block_ops.h"
#include "bloomline/layout.h"
#include "bloomline/overflow_policy.h"

namespace bloomline::kernels {

// Highway's names of the targets, best first; EMU128 is called SCALAR. The views live as long as the program.
std::vector<std::string_view> CompiledTargetNames();
std::vector<std::string_view> SupportedTargetNames();  // of these, what this CPU runs

// The kernels of a layout on a target as named above; nullptr where k does not fit the layout or the CPU cannot run
// the target.
const detail::BlockOps* FindBlockOps(Layout layout, int k, std::string_view target);
// What counting layouts have beside lookups; nullptr for other layouts, OverflowPolicy::kNone and as above.
const detail::CountingOps* FindCountingOps(Layout layout, OverflowPolicy policy, std::string_view target);

}  // namespace bloomline::kernels
