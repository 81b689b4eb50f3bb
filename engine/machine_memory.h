// How much memory this process can have at the most: the machine's, or less where a control group says so.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "engine/control_group.h"

namespace bloomline::detail {

struct MemoryLimit {
  uint64_t bytes = 0;  // UINT64_MAX where nothing is known
  std::string owner;   // whose limit, for messages: "this machine", "this process's control group"
};

// The lower of the machine's physical memory and the control group's limit.
MemoryLimit ReadMemoryLimit();

// What the machine could give now without pushing anybody out: free memory, caches that can be dropped, free swap. 0
// where the file, in the format of /proc/meminfo, does not say.
uint64_t AvailableMemory(const char* meminfo_file = "/proc/meminfo");

// The lowest limit from this process's control group up to the root, both hierarchies (v2: memory.max, v1:
// memory.limit_in_bytes). Empty where none is set or none can be read.
std::optional<uint64_t> ControlGroupLimit(const ControlGroupFiles& files = {});

// An empty string with room for any line of the files that the kernel writes: streams take the failure of an allocation
// for the end of the file.
std::string LineBuffer();
// A file of /proc or /sys open for reading; as any stream's, its state says whether it is there. Throws std::bad_alloc,
// which the stream alone would report as a missing file.
std::ifstream OpenSystemFile(const std::string& path);

// "1234 bytes (1.2 KiB)": sizes in messages.
std::string FormatBytes(uint64_t bytes);

}  // namespace bloomline::detail
