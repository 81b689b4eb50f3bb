#include "engine/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>

namespace bloomline::detail {
namespace {

// The number in a limit file; empty for "max", for anything else that is no number, and for no file.
std::optional<uint64_t> ReadLimitFile(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The lowest limit of `group` and its ancestors below `root`. Inside a container the groups file may name a path that
// is mounted elsewhere: groups that are not there count as unlimited, the root is always looked at.
std::optional<uint64_t> LowestLimit(const std::string& root, std::string group, const std::string& file_name) {
  std::optional<uint64_t> lowest;
  while (true) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    if (const auto limit = ReadLimitFile(std::string(root).append(group).append("/").append(file_name))) {
      lowest = std::min(lowest.value_or(std::numeric_limits<uint64_t>::max()), *limit);
    }
    if (group.empty()) return lowest;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::optional<uint64_t> ControlGroupLimit(const std::string& groups_file, const std::string& v2_root,
                                          const std::string& v1_root) {
  std::optional<uint64_t> lowest;
  std::ifstream groups(groups_file);
  std::string line;
  while (std::getline(groups, line)) {
    // hierarchy:controllers:path; hierarchy 0 without controllers is v2.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    std::optional<uint64_t> limit;
    if (controllers == ",,") {
      limit = LowestLimit(v2_root, group, "memory.max");
    } else if (controllers.find(",memory,") != std::string::npos) {
      limit = LowestLimit(v1_root, group, "memory.limit_in_bytes");
    }
    if (limit) lowest = std::min(lowest.value_or(std::numeric_limits<uint64_t>::max()), *limit);
  }
  return lowest;
}

MemoryLimit ReadMemoryLimit() {
  MemoryLimit result{std::numeric_limits<uint64_t>::max(), "this machine"};
  const auto pages = sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) result.bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  if (const auto limit = ControlGroupLimit(); limit && *limit < result.bytes) {
    result = {*limit, "this process's control group"};
  }
  return result;
}

std::string FormatBytes(uint64_t bytes) {
  std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (bytes < 1024) return exact;
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, " (%.1f %s)", value, kUnits[unit]);
  return exact + text;
}

}  // namespace bloomline::detail
