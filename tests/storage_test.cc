#include "engine/storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "engine/machine_memory.h"
#include "tests/snapshot_util.h"

namespace bloomline::detail {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::TempDir;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::unique_ptr<Storage> Make(uint64_t bytes, const MemoryPolicy& policy = {}) {
  Result<std::unique_ptr<Storage>> storage = Storage::Allocate(bytes, policy);
  EXPECT_TRUE(storage.ok()) << MessageOf(storage);
  return storage.ok() ? *std::move(storage) : nullptr;
}

std::string ReadWord(const char* path, size_t index) {
  std::ifstream file(path);
  std::string word;
  for (size_t i = 0; i <= index && file >> word; ++i) {
  }
  return word;
}
bool OvercommitIsStrict() { return ReadWord("/proc/sys/vm/overcommit_memory", 0) == "2"; }
bool HaveSmaps() { return std::ifstream("/proc/self/smaps").good(); }
std::string BasePageName() { return std::to_string(sysconf(_SC_PAGESIZE) / 1024) + "KiB"; }

TEST(Storage, IsZeroAlignedAndWritableToItsEnd) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    for (const bool lazy : {false, true}) {
      for (const uint64_t bytes :
           {uint64_t{1}, uint64_t{31}, uint64_t{32}, uint64_t{64}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097},
            2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB + 4096, 64 * kMiB}) {
        const auto storage = Make(bytes, {pages, lazy});
        ASSERT_NE(storage, nullptr);
        EXPECT_EQ(storage->bytes(), bytes);
        EXPECT_TRUE(storage->writable());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % (bytes >= 2 * kMiB ? 2 * kMiB : 64), 0u) << bytes;
        EXPECT_EQ(std::count(storage->data(), storage->data() + bytes, std::byte{0}), static_cast<std::ptrdiff_t>(bytes));
        std::memset(storage->data(), 0xff, bytes);
      }
    }
  }
}

TEST(StorageDeathTest, AnOverrunStopsAtOnceFromTwoMebibytesOn) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto storage = Make(2 * kMiB + 4096);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  volatile std::byte* const data = storage->data();
  const uint64_t end = (storage->bytes() + page - 1) / page * page;
  EXPECT_DEATH(data[end] = std::byte{1}, "");
  EXPECT_DEATH(data[-1] = std::byte{1}, "");
}

TEST(Storage, SizesThatCannotBeAreRefusedWithTheFigures) {
  EXPECT_EQ(CodeOf(Storage::Allocate(0, {})), ErrorCode::kInvalidArgument);
  const uint64_t limit = ReadMemoryLimit().bytes;
  for (const bool lazy : {false, true}) {
    for (const uint64_t bytes : {uint64_t{1} << 56, (uint64_t{1} << 56) + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
      const auto storage = Storage::Allocate(bytes, {Pages::kDefault, lazy});
      EXPECT_EQ(CodeOf(storage), ErrorCode::kOutOfMemory) << bytes;
      EXPECT_NE(MessageOf(storage).find(std::to_string(bytes)), std::string::npos) << MessageOf(storage);
    }
  }
  const auto refused = Storage::Allocate(limit + 1, {});
  EXPECT_EQ(CodeOf(refused), ErrorCode::kOutOfMemory);
  EXPECT_NE(MessageOf(refused).find(std::to_string(limit + 1)), std::string::npos) << MessageOf(refused);
  EXPECT_NE(MessageOf(refused).find(std::to_string(limit)), std::string::npos) << MessageOf(refused);
}

TEST(Storage, LazyMemoryMayExceedTheMachines) {
  if (OvercommitIsStrict()) GTEST_SKIP() << "this machine reserves memory strictly";
  const uint64_t bytes = std::min(4 * ReadMemoryLimit().bytes, uint64_t{1} << 45) / 4096 * 4096;
  const auto storage = Make(bytes, {Pages::kDefault, true});
  ASSERT_NE(storage, nullptr);
  storage->words()[0] = 1;
  storage->words()[bytes / 8 - 1] = 1;
  if (HaveSmaps()) {
    EXPECT_EQ(storage->Report().resident_bytes, 2 * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  }
}

TEST(Storage, IsGivenBack) {
  const uint64_t before = test::ProcValue("/proc/self/status", "VmSize");
  if (before == 0) GTEST_SKIP() << "no /proc";
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(Make(64 * kMiB), nullptr);
    ASSERT_NE(Make(100), nullptr);
  }
  EXPECT_LT(test::ProcValue("/proc/self/status", "VmSize"), before + 64 * 1024);
}

TEST(StorageReport, BasePagesWhereHugeOnesAreForbidden) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  const auto storage = Make(8 * kMiB, {Pages::kDefault, false});
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.bytes, 8 * kMiB);
  EXPECT_EQ(report.resident_bytes, 8 * kMiB);
  EXPECT_EQ(report.huge_page_bytes, 0u);
  EXPECT_EQ(report.granted, BasePageName());
  EXPECT_EQ(report.note, "");
}

TEST(StorageReport, HugePagesAreCountedOrTheirLackIsExplained) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  const auto storage = Make(9 * kMiB);
  EXPECT_EQ(storage->Report().resident_bytes, 0u);
  EXPECT_EQ(storage->Report().granted, "none yet");
  EXPECT_NE(storage->Report().note, "");
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.resident_bytes, 9 * kMiB);
  EXPECT_LE(report.huge_page_bytes, 8 * kMiB);  // the last MiB is too short for one
  if (report.huge_page_bytes == 8 * kMiB) {
    EXPECT_NE(report.granted.find("(transparent) 88.9 %"), std::string::npos) << report.granted;
    EXPECT_NE(report.granted.find(BasePageName() + " 11.1 %"), std::string::npos) << report.granted;
    EXPECT_EQ(report.note, "");
  } else {
    EXPECT_NE(report.note, "");
  }
}

TEST(StorageReport, NeighboursAreNotCounted) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  for (const uint64_t bytes : {uint64_t{4096}, 4 * kMiB}) {
    std::vector<std::unique_ptr<Storage>> all;
    for (int i = 0; i < 6; ++i) all.push_back(Make(bytes));
    for (size_t i = 0; i < all.size(); i += 2) std::memset(all[i]->data(), 1, bytes);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->Report().resident_bytes, i % 2 == 0 ? bytes : 0) << bytes << " " << i;
    }
  }
}

TEST(StorageReport, SmallMemorySaysWhyItHasNoHugePages) {
  const auto storage = Make(100'000);
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.bytes, 100'000u);
  EXPECT_EQ(report.resident_bytes, 100'000u);  // by mincore, should there be no /proc
  EXPECT_EQ(report.huge_page_bytes, 0u);
  EXPECT_NE(report.note, "");
}

TEST(StorageReport, AccountsAreReadFromTheRightMappings) {
  const TempDir folder;
  const std::string path = folder / "smaps";
  std::ofstream(path) << "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize: 4096 kB\nRss: 100 kB\n"
                         "AnonHugePages: 64 kB\nVmFlags: rd wr\n"
                         "7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [heap]\nRss: 3000 kB\n"
                         "AnonHugePages: 2048 kB\n"
                         "7f0000800000-7f0000a00000 r--p 00000000 00:00 0 /a/file-name\nRss: 7 kB\n"
                         "FilePmdMapped: 0 kB\n";
  const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(address)); };
  const MappingAccount middle = ReadMappingAccount(at(0x7f0000400000), 4 * kMiB, path.c_str());
  EXPECT_TRUE(middle.found);
  EXPECT_TRUE(middle.exact);
  EXPECT_EQ(middle.resident_bytes, 3000u * 1024);
  EXPECT_EQ(middle.huge_page_bytes, 2 * kMiB);
  const MappingAccount part = ReadMappingAccount(at(0x7f0000500000), kMiB, path.c_str());
  EXPECT_TRUE(part.found);
  EXPECT_FALSE(part.exact);
  const MappingAccount all = ReadMappingAccount(at(0x7f0000000000), 10 * kMiB, path.c_str());
  EXPECT_TRUE(all.exact);
  EXPECT_EQ(all.resident_bytes, 3107u * 1024);
  EXPECT_FALSE(ReadMappingAccount(at(0x7f0000a00000), kMiB, path.c_str()).found);
  EXPECT_FALSE(ReadMappingAccount(at(0x7f0000400000), kMiB, (folder / "none").c_str()).found);
}

TEST(MachineMemory, TheLowestControlGroupLimitCounts) {
  const TempDir folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    std::ofstream(folder / name) << text << "\n";
  };
  const auto limit = [&](const std::string& groups) {
    write("groups", groups);
    return ControlGroupLimit(folder / "groups", folder / "v2", folder / "v1");
  };
  EXPECT_EQ(limit("0::/a/b"), std::nullopt);
  EXPECT_EQ(ControlGroupLimit(folder / "none", folder / "v2", folder / "v1"), std::nullopt);
  write("v2/a/b/memory.max", "max");
  EXPECT_EQ(limit("0::/a/b"), std::nullopt);
  write("v2/a/memory.max", "5000");
  EXPECT_EQ(limit("0::/a/b"), 5000u);
  write("v2/a/b/memory.max", "7000");
  EXPECT_EQ(limit("0::/a/b"), 5000u);
  write("v2/a/b/memory.max", "3000");
  EXPECT_EQ(limit("0::/a/b"), 3000u);
  EXPECT_EQ(limit("0::/a"), 5000u);
  EXPECT_EQ(limit("0::/"), std::nullopt);
  write("v2/memory.max", "9000");
  EXPECT_EQ(limit("0::/elsewhere"), 9000u);  // the path of another mount: the root counts still
  write("v1/x/memory.limit_in_bytes", "1234");
  EXPECT_EQ(limit("8:pids:/x\n4:cpu,memory:/x\n1:name=systemd:/x"), 1234u);
  EXPECT_EQ(limit("4:memory:/x\n0::/a/b"), 1234u);
  EXPECT_EQ(limit("4:memoryless:/x"), std::nullopt);
  EXPECT_EQ(limit("not a group file"), std::nullopt);
}

TEST(MachineMemory, TheLimitIsNoMoreThanTheMachineHas) {
  const MemoryLimit limit = ReadMemoryLimit();
  EXPECT_GT(limit.bytes, 0u);
  EXPECT_LE(limit.bytes, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_NE(limit.owner, "");
}

TEST(MachineMemory, SizesInWords) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(1), "1 byte");
  EXPECT_EQ(FormatBytes(1023), "1023 bytes");
  EXPECT_EQ(FormatBytes(1536), "1536 bytes (1.5 KiB)");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 30), "3221225472 bytes (3.0 GiB)");
  EXPECT_EQ(FormatBytes(~uint64_t{0}), "18446744073709551615 bytes (16.0 EiB)");
}

TEST(StorageMapFile, ShowsTheFileFromAnyOffset) {
  const TempDir folder;
  const std::string path = folder / "f";
  std::vector<std::byte> bytes(20'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 256) & 0xff);
  test::WriteBytes(path, bytes);
  for (const uint64_t offset : {0u, 64u, 4096u, 4160u, 12'288u}) {
    const int fd = open(path.c_str(), O_RDONLY);
    Result<std::unique_ptr<Storage>> storage = Storage::MapFile(fd, offset, bytes.size() - offset);
    close(fd);
    ASSERT_TRUE(storage.ok()) << MessageOf(storage);
    EXPECT_FALSE((*storage)->writable());
    EXPECT_EQ((*storage)->bytes(), bytes.size() - offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*storage)->data()) % 64, 0u);
    EXPECT_EQ(std::memcmp((*storage)->data(), bytes.data() + offset, bytes.size() - offset), 0);
    const MemoryReport report = (*storage)->Report();
    EXPECT_EQ(report.bytes, bytes.size() - offset);
    EXPECT_EQ(report.resident_bytes, report.bytes);
  }
}

TEST(StorageMapFile, RefusesWhatCannotBeMapped) {
  const TempDir folder;
  test::WriteBytes(folder / "f", std::vector<std::byte>(100));
  const int fd = open((folder / "f").c_str(), O_RDONLY);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, 0)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, ~uint64_t{0})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, ~uint64_t{0}, 100)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, uint64_t{1} << 55)), ErrorCode::kOutOfMemory);
  close(fd);
  EXPECT_EQ(CodeOf(Storage::MapFile(-1, 0, 100)), ErrorCode::kIo);
}

}  // namespace
}  // namespace bloomline::detail
