// Measures one case.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

#include "bench/cases.h"

namespace bloomline::bench {

// Registers the case with Google Benchmark under its name.
void Register(const Case& c);

// Ends a row with an error; the program's exit status then says so.
void FailRow(benchmark::State& state, const std::string& message);

// Whether any measured case failed its checks or could not run.
bool AnyFailed();

}  // namespace bloomline::bench
