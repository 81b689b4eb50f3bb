// Save replaces a file as a whole or leaves it as it was. Killed: save_killed_test.cc. On a full disk:
// save_full_disk_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::TempDir;
using Names = std::vector<std::string>;

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST(Save, ReplacesAndLeavesNothingElse) {
  const TempDir folder;
  const Filter first = test::SampleFilter(Layout::kSplit512, 8, 10, 50);
  const Filter second = test::SampleFilter(Layout::kWord64, 5, 99, 700);
  first.Save(folder / "f");
  second.Save(folder / "f");
  test::ExpectSame(second, Filter::Load(folder / "f"));
  EXPECT_EQ(folder.Names(), Names{"f"});
}

TEST(Save, ModeIsThatOfOpenUnderTheUmask) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  for (const mode_t mask : {022U, 027U, 077U, 0U}) {
    const std::string path = folder / std::to_string(mask);
    const mode_t before = umask(mask);
    filter.Save(path);
    umask(before);
    EXPECT_EQ(ModeOf(path), 0666U & ~mask) << mask;
  }
}

TEST(Save, AReplacedFileKeepsItsMode) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  filter.Save(folder / "private");
  ASSERT_EQ(chmod((folder / "private").c_str(), 0600), 0);
  filter.Save(folder / "private");
  EXPECT_EQ(ModeOf(folder / "private"), 0600U);
}

TEST(Save, AMovedFromFilterIsRefusedAndTheOldFileStays) {
  const TempDir folder;
  Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  filter.Save(folder / "f");
  const Filter moved = std::move(filter);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(CodeOf(filter.TrySave(folder / "f")), ErrorCode::kInvalidArgument);
  std::vector<std::byte> bytes(8192);
  EXPECT_FALSE(filter.TrySerializeTo(bytes).ok());
  filter.Insert(uint64_t{1});
  filter.InsertBulk(std::vector<uint64_t>(1000, 7));
  EXPECT_EQ(filter.InsertedCount(), 0U);
  // NOLINTEND(bugprone-use-after-move)
  test::ExpectSame(moved, Filter::Load(folder / "f"));
}

TEST(Save, AnUnknownKeyKindIsRefusedBeforeThereIsAFilter) {
  const auto config = FilterConfig::ForBits(512).WithKeyKind(static_cast<KeyKind>(99));
  EXPECT_EQ(CodeOf(Filter::Create(config)), ErrorCode::kInvalidArgument);
}

TEST(Save, NamesAsLongAsTheyCanBeAndInTheCurrentFolder) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  const std::string longest(255, 'n');
  filter.Save(folder / longest);
  EXPECT_EQ(CodeOf(filter.TrySave(folder / (longest + "n"))), ErrorCode::kIo);
  EXPECT_EQ(test::RunInChild([&] {
              if (chdir(folder.path().c_str()) != 0) return 2;
              return filter.TrySave("here").ok() && Filter::TryLoad("here").ok() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(folder.Names(), (Names{"here", longest}));
}

TEST(Save, ALinkStaysAndWhatItNamesIsReplaced) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  std::filesystem::create_directory(folder / "sub");
  test::WriteBytes(folder / "sub" + "/real", {});
  ASSERT_EQ(symlink("sub/real", (folder / "link").c_str()), 0);
  ASSERT_EQ(symlink("link", (folder / "link2").c_str()), 0);
  ASSERT_EQ(symlink((folder / "sub" + "/new").c_str(), (folder / "dangling").c_str()), 0);
  ASSERT_EQ(symlink("loop", (folder / "loop").c_str()), 0);
  filter.Save(folder / "link2");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link2"));
  test::ExpectSame(filter, Filter::Load(folder / "sub" + "/real"));
  filter.Save(folder / "dangling");
  test::ExpectSame(filter, Filter::Load(folder / "sub" + "/new"));
  EXPECT_EQ(CodeOf(filter.TrySave(folder / "loop")), ErrorCode::kIo);
  EXPECT_EQ(folder.Names(), (Names{"dangling", "link", "link2", "loop", "sub"}));
}

TEST(Save, WhatCannotBeWrittenIsNamed) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  test::WriteBytes(folder / "file", {});
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  const auto expect = [&](const std::string& path, ErrorCode code, const std::string& text) {
    const Status saved = filter.TrySave(path);
    EXPECT_EQ(CodeOf(saved), code) << path;
    EXPECT_NE(MessageOf(saved).find(text), std::string::npos) << MessageOf(saved);
    EXPECT_THROW(filter.Save(path), Error);
    if (code == ErrorCode::kIo) {
      EXPECT_NE(MessageOf(saved).find(path), std::string::npos) << MessageOf(saved);
    }
  };
  expect("", ErrorCode::kInvalidArgument, "path is empty");
  expect(std::string("a\0b", 3), ErrorCode::kInvalidArgument, "NUL");
  expect(folder / "no" + "/such/file", ErrorCode::kIo, "No such file or directory");
  expect(folder / "file" + "/below", ErrorCode::kIo, "Not a directory");
  expect(folder.path(), ErrorCode::kIo, "not a regular file");
  expect(folder / "new" + "/", ErrorCode::kIo, "not a regular file");
  expect("/dev/null", ErrorCode::kIo, "not a regular file");
  expect(folder / "fifo", ErrorCode::kIo, "not a regular file");
  EXPECT_EQ(folder.Names(), (Names{"fifo", "file"}));
}

// 0: the save failed, the old content is there and nothing beside it.
int SaveFailsAndKeepsTheOld(const Filter& filter, const std::string& path, const std::vector<std::byte>& old,
                            const TempDir& folder, const char* reason) {
  const Status saved = filter.TrySave(path);
  if (saved.ok()) return 10;
  if (saved.error().code() != ErrorCode::kIo) return 11;
  if (std::string(saved.error().what()).find(reason) == std::string::npos) {
    std::fprintf(stderr, "%s\n", saved.error().what());
    return 12;
  }
  if (test::ReadBytes(path) != old) return 13;
  return folder.Names() == Names{"f"} ? 0 : 14;
}

TEST(Save, AWriteThatFailsLeavesTheOldFile) {
  const TempDir folder;
  const std::string path = folder / "f";
  test::SampleFilter(Layout::kSplit512, 8, 5, 20).Save(path);
  const std::vector<std::byte> old = test::ReadBytes(path);
  const Filter large = test::SampleFilter(Layout::kSplit512, 8, 50'000, 10'000);  // 3.2 MB
  // Short writes first, then none: in the header, in the payload, one byte before its end.
  for (const rlim_t limit : {rlim_t{1}, rlim_t{5000}, rlim_t{2'000'000}, rlim_t{4096 + 3'200'000 - 1}}) {
    EXPECT_EQ(test::RunInChild([&] {
                std::signal(SIGXFSZ, SIG_IGN);
                const rlimit bound{limit, limit};
                if (setrlimit(RLIMIT_FSIZE, &bound) != 0) return 2;
                return SaveFailsAndKeepsTheOld(large, path, old, folder, "File too large");
              }),
              0)
        << limit;
  }
}

TEST(Save, FromManyThreadsToOneName) {
  const TempDir folder;
  const std::string path = folder / "f";
  std::vector<std::thread> threads;
  std::vector<Status> results(4);
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1000 + t, 500, t);
      for (int i = 0; i < 10 && results[t].ok(); ++i) results[t] = filter.TrySave(path);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << MessageOf(result);
  const Filter loaded = Filter::Load(path);
  test::ExpectSame(loaded, test::SampleFilter(Layout::kSplit512, 8, 1000 + loaded.seed(), 500, loaded.seed()));
  EXPECT_EQ(folder.Names(), Names{"f"});
}

}  // namespace
}  // namespace bloomline
