// Measures one case.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/cases.h"

namespace bloomline::bench {

// The names of all rows, as --benchmark_filter sees them.
const std::vector<std::string>& RowNames();
void NoteRowName(const std::string& name);

// Registers a row, and notes its name for RowNames.
template <class... Arguments>
benchmark::internal::Benchmark* RegisterRow(const std::string& name, Arguments&&... arguments) {
  NoteRowName(name);
  return benchmark::RegisterBenchmark(name.c_str(), std::forward<Arguments>(arguments)...);
}

// Registers the case with Google Benchmark under its name.
void Register(const Case& c);

// Ends a row with an error; the program's exit status then says so.
void FailRow(benchmark::State& state, const std::string& message);

// Whether any measured case failed its checks or could not run.
bool AnyFailed();

}  // namespace bloomline::bench
