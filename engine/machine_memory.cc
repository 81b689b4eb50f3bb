#include "engine/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>

namespace bloomline::detail {
namespace {

// The number in a limit file; empty for "max", for anything else that is no number, and for no file.
std::optional<uint64_t> ReadLimitFile(const std::string& path) {
  std::ifstream file = OpenSystemFile(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> ControlGroupLimit(const ControlGroupFiles& files) {
  std::optional<uint64_t> lowest;
  ForControlGroups(files, "memory", files.v1_memory_root, [&](const std::string& directory, bool is_v2) {
    const auto limit = ReadLimitFile(directory + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit) lowest = std::min(lowest.value_or(*limit), *limit);
  });
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

uint64_t AvailableMemory(const char* meminfo_file) {
  std::ifstream file = OpenSystemFile(meminfo_file);
  uint64_t available = 0;
  uint64_t swap = 0;
  for (std::string line = LineBuffer(); std::getline(file, line);) {
    const bool is_available = line.starts_with("MemAvailable:");
    if (!is_available && !line.starts_with("SwapFree:")) continue;
    const uint64_t kib = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    (is_available ? available : swap) = kib * 1024;
  }
  return available == 0 ? 0 : available + swap;
}

std::string LineBuffer() {
  std::string line;
  line.reserve(4096 + 256);
  return line;
}

std::ifstream OpenSystemFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  return file;
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
