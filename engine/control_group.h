// The control groups that this process is in.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bloomline::detail {

// Where the kernel describes them. Tests bring their own.
struct ControlGroupFiles {
  std::string groups = "/proc/self/cgroup";  // names the groups
  std::string v2_root = "/sys/fs/cgroup";
  std::string v1_memory_root = "/sys/fs/cgroup/memory";
  std::string v1_cpu_root = "/sys/fs/cgroup/cpu";
};

// Calls visit(directory) for the process's group of `controller` and its ancestors up to the mount's root, in each
// hierarchy that it is in; `v1_root` is where the old one of this controller is mounted. is_v2 says which files to look
// for. Inside a container the groups file may name a path that is mounted elsewhere: directories need not exist, and
// the root is always visited.
void ForControlGroups(const ControlGroupFiles& files, const std::string& controller, const std::string& v1_root,
                      const std::function<void(const std::string& directory, bool is_v2)>& visit);

// How many CPUs' time the groups allow: the lowest quota over period (v2: cpu.max; v1: cpu.cfs_quota_us and
// cpu.cfs_period_us). Empty where none is set or none can be read.
std::optional<double> ControlGroupCpus(const ControlGroupFiles& files = {});

}  // namespace bloomline::detail
