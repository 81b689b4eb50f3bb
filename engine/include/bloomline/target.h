// SIMD targets by Highway's names: which were compiled, which this CPU runs, which one filters use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bloomline/error.h"
#include "bloomline/export.h"

namespace bloomline {

// Throw Error(kOutOfMemory). Names, best first, e.g. {"AVX3_DL", "AVX3", "AVX2", "SSE4", "SSSE3", "SCALAR"}.
BLOOMLINE_API std::vector<std::string> CompiledTargets();
BLOOMLINE_API std::vector<std::string> SupportedTargets();

// The target that filters made from now on use: the one forced, else BLOOMLINE_TARGET from the environment, else the
// best supported. An error where BLOOMLINE_TARGET names something that is not supported.
BLOOMLINE_API Result<std::string> TryChosenTarget();

// Forces a target for all filters made later in this process; "best" or "" ends that. Any case; EMU128 means SCALAR.
// Thread-safe. Filters that exist keep theirs.
BLOOMLINE_API Status TryForceTarget(std::string_view name);

}  // namespace bloomline
