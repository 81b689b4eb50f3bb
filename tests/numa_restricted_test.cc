// Processes in control groups that have part of the machine's nodes. The topology is read once per process, so the
// tests run this program anew inside the group. See numa_util.h for the machine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/memory.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "tests/numa_util.h"
#include "tests/test_util.h"

namespace bloomline::test {
namespace {

constexpr uint64_t kBytes = 4 * kMiB;
constexpr int kCannot = 77;  // exit status: the restriction itself is not to be had here
constexpr Placement kPlacements[] = {Placement::kAuto, Placement::kLocal,     Placement::kInterleave,
                                     Placement::kBind, Placement::kReplicate, Placement::kPartition};

bool Write(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

std::string ListOf(const std::vector<int>& numbers) {
  std::string list;
  for (const int number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  return list;
}

// A control group with some of the machine's CPUs and nodes, as long as it lives.
class Cpuset {
 public:
  Cpuset(const std::vector<int>& cpus, const std::vector<int>& nodes) {
    const std::string root = "/sys/fs/cgroup/";
    path_ = root + "bloomline_test_" + std::to_string(getpid()) + "/";
    EXPECT_TRUE(Write(root + "cgroup.subtree_control", "+cpuset"));
    EXPECT_EQ(mkdir(path_.c_str(), 0755), 0) << path_;
    EXPECT_TRUE(Write(path_ + "cpuset.cpus", ListOf(cpus)));
    EXPECT_TRUE(Write(path_ + "cpuset.mems", ListOf(nodes)));
  }
  ~Cpuset() { rmdir(path_.c_str()); }
  Cpuset(const Cpuset&) = delete;
  Cpuset& operator=(const Cpuset&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool Enter(const std::string& group) { return Write(group + "cgroup.procs", std::to_string(getpid())); }

// Runs this program's scenario `name` (below) in a process of its own, in `group` unless that is empty.
int RunScenario(const std::string& name, const std::string& group = "", const std::string& later_group = "") {
  const pid_t child = fork();
  if (child == 0) {
    if (!group.empty() && !Enter(group)) _exit(kCannot);
    setenv("BLOOMLINE_SCENARIO", name.c_str(), 1);
    setenv("BLOOMLINE_SCENARIO_GROUP", later_group.c_str(), 1);
    execl("/proc/self/exe", "numa_restricted_test", static_cast<char*>(nullptr));
    _exit(kCannot);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ---- What is expected inside. EXPECT_… counts outside of tests too: main returns it.

void ExpectHolds(Filter& filter) {
  const std::vector<uint64_t> keys = Random(1).Take(1000);
  filter.InsertBatch(keys);
  std::vector<uint64_t> bitmap(BitmapWords(keys.size()));
  filter.MayContainBatch(keys, bitmap);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(BitOf(bitmap, i)) << i;
}

// The process may use the CPUs of its affinity and memory of `nodes`: every placement works and stays there.
void ExpectToWorkOn(const std::vector<int>& nodes) {
  const Topology& machine = *Topology::Machine();
  EXPECT_FALSE(machine.synthetic());
  for (const Placement placement : kPlacements) {
    for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
      SCOPED_TRACE(PlacementName(placement));
      Filter filter(ConfigOfBytes(kBytes, Policy(placement, machine.nodes().front().number, pages)));
      ExpectHolds(filter);
      for (const auto& [node, bytes] : BytesPerNode(filter)) {
        EXPECT_NE(std::find(nodes.begin(), nodes.end(), node), nodes.end()) << node << ": " << bytes << " bytes";
      }
      EXPECT_EQ(filter.memory().resident_bytes, kBytes * static_cast<uint64_t>(filter.memory().copies));
    }
  }
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  ThreadPool pool;
  EXPECT_EQ(pool.threads(), CPU_COUNT(&usable));
  EXPECT_TRUE(pool.pinned()) << pool.note();
  std::vector<int> cpu_of(static_cast<size_t>(pool.threads()), -1);
  pool.Run([&](int thread) { cpu_of[static_cast<size_t>(thread)] = sched_getcpu(); });
  for (const int cpu : cpu_of) EXPECT_TRUE(CPU_ISSET(static_cast<unsigned>(cpu), &usable)) << cpu;
}

// In a group that has one node's CPUs and memory.
void OneNode() {
  const Topology& machine = *Topology::Machine();
  ASSERT_EQ(machine.nodes().size(), 1U);
  const NumaNode& node = machine.nodes().front();
  for (const KernelNode& other : KernelNodes()) {
    if (other.number == node.number) {
      EXPECT_EQ(node.cpus, other.cpus);
      continue;
    }
    const Result<Filter> filter = Filter::Create(ConfigOfBytes(kMiB, Policy(Placement::kBind, other.number)));
    ASSERT_FALSE(filter.ok());
    EXPECT_EQ(filter.error().code(), ErrorCode::kInvalidArgument);
  }
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  for (const int cpu : node.cpus) EXPECT_TRUE(CPU_ISSET(static_cast<unsigned>(cpu), &usable)) << cpu;
  ExpectToWorkOn({node.number});
}

// In a group that has the CPUs of the last node, and the memory of all.
void CpusOfTheLastNode() {
  std::vector<int> all;
  for (const KernelNode& node : KernelNodes()) all.push_back(node.number);
  ExpectToWorkOn(all);
  const Filter filter(ConfigOfBytes(kBytes, Policy(Placement::kLocal)));
  EXPECT_EQ(BytesPerNode(filter), (std::map<int, uint64_t>{{all.back(), kBytes}}));
}

// In a group that has all CPUs, and the memory of the first node.
void MemoryOfTheFirstNode() { ExpectToWorkOn({KernelNodes().front().number}); }

// Moved into a group with the first node's memory only, after the topology was read.
void MovedLater() {
  const std::vector<KernelNode> kernel = KernelNodes();
  ASSERT_EQ(Topology::Machine()->nodes().size(), kernel.size());
  ASSERT_TRUE(Enter(std::getenv("BLOOMLINE_SCENARIO_GROUP")));
  ExpectToWorkOn({kernel.front().number});
  Filter bound(ConfigOfBytes(kBytes, Policy(Placement::kBind, kernel.back().number)));
  ExpectHolds(bound);
  EXPECT_NE(bound.memory().note, "") << "the wish was not granted";
  EXPECT_EQ(BytesPerNode(bound), (std::map<int, uint64_t>{{kernel.front().number, kBytes}}));
}

// As in many containers: the system calls that place memory and threads are refused, those that ask are not.
bool ForbidPlacing() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_mempolicy, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_move_pages, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(rules)), rules};  // NOLINT(google-runtime-int)
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void PlacingForbidden() {
  if (!ForbidPlacing()) std::exit(kCannot);
  ASSERT_FALSE(MayPlaceMemory());
  const Topology& machine = *Topology::Machine();
  ASSERT_EQ(machine.nodes().size(), KernelNodes().size());
  for (const Placement placement : kPlacements) {
    SCOPED_TRACE(PlacementName(placement));
    Filter filter(ConfigOfBytes(kBytes, Policy(placement, machine.nodes().back().number)));
    ExpectHolds(filter);
    const MemoryReport report = filter.memory();
    EXPECT_EQ(report.resident_bytes, kBytes * static_cast<uint64_t>(report.copies));
    if (placement != Placement::kAuto && placement != Placement::kLocal) {
      EXPECT_NE(report.note.find("refused"), std::string::npos) << report.note;
    }
  }
  ThreadPool pool(2);
  EXPECT_EQ(pool.threads(), 2);
  EXPECT_FALSE(pool.pinned());
  EXPECT_NE(pool.note(), "");
  const std::vector<uint64_t> keys = Random(1).Take(100'000);
  Filter filter(ConfigOfBytes(kBytes, Policy(Placement::kPartition)));
  filter.InsertBulk(keys, pool);
  std::vector<uint64_t> bitmap(BitmapWords(keys.size()));
  filter.MayContainBatch(keys, bitmap, pool);
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(BitOf(bitmap, i)) << i;
}

// ---- The tests.

class InControlGroups : public OnNodes {
 protected:
  void SetUp() override {
    if (ExpectedNodes() == 0) GTEST_SKIP() << "control groups are made in the machine of tools/numa_vm.sh only";
    OnNodes::SetUp();
    for (const KernelNode& node : nodes_) {
      all_cpus_.insert(all_cpus_.end(), node.cpus.begin(), node.cpus.end());
      all_nodes_.push_back(node.number);
    }
  }
  std::vector<int> all_cpus_;
  std::vector<int> all_nodes_;
};

TEST_F(InControlGroups, OneNode) {
  for (const KernelNode& node : nodes_) {
    const Cpuset group(node.cpus, {node.number});
    EXPECT_EQ(RunScenario("OneNode", group.path()), 0) << "node " << node.number;
  }
}

TEST_F(InControlGroups, CpusOfOneNodeMemoryOfAll) {
  const Cpuset group(nodes_.back().cpus, all_nodes_);
  EXPECT_EQ(RunScenario("CpusOfTheLastNode", group.path()), 0);
}

TEST_F(InControlGroups, CpusOfAllNodesMemoryOfOne) {
  const Cpuset group(all_cpus_, {nodes_.front().number});
  EXPECT_EQ(RunScenario("MemoryOfTheFirstNode", group.path()), 0);
}

TEST_F(InControlGroups, MovedWhenTheTopologyWasRead) {
  const Cpuset group(all_cpus_, {nodes_.front().number});
  EXPECT_EQ(RunScenario("MovedLater", "", group.path()), 0);
}

class Forbidden : public OnNodes {};

TEST_F(Forbidden, BindingMemoryAndThreads) {
  const int status = RunScenario("PlacingForbidden");
  if (status == kCannot && ExpectedNodes() == 0) GTEST_SKIP() << "no filter of system calls is to be had here";
  EXPECT_EQ(status, 0);
}

int Scenario(const std::string& name) {
  if (name == "OneNode") OneNode();
  if (name == "CpusOfTheLastNode") CpusOfTheLastNode();
  if (name == "MemoryOfTheFirstNode") MemoryOfTheFirstNode();
  if (name == "MovedLater") MovedLater();
  if (name == "PlacingForbidden") PlacingForbidden();
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

}  // namespace
}  // namespace bloomline::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const char* const scenario = std::getenv("BLOOMLINE_SCENARIO"); scenario != nullptr) {
    return bloomline::test::Scenario(scenario);
  }
  return RUN_ALL_TESTS();
}
