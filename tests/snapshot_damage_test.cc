// Snapshots that were cut, changed or forged: an error with a code and the file's name, never an answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::AlignedBytes;
using test::CodeOf;
using test::MessageOf;
using test::Put;
using test::TempDir;

constexpr size_t kHeader = 4096;

bool IsFileError(ErrorCode code) { return code == ErrorCode::kCorrupt || code == ErrorCode::kUnsupported; }

// All four doors; the same code from each.
void ExpectRefused(std::span<std::byte> aligned, const std::string& path, ErrorCode code, const std::string& text) {
  test::WriteBytes(path, aligned);
  const auto deserialized = Filter::TryDeserialize(aligned);
  EXPECT_EQ(CodeOf(deserialized), code) << MessageOf(deserialized);
  EXPECT_NE(MessageOf(deserialized).find(text), std::string::npos) << MessageOf(deserialized);
  EXPECT_NE(MessageOf(deserialized).find("the given bytes"), std::string::npos) << MessageOf(deserialized);
  const auto loaded = Filter::TryLoad(path);
  EXPECT_EQ(CodeOf(loaded), code);
  EXPECT_NE(MessageOf(loaded).find(path), std::string::npos) << MessageOf(loaded);
  EXPECT_NE(MessageOf(loaded).find(text), std::string::npos) << MessageOf(loaded);
  for (const Verify verify : {Verify::kAll, Verify::kHeaderOnly}) {
    EXPECT_EQ(CodeOf(FilterView::TryWrap(aligned, verify)), code);
    EXPECT_EQ(CodeOf(FilterView::TryMap(path, verify)), code);
  }
}

TEST(SnapshotCut, EveryLengthIsRefused) {
  const TempDir folder;
  const std::string path = folder / "f";
  const std::vector<std::byte> bytes = test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 3, 40));
  test::WriteBytes(path, bytes);
  const test::Guarded guarded(bytes.size());  // a read beyond the end faults
  AlignedBytes aligned(bytes);
  for (size_t length = bytes.size(); length-- > 0;) {
    const std::span<std::byte> cut(guarded.Tail(length), length);
    std::copy_n(bytes.begin(), length, cut.begin());
    ASSERT_EQ(CodeOf(Filter::TryDeserialize(cut)), ErrorCode::kCorrupt) << length;
    ASSERT_EQ(CodeOf(FilterView::TryWrap(aligned.span().first(length))), ErrorCode::kCorrupt) << length;
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(length)), 0);
    ASSERT_EQ(CodeOf(Filter::TryLoad(path)), ErrorCode::kCorrupt) << length;
    ASSERT_EQ(CodeOf(FilterView::TryMap(path, Verify::kHeaderOnly)), ErrorCode::kCorrupt) << length;
  }
}

TEST(SnapshotCut, BytesBehindTheEndAreRefused) {
  const TempDir folder;
  std::vector<std::byte> bytes = test::Serialized(test::SampleFilter(Layout::kSplit256, 8, 3, 40));
  for (const size_t more : {1u, 31u, 32u, 4096u}) {
    AlignedBytes longer(bytes.size() + more);
    std::copy(bytes.begin(), bytes.end(), longer.span().begin());
    ExpectRefused(longer.span(), folder / "f", ErrorCode::kCorrupt, std::to_string(bytes.size() + more));
  }
}

TEST(SnapshotFlip, EveryBitOfTheHeader) {
  const TempDir folder;
  const std::string path = folder / "f";
  AlignedBytes bytes(test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 2, 20)));
  test::WriteBytes(path, bytes.span());
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  for (size_t bit = 0; bit < 8 * kHeader; ++bit) {
    std::byte& byte = bytes.span()[bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    const bool in_version = bit / 8 >= 8 && bit / 8 < 12;
    const ErrorCode code = CodeOf(Filter::TryDeserialize(bytes.span()));
    ASSERT_TRUE(IsFileError(code)) << bit;
    ASSERT_TRUE(in_version || code == ErrorCode::kCorrupt) << bit;
    ASSERT_EQ(CodeOf(FilterView::TryWrap(bytes.span(), Verify::kHeaderOnly)), code) << bit;
    if (bit < 8 * 320 || bit % 13 == 0) {
      ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(bit / 8)), 1);
      ASSERT_EQ(CodeOf(Filter::TryLoad(path)), code) << bit;
      ASSERT_EQ(CodeOf(FilterView::TryMap(path, Verify::kHeaderOnly)), code) << bit;
    }
    byte ^= std::byte{1} << (bit % 8);
    ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(bit / 8)), 1);
  }
  close(fd);
  EXPECT_TRUE(Filter::TryLoad(path).ok());  // all put back
}

TEST(SnapshotFlip, EveryBitOfASmallPayload) {
  AlignedBytes bytes(test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 2, 20)));
  for (size_t bit = 8 * kHeader; bit < 8 * bytes.span().size(); ++bit) {
    std::byte& byte = bytes.span()[bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    ASSERT_EQ(CodeOf(Filter::TryDeserialize(bytes.span())), ErrorCode::kCorrupt) << bit;
    ASSERT_EQ(CodeOf(FilterView::TryWrap(bytes.span())), ErrorCode::kCorrupt) << bit;
    byte ^= std::byte{1} << (bit % 8);
  }
  EXPECT_TRUE(FilterView::TryWrap(bytes.span()).ok());
}

TEST(SnapshotFlip, SampledBitsOfAPayloadOfSeveralPieces) {
  const TempDir folder;
  const std::string path = folder / "f";
  constexpr uint64_t kMiB = 1 << 20;
  const uint64_t payload = 5 * kMiB / 2;
  AlignedBytes bytes(test::Serialized(test::SampleFilter(Layout::kSplit512, 8, payload / 64, 100'000)));
  test::WriteBytes(path, bytes.span());
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  test::Random random(11);
  std::vector<uint64_t> offsets = {0, kMiB - 1, kMiB, 2 * kMiB - 1, 2 * kMiB, payload - 1};
  for (int i = 0; i < 40; ++i) offsets.push_back(random.Below(payload));
  for (const uint64_t offset : offsets) {
    std::byte& byte = bytes.span()[kHeader + offset];
    const std::byte mask = std::byte{1} << random.Below(8);
    byte ^= mask;
    ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(kHeader + offset)), 1);
    EXPECT_EQ(CodeOf(Filter::TryDeserialize(bytes.span())), ErrorCode::kCorrupt) << offset;
    EXPECT_EQ(CodeOf(FilterView::TryWrap(bytes.span())), ErrorCode::kCorrupt) << offset;
    EXPECT_EQ(CodeOf(Filter::TryLoad(path)), ErrorCode::kCorrupt) << offset;
    EXPECT_EQ(CodeOf(FilterView::TryMap(path)), ErrorCode::kCorrupt) << offset;
    EXPECT_TRUE(FilterView::TryMap(path, Verify::kHeaderOnly).ok()) << offset;  // as it says
    byte ^= mask;
    ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(kHeader + offset)), 1);
  }
  close(fd);
  EXPECT_TRUE(Filter::TryLoad(path).ok());
}

struct Forgery {
  const char* what;
  std::function<void(std::span<std::byte>)> change;
  ErrorCode code;
  const char* text;  // in the message
};

// Changes a sound snapshot of split512 with 1 block (64 bytes of payload), and makes the checksum right again.
TEST(SnapshotForged, WithACorrectChecksum) {
  using Bytes = std::span<std::byte>;
  const auto put = [](size_t offset, size_t width, uint64_t value) {
    return [=](Bytes bytes) { Put(bytes, offset, width, value); };
  };
  const auto fpr = [&](double value) { return put(72, 8, std::bit_cast<uint64_t>(value)); };
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const std::vector<Forgery> forgeries = {
      {"version 2", put(8, 4, 2), kUnsupported, "version 2"},
      {"version 2^32 - 1", put(8, 4, 0xffffffff), kUnsupported, "version 4294967295"},
      {"version 0", put(8, 4, 0), kCorrupt, "version is 0"},
      {"header length", put(12, 4, 8192), kCorrupt, "header length is 8192"},
      {"file length + 1", put(16, 8, 4161), kCorrupt, "4161"},
      {"file length 2^40", put(16, 8, uint64_t{1} << 40), kCorrupt, "1099511627776"},
      {"file length 0", put(16, 8, 0), kCorrupt, "4160"},
      {"a classic filter", put(32, 4, 3), kUnsupported, "a classic filter"},
      {"kind 0", put(32, 4, 0), kUnsupported, "kind 0"},
      {"kind 99", put(32, 4, 99), kUnsupported, "kind 99"},
      {"layout 0", put(40, 1, 0), kCorrupt, "layout id is 0"},
      {"layout 7", put(40, 1, 7), kCorrupt, "layout id is 7"},
      {"layout 255", put(40, 1, 255), kCorrupt, "layout id is 255"},
      {"zones 0", put(41, 1, 0), kCorrupt, "zones is 0"},
      {"zones 4", put(41, 1, 4), kCorrupt, "zones is 4"},
      {"k 0", put(42, 1, 0), kCorrupt, "k is 0"},
      {"k 7 in 8 zones", put(42, 1, 7), kCorrupt, "k is 7"},
      {"k 17", put(42, 1, 17), kCorrupt, "k is 17"},
      {"k 24", put(42, 1, 24), kCorrupt, "k is 24"},
      {"k 255", put(42, 1, 255), kCorrupt, "k is 255"},
      {"counter bits", put(43, 1, 4), kCorrupt, "counter bits is 4"},
      {"overflow policy", put(44, 1, 1), kCorrupt, "overflow policy is 1"},
      {"hash 0", put(45, 1, 0), kUnsupported, "hash 0"},
      {"hash 2", put(45, 1, 2), kUnsupported, "hash 2"},
      {"key kind 4", put(46, 1, 4), kCorrupt, "key kind is 4"},
      {"blocks 0", put(48, 8, 0), kCorrupt, "number of blocks is 0"},
      {"blocks 2", put(48, 8, 2), kCorrupt, "128 for 2 blocks"},
      {"blocks 2^32", put(48, 8, uint64_t{1} << 32), kCorrupt, "number of blocks is 4294967296"},
      {"blocks · 64 wraps to 0", put(48, 8, uint64_t{1} << 58), kCorrupt, "number of blocks"},
      {"blocks · 64 wraps to 64", put(48, 8, (uint64_t{1} << 58) + 1), kCorrupt, "number of blocks"},
      {"blocks 2^64 - 1", put(48, 8, kMax), kCorrupt, "number of blocks"},
      {"split256 beyond its cap",
       [](Bytes bytes) {
         Put(bytes, 40, 1, 6);
         Put(bytes, 48, 8, (uint64_t{1} << 26) + 1);
       },
       kCorrupt, "1 … 67108864"},
      {"design n 2^64 - 1", put(64, 8, kMax), kCorrupt, "design n"},
      {"FPR NaN", fpr(std::numeric_limits<double>::quiet_NaN()), kCorrupt, "design FPR is nan"},
      {"FPR inf", fpr(std::numeric_limits<double>::infinity()), kCorrupt, "design FPR is inf"},
      {"FPR 1", fpr(1), kCorrupt, "design FPR is 1"},
      {"FPR -0", fpr(-0.0), kCorrupt, "design FPR is -0"},
      {"FPR -0.5", fpr(-0.5), kCorrupt, "design FPR is -0.5"},
      {"inserted 2^64 - 1", put(80, 8, kMax), kCorrupt, "inserted count is 18446744073709551615"},
      {"inserted 2^63 + 1", put(80, 8, (uint64_t{1} << 63) + 1), kCorrupt, "inserted count"},
      {"no section", put(36, 4, 0), kCorrupt, "number of sections is 0"},
      {"33 sections", put(36, 4, 33), kCorrupt, "number of sections is 33"},
      {"2^32 - 1 sections", put(36, 4, 0xffffffff), kCorrupt, "number of sections"},
      {"2 sections, the second nowhere", put(36, 4, 2), kCorrupt, "section 1"},
      {"2 sections of one place",
       [](Bytes bytes) {
         Put(bytes, 36, 4, 2);
         Put(bytes, 288, 4, 2);
         Put(bytes, 296, 8, 4096);
         Put(bytes, 304, 8, 64);
       },
       kCorrupt, "section 1's offset is 4096"},
      {"the spill table only", put(256, 4, 2), kCorrupt, "section 0's id is 2"},
      {"section flags", put(260, 4, 1), kCorrupt, "byte 260"},
      {"section in the header", put(264, 8, 0), kCorrupt, "section 0's offset is 0"},
      {"section not aligned", put(264, 8, 4100), kCorrupt, "section 0's offset is 4100"},
      {"section beyond the file", put(264, 8, 8192), kCorrupt, "section 0's offset is 8192"},
      {"section at the end of the world", put(264, 8, kMax - 63), kCorrupt, "section 0's offset"},
      {"section of 0 bytes", put(272, 8, 0), kCorrupt, "end of the last section"},
      {"section too short", put(272, 8, 63), kCorrupt, "4159"},
      {"section too long", put(272, 8, 65), kCorrupt, "section 0's length is 65"},
      {"section of 2^40 bytes", put(272, 8, uint64_t{1} << 40), kCorrupt, "section 0's length is 1099511627776"},
      {"section wraps around", put(272, 8, kMax), kCorrupt, "section 0's length"},
      {"unused byte 47", put(47, 1, 1), kCorrupt, "byte 47"},
      {"unused byte 88", put(88, 1, 1), kCorrupt, "byte 88"},
      {"unused byte 255", put(255, 1, 128), kCorrupt, "byte 255"},
      {"unused byte 288", put(288, 1, 1), kCorrupt, "byte 288"},
      {"unused byte 4095", put(4095, 1, 1), kCorrupt, "byte 4095"},
  };
  const TempDir folder;
  const std::vector<std::byte> sound = test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 1, 3));
  for (const Forgery& forgery : forgeries) {
    SCOPED_TRACE(forgery.what);
    AlignedBytes bytes(sound);
    forgery.change(bytes.span());
    test::Seal(bytes.span());
    ExpectRefused(bytes.span(), folder / "f", forgery.code, forgery.text);
  }
}

TEST(SnapshotForged, ValuesAtTheEdgeOfTheAllowedAreRead) {
  AlignedBytes bytes(test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 1, 3)));
  Put(bytes.span(), 80, 8, uint64_t{1} << 63);
  Put(bytes.span(), 64, 8, uint64_t{1} << 63);
  Put(bytes.span(), 72, 8, std::bit_cast<uint64_t>(std::nextafter(1.0, 0.0)));
  Put(bytes.span(), 56, 8, std::numeric_limits<uint64_t>::max());
  Put(bytes.span(), 42, 1, 16);
  test::Seal(bytes.span());
  const auto filter = Filter::TryDeserialize(bytes.span());
  ASSERT_TRUE(filter.ok()) << MessageOf(filter);
  EXPECT_EQ(filter->InsertedCount(), uint64_t{1} << 63);
  EXPECT_EQ(filter->k(), 16);
  // It can be saved and read again, whatever is inserted on top.
  Filter more = Filter::Deserialize(bytes.span());
  more.Insert(uint64_t{1});
  EXPECT_TRUE(Filter::TryDeserialize(test::Serialized(more)).ok());
}

TEST(SnapshotForged, AHugeClaimFailsAtOnce) {
  AlignedBytes bytes(test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 1, 3)));
  const uint64_t blocks = 0xffffffff;  // consistent in itself; only the bytes are not there
  Put(bytes.span(), 48, 8, blocks);
  Put(bytes.span(), 16, 8, kHeader + 64 * blocks);
  Put(bytes.span(), 272, 8, 64 * blocks);
  test::Seal(bytes.span());
  const TempDir folder;
  const auto start = std::chrono::steady_clock::now();
  ExpectRefused(bytes.span(), folder / "f", ErrorCode::kCorrupt, "274877910976");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(SnapshotOpen, WhatIsNoSnapshot) {
  const TempDir folder;
  const auto expect = [&](const std::string& path, ErrorCode code, const std::string& text) {
    SCOPED_TRACE(path);
    const auto loaded = Filter::TryLoad(path);
    EXPECT_EQ(CodeOf(loaded), code);
    EXPECT_NE(MessageOf(loaded).find(text), std::string::npos) << MessageOf(loaded);
    EXPECT_EQ(CodeOf(FilterView::TryMap(path)), code);
    EXPECT_EQ(CodeOf(FilterView::TryMap(path, Verify::kHeaderOnly)), code);
  };
  test::WriteBytes(folder / "empty", {});
  expect(folder / "empty", ErrorCode::kCorrupt, "is not a bloomline file: it is empty");
  const std::string text(10'000, 'x');
  test::WriteBytes(folder / "text", std::as_bytes(std::span(text)));
  expect(folder / "text", ErrorCode::kCorrupt, "is not a bloomline file");
  test::WriteBytes(folder / "short", std::as_bytes(std::span(text).first(3)));
  expect(folder / "short", ErrorCode::kCorrupt, "is not a bloomline file");
  expect(folder / "missing", ErrorCode::kIo, "No such file or directory");
  expect(folder / "text" + "/below", ErrorCode::kIo, "Not a directory");
  expect(folder.path(), ErrorCode::kIo, "a directory");
  expect("/dev/null", ErrorCode::kIo, "a device");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  expect(folder / "fifo", ErrorCode::kIo, "a FIFO");  // and does not wait for a writer
  expect("", ErrorCode::kInvalidArgument, "path is empty");
  expect(std::string("a\0b", 3), ErrorCode::kInvalidArgument, "NUL");
  EXPECT_EQ(CodeOf(Filter::TryDeserialize({})), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(FilterView::TryWrap({})), ErrorCode::kCorrupt);
}

TEST(SnapshotOpen, TheThrowingTwinsThrowTheSame) {
  const TempDir folder;
  const std::string path = folder / "missing";
  try {
    (void)Filter::Load(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
  }
  EXPECT_THROW((void)FilterView::Map(path), Error);
  EXPECT_THROW((void)Filter::Deserialize({}), Error);
  EXPECT_THROW((void)FilterView::Wrap({}), Error);
}

TEST(SnapshotOpen, NoDescriptorIsLeftBehind) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "no /proc";
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const TempDir folder;
  const std::string good = folder / "good";
  const std::string bad = folder / "bad";
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 1, 3);
  std::vector<std::byte> bytes = test::Serialized(filter);
  bytes.back() ^= std::byte{1};
  test::WriteBytes(bad, bytes);
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) {
    filter.Save(good);
    EXPECT_FALSE(filter.TrySave(folder / "no" + "/such/f").ok());
    EXPECT_TRUE(Filter::TryLoad(good).ok());
    EXPECT_TRUE(FilterView::TryMap(good).ok());
    EXPECT_FALSE(Filter::TryLoad(bad).ok());
    EXPECT_FALSE(FilterView::TryMap(bad).ok());
    EXPECT_FALSE(Filter::TryLoad(folder.path()).ok());
  }
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace bloomline
