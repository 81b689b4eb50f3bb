// A process that is killed while it saves leaves the old file or the new one, whole, and nothing that is in the way of
// the next save. At random moments, more than 200 of them, and at each system call in turn.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/crash_util.h"

namespace bloomline {
namespace {

using test::TempDir;
using Bytes = std::vector<std::byte>;
using Microseconds = std::chrono::duration<double, std::micro>;

// The two contents of the file, and what a child does to put one over the other: it must not return, but end with 0 or
// wait to be killed.
struct Scene {
  Bytes old_bytes;
  Bytes new_bytes;
  std::function<void()> replace;
};

[[noreturn]] void EndOrWait(bool saved) {
  if (!saved) _exit(1);
  for (;;) pause();
}

class SaveKilled : public testing::Test {
 protected:
  std::string File() const { return folder_ / "f"; }

  // How many temporary files lie there. Anything else beside the file and `inputs_` is an error.
  size_t Leftovers() const {
    size_t count = 0;
    for (const std::string& name : folder_.Names()) {
      if (test::IsTemporary(name)) {
        ++count;
      } else {
        EXPECT_TRUE(name == "f" || name.starts_with("input")) << name;
      }
    }
    return count;
  }

  // Lets children replace the file, one after the other, and kills each at a random time; the mean is led to where half
  // of them have replaced it, from the time that one takes undisturbed. Both outcomes must have been seen, and kills
  // between the making of the temporary file and its renaming.
  void KillAtRandom(const Scene& scene, int kills, uint64_t seed) {
    test::Random random(seed);
    double mean_us = ReplaceOnce(scene);
    int before = 0, after = 0, finished = 0, within = 0;
    for (int i = 0; i < kills; ++i) {
      test::WriteBytes(File(), scene.old_bytes);
      const size_t leftovers = Leftovers();
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        scene.replace();
        _exit(2);
      }
      const double delay_us = mean_us * (0.5 + static_cast<double>(random.Below(1 << 20)) / (1 << 20));
      std::this_thread::sleep_for(Microseconds(delay_us));
      ASSERT_EQ(kill(child, SIGKILL), 0);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the child failed: " << WEXITSTATUS(status);
      finished += WIFEXITED(status) ? 1 : 0;
      within += Leftovers() > leftovers ? 1 : 0;

      const Bytes bytes = test::ReadBytes(File());
      ASSERT_TRUE(bytes == scene.old_bytes || bytes == scene.new_bytes) << "kill " << i << ": neither old nor new";
      ASSERT_TRUE(test::IsWhole(File())) << "kill " << i;
      const bool replaced = bytes == scene.new_bytes;
      ASSERT_TRUE(replaced || !WIFEXITED(status)) << "a child that was done had replaced nothing";
      ++(replaced ? after : before);
      const double step = before == 0 || after == 0 ? 1.5 : 1.1;
      mean_us = std::min(2e6, std::max(50.0, replaced ? mean_us / step : mean_us * step));
    }
    std::printf("%d kills: %d before the rename, %d of them with a temporary file; %d after it, %d of them too late\n",
                kills, before, within, after, finished);
    RecordProperty("before", before);
    RecordProperty("after", after);
    EXPECT_GE(before, kills / 10);
    EXPECT_GE(after, kills / 10);
    EXPECT_GE(within, 2);

    // What the kills left is not in the way: the next save works, and makes nothing more of it.
    const size_t leftovers = Leftovers();
    ReplaceOnce(scene);
    EXPECT_EQ(Leftovers(), leftovers);
  }

  // An undisturbed child. Returns the microseconds until the new file was there.
  double ReplaceOnce(const Scene& scene) {
    test::WriteBytes(File(), scene.old_bytes);
    const auto began = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
      scene.replace();
      _exit(2);
    }
    const auto took = [&] { return Microseconds(std::chrono::steady_clock::now() - began).count(); };
    struct stat info {};
    const auto length = static_cast<off_t>(scene.new_bytes.size());
    while (took() < 30e6 && !(stat(File().c_str(), &info) == 0 && info.st_size == length &&
                              test::ReadBytes(File()) == scene.new_bytes)) {
      usleep(500);
    }
    const double us = took();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(test::ReadBytes(File()), scene.new_bytes);
    return us;
  }

  // Kills a child at its N-th stop at a system call, on the way in or out, for every N until it is done.
  void KillAtEverySystemCall(const Scene& scene) {
    int before = 0, after = 0;
    bool done = false;
    for (int stops = 0; !done && stops < 1000; ++stops) {
      test::WriteBytes(File(), scene.old_bytes);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
        raise(SIGSTOP);
        scene.replace();
        _exit(2);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to trace a child";
      for (int stop = 0; WIFSTOPPED(status) && stop < stops; ++stop) {
        ASSERT_EQ(ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
        ASSERT_EQ(waitpid(child, &status, 0), child);
      }
      done = WIFEXITED(status);
      if (done) {
        ASSERT_EQ(WEXITSTATUS(status), 0);
      } else {
        kill(child, SIGKILL);
        ASSERT_EQ(waitpid(child, &status, 0), child);
      }
      const Bytes bytes = test::ReadBytes(File());
      ASSERT_TRUE(bytes == scene.old_bytes || bytes == scene.new_bytes) << "stop " << stops << ": neither old nor new";
      ASSERT_TRUE(test::IsWhole(File())) << "stop " << stops;
      ++(bytes == scene.new_bytes ? after : before);
      Leftovers();
    }
    ASSERT_TRUE(done);
    std::printf("%d kills before the rename, %d after it\n", before, after);
    // In and out of: open, three writes, a sync; and after the rename: open, a sync, a close.
    EXPECT_GE(before, 10);
    EXPECT_GE(after, 6);
  }

  TempDir folder_;
};

TEST_F(SaveKilled, FilterAtRandom) {
  const Filter a = test::SampleFilter(Layout::kSplit512, 8, 30'000, 1000, 1);
  const Filter b = test::SampleFilter(Layout::kLine512, 7, 20'000, 1000, 2);
  KillAtRandom({test::Serialized(a), test::Serialized(b), [&] { EndOrWait(b.TrySave(File()).ok()); }}, 70, 11);
}

TEST_F(SaveKilled, CountingFilterAtRandom) {
  const CountingFilter a = test::SpilledCounting(20'000, 1);
  const CountingFilter b = test::SpilledCounting(20'000, 2);
  KillAtRandom({test::Serialized(a), test::Serialized(b), [&] { EndOrWait(b.TrySave(File()).ok()); }}, 50, 12);
}

TEST_F(SaveKilled, BuildAtRandom) {
  test::WriteLines(folder_ / "input_old", 5000, 1);
  test::WriteLines(folder_ / "input_new", 5000, 2);
  const auto build = [&](const char* keys) {
    return std::vector<std::string>{"build",    "--keys",    folder_ / keys, "--bits-per-key", "40",
                                    "--layout", "counting4", "--overflow",   "spill",          "--expected",
                                    "200000",   "--out",     File()};
  };
  ASSERT_EQ(test::RunCli(build("input_old")), 0);
  const Bytes old_bytes = test::ReadBytes(File());
  ASSERT_EQ(test::RunCli(build("input_new")), 0);
  KillAtRandom({old_bytes, test::ReadBytes(File()), [&] { test::BecomeCli(build("input_new")); }}, 60, 13);
}

TEST_F(SaveKilled, AddAtRandom) {
  test::WriteLines(folder_ / "input_old", 5000, 1);
  test::WriteLines(folder_ / "input_new", 5000, 2);
  ASSERT_EQ(test::RunCli({"build", "--keys", folder_ / "input_old", "--bits-per-key", "40", "--layout", "counting8",
                          "--expected", "200000", "--out", File()}),
            0);
  const Bytes old_bytes = test::ReadBytes(File());
  const std::vector<std::string> add = {"add", File(), "--keys", folder_ / "input_new"};
  ASSERT_EQ(test::RunCli(add), 0);
  KillAtRandom({old_bytes, test::ReadBytes(File()), [&] { test::BecomeCli(add); }}, 60, 14);
}

TEST_F(SaveKilled, FilterAtEverySystemCall) {
  const Filter a = test::SampleFilter(Layout::kSplit512, 8, 300, 1000, 1);
  const Filter b = test::SampleFilter(Layout::kLine512, 7, 200, 1000, 2);
  KillAtEverySystemCall({test::Serialized(a), test::Serialized(b), [&] { _exit(b.TrySave(File()).ok() ? 0 : 1); }});
}

TEST_F(SaveKilled, CountingFilterAtEverySystemCall) {
  const CountingFilter a = test::SpilledCounting(100, 1);
  const CountingFilter b = test::SpilledCounting(100, 2);
  KillAtEverySystemCall({test::Serialized(a), test::Serialized(b), [&] { _exit(b.TrySave(File()).ok() ? 0 : 1); }});
}

}  // namespace
}  // namespace bloomline
