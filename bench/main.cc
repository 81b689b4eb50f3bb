// bloomline_bench: the benchmark suite. Options of its own besides Google Benchmark's; `--help` lists both.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/baselines.h"
#include "bench/cases.h"
#include "bench/concurrent.h"
#include "bench/context.h"
#include "bench/needed_limits.h"
#include "bench/run.h"

namespace {

constexpr int kUsage = 2;

// What runs where no filter is given: the base rows, strings and threads; with --target all, other targets too.
constexpr const char* kDefaultFilter = "-/(hit|target:|on:|pages:|sweep|oracle|shared|pool:)";
constexpr const char* kAllTargetsFilter = "-/(hit|on:|pages:|sweep|oracle|shared|pool:)";

void PrintHelp() {
  std::printf(
      "bloomline_bench: how fast the filters are, against what the machine allows (limit/* rows)\n"
      "  --target NAME   SIMD target of the rows without /target:NAME; best (default), %s\n"
      "                  (BLOOMLINE_TARGET does the same); all: best, and the rows of every other target\n"
      "  --all           run every row, and every k of every layout at 1 MiB\n"
      "  --version\n"
      "Without --benchmark_filter: base rows, strings and threads. The filter reaches all others, and takes\n"
      "the limits of the rows that it matches along (unless it begins with '-'):\n"
      "  /hit0 /hit100   share of the lookups that are members; base rows: half\n"
      "  /target:NAME    another SIMD target, with its own limits\n"
      "  /oracle         the scalar oracle in place of the library\n"
      "  /pages:4k       no huge pages\n"
      "  /on:LAYOUT      limit/hash_touch on the very pages of that layout's filter (512 MiB)\n"
      "  /shared /pool:N ConcurrentFilter's inserts on one thread; a thread pool of N\n"
      "  /sweep          lookups and their limit at every power of two from 32 KiB to 1 GiB\n"
      "Exit status: 0 done; 1 a row failed its checks, or none matched; 2 usage.\n\n",
      [] {
        static std::string names;
        for (const std::string& name : bloomline::SupportedTargets()) names += (names.empty() ? "" : ", ") + name;
        return names.c_str();
      }());
  benchmark::PrintDefaultHelp();
}

int Usage(const std::string& message) {
  std::fprintf(stderr, "bloomline_bench: %s\n", message.c_str());
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  bloomline::bench::SuiteOptions options;
  std::string forced;
  bool all_targets = false;
  std::vector<char*> others;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--all") {
      options.all = true;
    } else if (argument == "--version") {
      std::printf("bloomline_bench %s\n", bloomline::Version());
      return 0;
    } else if (argument == "--target") {
      if (i + 1 == argc) return Usage("--target needs a name");
      forced = argv[++i];
    } else if (argument.starts_with("--target=")) {
      forced = argument.substr(std::strlen("--target="));
    } else {
      others.push_back(argv[i]);
    }
  }
  if (forced == "all") {
    all_targets = true;
    forced.clear();
  }
  if (const bloomline::Status status = bloomline::TryForceTarget(forced); !status.ok()) {
    return Usage(status.error().what());
  }
  const bloomline::Result<std::string> target = bloomline::TryChosenTarget();
  if (!target.ok()) return Usage(target.error().what());
  options.target = target.value();

  int other_count = static_cast<int>(others.size());
  others.push_back(nullptr);
  benchmark::Initialize(&other_count, others.data(), PrintHelp);
  if (benchmark::ReportUnrecognizedArguments(other_count, others.data())) return kUsage;

  bloomline::bench::AddContext(options.target);
  for (const bloomline::bench::Case& c : bloomline::bench::MakeSuite(options)) bloomline::bench::Register(c);
  bloomline::bench::RegisterConcurrent(options.target);
  bloomline::bench::RegisterBaselines();
  std::string filter = benchmark::GetBenchmarkFilter();
  if (filter.empty() && !options.all) filter = all_targets ? kAllTargetsFilter : kDefaultFilter;
  benchmark::SetBenchmarkFilter(bloomline::bench::WithLimits(filter, bloomline::bench::RowNames()));
  const size_t matched = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return matched == 0 || bloomline::bench::AnyFailed() ? 1 : 0;
}
