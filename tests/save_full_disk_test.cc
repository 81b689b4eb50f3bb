// A save that finds the disk full fails with a code, leaves the old file as it was and nothing beside it, and works
// when there is room again. On a file system of its own, of 4 MiB; the end of a file size limit is in save_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/crash_util.h"

namespace bloomline {
namespace {

using test::TempDir;
using Bytes = std::vector<std::byte>;
using Names = std::vector<std::string>;

constexpr int kNoMount = 77;

bool WriteText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

// A mount namespace in which this process may mount: as root directly, else in a user namespace of its own.
bool EnterNamespace() {
  if (unshare(CLONE_NEWNS) != 0) {
    const std::string user = std::to_string(getuid()), group = std::to_string(getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!WriteText("/proc/self/setgroups", "deny") || !WriteText("/proc/self/uid_map", user + " " + user + " 1") ||
        !WriteText("/proc/self/gid_map", group + " " + group + " 1")) {
      return false;
    }
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Runs `body` in a child, with a small file system of these options on `folder`. False: skipped.
void OnSmallDisk(const TempDir& folder, const char* options, const std::function<int()>& body) {
  const int code = test::RunInChild([&] {
    if (!EnterNamespace() || mount("tmpfs", folder.path().c_str(), "tmpfs", 0, options) != 0) return kNoMount;
    return body();
  });
  if (code == kNoMount) GTEST_SKIP() << "no right to mount a file system here, nor to make a user namespace";
  EXPECT_EQ(code, 0);
}

// Writes files until there is no room for another 64 KiB, then takes `room` bytes of it back.
bool FillDisk(const std::string& path, off_t room) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const std::vector<std::byte> block(1 << 16);
  off_t end = 0;
  for (ssize_t count = 0; (count = write(fd, block.data(), block.size())) > 0;) end += count;
  const bool cut = end > room && ftruncate(fd, end - room) == 0;
  close(fd);
  return cut;
}

// 0 if all is as it should be, else the number of what is not. `save` returns 0, or the code of its failure.
int FailsWhileFull(const TempDir& folder, const Bytes& old_bytes, const Bytes& new_bytes, off_t room, int expected,
                   const std::function<int()>& save) {
  const std::string path = folder / "f", ballast = folder / "ballast";
  test::WriteBytes(path, old_bytes);
  if (test::ReadBytes(path) != old_bytes) return 10;
  if (!FillDisk(ballast, room)) return 11;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (const int code = save(); code != expected) {
      std::fprintf(stderr, "the save ended with %d, not %d\n", code, expected);
      return 12;
    }
    if (test::ReadBytes(path) != old_bytes || !test::IsWhole(path)) return 13;
    for (const std::string& name : folder.Names()) {
      if (test::IsTemporary(name)) return 14;
    }
  }
  if (unlink(ballast.c_str()) != 0) return 15;
  if (save() != 0) return 16;
  if (test::ReadBytes(path) != new_bytes || !test::IsWhole(path)) return 17;
  for (const std::string& name : folder.Names()) {
    if (test::IsTemporary(name)) return 18;
  }
  return 0;
}

int CodeOfSave(const FilterReader& filter, const std::string& path) {
  const Status saved = filter.TrySave(path);
  if (saved.ok()) return 0;
  if (std::string(saved.error().what()).find("No space left") == std::string::npos) {
    std::fprintf(stderr, "%s\n", saved.error().what());
    return 1;
  }
  return saved.error().code() == ErrorCode::kIo ? 2 : 3;
}

constexpr const char* kSmall = "size=4m";
// Room for nothing, for a part of the header, for a part of the payload.
constexpr off_t kRooms[] = {0, 1 << 16, 1 << 20};

TEST(SaveFullDisk, Filter) {
  const Filter old_filter = test::SampleFilter(Layout::kSplit512, 8, 5, 20);
  const Filter new_filter = test::SampleFilter(Layout::kSplit512, 8, 40'000, 10'000);  // 2.5 MB
  for (const off_t room : kRooms) {
    const TempDir folder;
    OnSmallDisk(folder, kSmall, [&] {
      return FailsWhileFull(folder, test::Serialized(old_filter), test::Serialized(new_filter), room, 2,
                            [&] { return CodeOfSave(new_filter, folder / "f"); });
    });
  }
}

TEST(SaveFullDisk, CountingFilter) {
  const CountingFilter old_filter = test::SpilledCounting(1000, 1);
  const CountingFilter new_filter = test::SpilledCounting(40'000, 2);
  for (const off_t room : kRooms) {
    const TempDir folder;
    OnSmallDisk(folder, kSmall, [&] {
      return FailsWhileFull(folder, test::Serialized(old_filter), test::Serialized(new_filter), room, 2,
                            [&] { return CodeOfSave(new_filter, folder / "f"); });
    });
  }
}

// There may be room for bytes and none for another file.
TEST(SaveFullDisk, NoRoomForAFile) {
  const Filter old_filter = test::SampleFilter(Layout::kSplit512, 8, 5, 20);
  const Filter new_filter = test::SampleFilter(Layout::kSplit512, 8, 400, 1000);
  const TempDir folder;
  OnSmallDisk(folder, "size=4m,nr_inodes=3", [&] {
    return FailsWhileFull(folder, test::Serialized(old_filter), test::Serialized(new_filter), 1 << 20, 2,
                          [&] { return CodeOfSave(new_filter, folder / "f"); });
  });
}

// A file system that became read-only.
TEST(SaveFullDisk, ReadOnly) {
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 5, 20);
  const TempDir folder;
  OnSmallDisk(folder, kSmall, [&] {
    if (!filter.TrySave(folder / "f").ok()) return 3;
    const Bytes old_bytes = test::ReadBytes(folder / "f");
    if (mount("none", folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return kNoMount;
    const Status saved = test::SampleFilter(Layout::kWord64, 5, 9, 20).TrySave(folder / "f");
    if (saved.ok() || saved.error().code() != ErrorCode::kIo) return 4;
    if (std::string(saved.error().what()).find("Read-only file system") == std::string::npos) return 5;
    return test::ReadBytes(folder / "f") == old_bytes && folder.Names() == Names{"f"} ? 0 : 6;
  });
}

TEST(SaveFullDisk, CommandLine) {
  constexpr int kResources = 4;  // the exit code that README.md names
  const TempDir inputs;
  test::WriteLines(inputs / "keys", 20'000, 1);
  const auto build = [&](const std::string& out) {
    return std::vector<std::string>{"build",  "--keys",   inputs / "keys", "--bits-per-key", "40", "--expected",
                                    "400000", "--layout", "counting4",     "--out",          out};
  };
  ASSERT_EQ(test::RunCli(build(inputs / "f")), 0);
  const Bytes built = test::ReadBytes(inputs / "f");
  ASSERT_EQ(test::RunCli({"add", inputs / "f", "--keys", inputs / "keys"}), 0);
  const Bytes added = test::ReadBytes(inputs / "f");
  ASSERT_NE(built, added);
  {
    const TempDir folder;
    OnSmallDisk(folder, "size=6m", [&] {
      return FailsWhileFull(folder, test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 5, 20)), built, 1 << 20,
                            kResources, [&] { return test::RunCli(build(folder / "f")); });
    });
  }
  const TempDir folder;
  OnSmallDisk(folder, "size=6m", [&] {
    return FailsWhileFull(folder, built, added, 1 << 20, kResources, [&] {
      return test::RunCli({"add", folder / "f", "--keys", inputs / "keys"});
    });
  });
}

}  // namespace
}  // namespace bloomline
