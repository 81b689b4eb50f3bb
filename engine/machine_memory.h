// How much memory this process can have at the most: the machine's, or less where a control group says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bloomline::detail {

struct MemoryLimit {
  uint64_t bytes = 0;  // UINT64_MAX where nothing is known
  std::string owner;   // whose limit, for messages: "this machine", "this process's control group"
};

// The lower of the machine's physical memory and the control group's limit.
MemoryLimit ReadMemoryLimit();

// The lowest limit from this process's control group up to the root, both hierarchies (v2: memory.max, v1:
// memory.limit_in_bytes). Empty where none is set or none can be read. The arguments are the file that names the groups
// and the mount points, so that tests can bring their own.
std::optional<uint64_t> ControlGroupLimit(const std::string& groups_file = "/proc/self/cgroup",
                                          const std::string& v2_root = "/sys/fs/cgroup",
                                          const std::string& v1_root = "/sys/fs/cgroup/memory");

// "1234 bytes (1.2 KiB)": sizes in messages.
std::string FormatBytes(uint64_t bytes);

}  // namespace bloomline::detail
