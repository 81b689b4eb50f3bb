#include "engine/control_group.h"

#include <algorithm>
#include <fstream>

#include "engine/machine_memory.h"

namespace bloomline::detail {
namespace {

std::optional<double> ReadNumber(const std::string& path) {
  std::ifstream file = OpenSystemFile(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// Quota over period as one group says it; empty: no quota.
std::optional<double> CpusOf(const std::string& directory, bool is_v2) {
  double quota = 0;
  double period = 0;
  if (is_v2) {
    std::ifstream file = OpenSystemFile(directory + "/cpu.max");  // "200000 100000" or "max 100000"
    if (!(file >> quota >> period)) return std::nullopt;
  } else {
    quota = ReadNumber(directory + "/cpu.cfs_quota_us").value_or(-1);  // -1: none
    period = ReadNumber(directory + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

void ForControlGroups(const ControlGroupFiles& files, const std::string& controller, const std::string& v1_root,
                      const std::function<void(const std::string& directory, bool is_v2)>& visit) {
  std::ifstream groups = OpenSystemFile(files.groups);
  std::string line = LineBuffer();
  while (std::getline(groups, line)) {
    // hierarchy:controllers:path; hierarchy 0 without controllers is v2.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string& root = is_v2 ? files.v2_root : v1_root;
    std::string group = line.substr(second + 1);
    while (true) {
      while (!group.empty() && group.back() == '/') group.pop_back();
      visit(root + group, is_v2);
      if (group.empty()) break;
      const size_t slash = group.rfind('/');
      group.resize(slash == std::string::npos ? 0 : slash);
    }
  }
}

std::optional<double> ControlGroupCpus(const ControlGroupFiles& files) {
  std::optional<double> lowest;
  ForControlGroups(files, "cpu", files.v1_cpu_root, [&](const std::string& directory, bool is_v2) {
    const std::optional<double> cpus = CpusOf(directory, is_v2);
    if (cpus) lowest = std::min(lowest.value_or(*cpus), *cpus);
  });
  return lowest;
}

}  // namespace bloomline::detail
