#include "bench/context.h"

#include <benchmark/benchmark.h>
#include <sys/utsname.h>

#include <fstream>
#include <string>

#include "bench/commit.h"  // made by the build
#include "bloomline/bloomline.h"
#include "bloomline/topology.h"
#include "engine/topology.h"

#ifndef BLOOMLINE_BENCH_FLAGS
#define BLOOMLINE_BENCH_FLAGS "unknown"
#endif

namespace bloomline::bench {
namespace {

constexpr const char* kUnknown = "unknown";

std::string FirstLine(const char* file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line.empty() ? kUnknown : line;
}

// The value of a "name : value" line.
std::string CpuInfo(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return kUnknown;
}

// "always [madvise] never" → "madvise".
std::string Bracketed(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? line : line.substr(open + 1, close - open - 1);
}

const char* Compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return kUnknown;
#endif
}

}  // namespace

void AddContext(std::string_view target) {
  using benchmark::AddCustomContext;
  const detail::CacheSizes& caches = detail::MachineCaches();
  AddCustomContext("cpu", CpuInfo("model name"));
  AddCustomContext("cpu_family_model_stepping",
                   CpuInfo("cpu family") + "/" + CpuInfo("model\t") + "/" + CpuInfo("stepping"));
  AddCustomContext("l1d_bytes", std::to_string(caches.l1));
  AddCustomContext("l2_bytes", std::to_string(caches.l2));
  AddCustomContext("l3_bytes", std::to_string(caches.l3));
  AddCustomContext("numa_nodes", std::to_string(Topology::Machine()->nodes().size()));
  AddCustomContext("governor", FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  AddCustomContext("transparent_huge_pages", Bracketed(FirstLine("/sys/kernel/mm/transparent_hugepage/enabled")));
  utsname system = {};
  AddCustomContext("kernel", uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : kUnknown);
  AddCustomContext("compiler", Compiler());
  AddCustomContext("flags", BLOOMLINE_BENCH_FLAGS);
  AddCustomContext("bloomline_version", Version());
  AddCustomContext("commit", BLOOMLINE_COMMIT);
  AddCustomContext("target", std::string(target));
}

}  // namespace bloomline::bench
