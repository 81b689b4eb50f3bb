// What the tests on several NUMA nodes know of the machine, asked of the kernel and not of the library: nodes by /sys,
// the nodes of pages by move_pages. tools/numa_vm.sh is a machine that has what they need, and there its lack is a
// failure: BLOOMLINE_EXPECT_NODES and BLOOMLINE_EXPECT_HUGEPAGES say that it is that machine.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/memory.h"
#include "bloomline/topology.h"

namespace bloomline::test {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// The number in an environment variable, 0 where it is not set.
inline int Expected(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoi(value);
}
inline int ExpectedNodes() { return Expected("BLOOMLINE_EXPECT_NODES"); }
inline bool ExpectHugePages() { return Expected("BLOOMLINE_EXPECT_HUGEPAGES") != 0; }

inline std::string LineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0-1,4" as numbers.
inline std::vector<int> ParseList(const std::string& list) {
  std::vector<int> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int found = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (found < 1) continue;
    for (int i = first; i <= (found == 2 ? last : first); ++i) numbers.push_back(i);
  }
  return numbers;
}

struct KernelNode {
  int number = 0;
  std::vector<int> cpus;
  std::vector<uint64_t> distances;
};

// The nodes that have CPUs.
inline std::vector<KernelNode> KernelNodes() {
  const std::string root = "/sys/devices/system/node/";
  std::vector<KernelNode> nodes;
  for (const int number : ParseList(LineOf(root + "online"))) {
    const std::string directory = root + "node" + std::to_string(number) + "/";
    KernelNode node{number, ParseList(LineOf(directory + "cpulist")), {}};
    std::istringstream distances(LineOf(directory + "distance"));
    for (uint64_t distance = 0; distances >> distance;) node.distances.push_back(distance);
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

// The node of each page that [begin, begin + bytes) lies on, or −errno (−ENOENT: not there yet).
inline std::vector<int> NodesOfPages(const void* begin, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = reinterpret_cast<uintptr_t>(begin) / page * page;
  const uint64_t last = reinterpret_cast<uintptr_t>(begin) + bytes;
  std::vector<void*> pages;
  for (uint64_t at = first; at < last; at += page) pages.push_back(reinterpret_cast<void*>(at));
  std::vector<int> nodes(pages.size(), -EINVAL);
  if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) < 0) {
    ADD_FAILURE() << "move_pages: " << std::strerror(errno);
  }
  return nodes;
}

// How many bytes lie on which node. Pages that are not there yet are left out.
inline std::map<int, uint64_t> BytesPerNode(const void* begin, uint64_t bytes) {
  std::map<int, uint64_t> sums;
  for (const int node : NodesOfPages(begin, bytes)) {
    if (node != -ENOENT && node != -EFAULT) sums[node] += static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return sums;
}
inline std::map<int, uint64_t> BytesPerNode(const FilterReader& filter) {
  return BytesPerNode(filter.words().data(), filter.memory_bytes());
}
inline std::map<int, uint64_t> ReportedNodes(const MemoryReport& report) {
  std::map<int, uint64_t> sums;
  for (const MemoryReport::NodeShare& share : report.nodes) sums[share.node] = share.bytes;
  return sums;
}

inline cpu_set_t* SetOf(const std::vector<int>& cpus, cpu_set_t* set) {
  CPU_ZERO(set);
  for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), set);
  return set;
}

// Keeps the calling thread on these CPUs as long as it lives.
class Pinned {
 public:
  explicit Pinned(const std::vector<int>& cpus) {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0) << std::strerror(errno);
    EXPECT_EQ(sched_setaffinity(0, sizeof set, SetOf(cpus, &set)), 0) << std::strerror(errno);
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

// Runs `work` on a thread of its own that stays on these CPUs.
template <class Work>
void OnCpus(const std::vector<int>& cpus, Work work) {
  std::thread([&] {
    const Pinned pinned(cpus);
    work();
  }).join();
}

// Whether this process may bind memory and ask where it is (containers often forbid both).
inline bool MayPlaceMemory() {
  alignas(64) static char here[64];
  here[0] = 1;
  void* page = here;
  int node = -1;
  if (syscall(SYS_move_pages, 0, 1, &page, nullptr, &node, 0) < 0) return false;
  const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool allowed = syscall(SYS_mbind, memory, bytes, 0, nullptr, 0, 0) == 0;  // MPOL_DEFAULT
  munmap(memory, bytes);
  return allowed;
}

// Tests of this kind need two nodes that this process may use.
class OnNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    nodes_ = KernelNodes();
    if (ExpectedNodes() != 0) {
      ASSERT_EQ(nodes_.size(), static_cast<size_t>(ExpectedNodes())) << "NUMA nodes of this machine";
      ASSERT_TRUE(MayPlaceMemory());
      return;
    }
    if (nodes_.size() < 2) {
      GTEST_SKIP() << "this machine has " << nodes_.size() << " NUMA node with CPUs; tools/test.sh makes one of two";
    }
    if (Topology::Machine()->nodes().size() != nodes_.size()) {
      GTEST_SKIP() << "this process may use " << Topology::Machine()->nodes().size() << " of " << nodes_.size()
                   << " NUMA nodes";
    }
    if (!MayPlaceMemory()) GTEST_SKIP() << "this process may not bind memory or ask where it is";
  }
  // All of a filter's bytes on one node.
  static std::map<int, uint64_t> AllOn(int node, uint64_t bytes) { return {{node, bytes}}; }

  std::vector<KernelNode> nodes_;
};

// A split512 filter of exactly `bytes`.
inline FilterConfig ConfigOfBytes(uint64_t bytes, const MemoryPolicy& policy) {
  return FilterConfig::ForBits(bytes * 8).WithMemory(policy);
}
inline MemoryPolicy Policy(Placement placement, int node = 0, Pages pages = Pages::kDefault) {
  MemoryPolicy policy;
  policy.placement = placement;
  policy.node = node;
  policy.pages = pages;
  return policy;
}

}  // namespace bloomline::test
