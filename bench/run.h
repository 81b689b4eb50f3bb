// Measures one case.
#pragma once

#include "bench/cases.h"

namespace bloomline::bench {

// Registers the case with Google Benchmark under its name.
void Register(const Case& c);

// Whether any measured case failed its checks or could not run.
bool AnyFailed();

}  // namespace bloomline::bench
