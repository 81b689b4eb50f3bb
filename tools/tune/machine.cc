#include "tools/tune/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

#include "bloomline/target.h"
#include "bloomline/version.h"
#include "tools/cli_error.h"

namespace bloomline::cli {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The first processor of /proc/cpuinfo: what x86 and Arm kernels write about the model.
std::string CpuText() {
  struct Field {
    std::string_view key;
    std::string_view label;
  };
  static constexpr std::array<Field, 8> kFields = {{{"model name", ""},
                                                    {"cpu family", "family "},
                                                    {"model", "model "},
                                                    {"stepping", "stepping "},
                                                    {"CPU implementer", "implementer "},
                                                    {"CPU part", "part "},
                                                    {"CPU variant", "variant "},
                                                    {"CPU revision", "revision "}}};
  std::array<std::string, kFields.size()> values;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !Trim(line).empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = Trim(std::string_view(line).substr(0, colon));
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (key == kFields[i].key) values[i] = Trim(std::string_view(line).substr(colon + 1));
    }
  }
  std::string text;
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (!values[i].empty()) text += (text.empty() ? "" : ", ") + std::string(kFields[i].label) + values[i];
  }
  return text.empty() ? "unknown" : text;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// 0 where there is none.
uint64_t Number(std::string_view text) {
  const std::string_view digits = Trim(text);
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string CacheText() {
  std::string text;
  for (int index = 0;; ++index) {
    const std::string directory = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = FirstLine(directory + "level");
    if (level.empty()) break;
    text += (text.empty() ? "L" : ", L") + level + " " + FirstLine(directory + "type") + " " +
            FirstLine(directory + "size");
  }
  if (!text.empty()) return text;
    // Some virtual machines have no such directory; the C library then knows from the CPU itself.
#ifdef _SC_LEVEL1_DCACHE_SIZE
  struct Level {
    const char* name;
    int number;
  };
  for (const Level level : {Level{"L1 Data ", _SC_LEVEL1_DCACHE_SIZE}, Level{"L2 ", _SC_LEVEL2_CACHE_SIZE},
                            Level{"L3 ", _SC_LEVEL3_CACHE_SIZE}}) {
    const long bytes = ::sysconf(level.number);
    if (bytes > 0) text += (text.empty() ? "" : ", ") + std::string(level.name) + std::to_string(bytes / 1024) + "K";
  }
#endif
  return text.empty() ? "unknown" : text;
}

}  // namespace

MachineIdentity ThisMachine() { return {CpuText(), CacheText(), Must(TryChosenTarget()), Version()}; }

uint64_t AvailableMemoryBytes() {
  uint64_t available = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kKey = "MemAvailable:";
    if (line.starts_with(kKey)) available = Number(std::string_view(line).substr(kKey.size())) * 1024;
  }
  // A container's own limit; "max", which reads as 0, where it has none.
  const uint64_t limit = Number(FirstLine("/sys/fs/cgroup/memory.max"));
  const uint64_t used = Number(FirstLine("/sys/fs/cgroup/memory.current"));
  return limit > 0 ? std::min(available, limit - std::min(limit, used)) : available;
}

}  // namespace bloomline::cli
