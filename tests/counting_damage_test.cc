// Snapshots of counting filters that were cut, changed or forged: an error with a code, never an answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tests/counting_util.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::AlignedBytes;
using test::CodeOf;
using test::Get;
using test::MessageOf;
using test::Put;
using test::SampleCounting;
using test::Serialized;
using test::TempDir;

constexpr size_t kHeader = 4096;
constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

// All doors.
void ExpectRefused(std::span<std::byte> aligned, const std::string& path, ErrorCode code, const std::string& text) {
  test::WriteBytes(path, aligned);
  const auto deserialized = CountingFilter::TryDeserialize(aligned);
  EXPECT_EQ(CodeOf(deserialized), code) << MessageOf(deserialized);
  EXPECT_NE(MessageOf(deserialized).find(text), std::string::npos) << MessageOf(deserialized);
  const auto loaded = CountingFilter::TryLoad(path);
  EXPECT_EQ(CodeOf(loaded), code);
  EXPECT_NE(MessageOf(loaded).find(text), std::string::npos) << MessageOf(loaded);
  EXPECT_NE(MessageOf(loaded).find(path), std::string::npos) << MessageOf(loaded);
  for (const Verify verify : {Verify::kAll, Verify::kHeaderOnly}) {
    EXPECT_EQ(CodeOf(FilterView::TryWrap(aligned, verify)), code);
    EXPECT_EQ(CodeOf(FilterView::TryMap(path, verify)), code);
  }
}

TEST(CountingSnapshotDamage, CutsAreRefused) {
  const TempDir folder;
  const std::string path = folder / "f";
  AlignedBytes aligned(Serialized(SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true, 2)));
  const std::span<const std::byte> bytes = aligned.span();
  test::WriteBytes(path, bytes);
  const size_t payload_end = kHeader + 128;
  const test::Guarded guarded(bytes.size());  // a read beyond the end faults
  for (size_t length = bytes.size(); length-- > 0;) {
    // Every length around the ends of sections, and some of the rest.
    const bool near_end = length + 600 > bytes.size() || (length + 64 > payload_end && length < payload_end + 64) ||
                          (length + 64 > kHeader && length < kHeader + 64) || length < 400;
    if (!near_end && length % 37 != 0) continue;
    const std::span<std::byte> cut(guarded.Tail(length), length);
    std::copy_n(bytes.begin(), length, cut.begin());
    ASSERT_EQ(CodeOf(CountingFilter::TryDeserialize(cut)), kCorrupt) << length;
    ASSERT_EQ(CodeOf(FilterView::TryWrap(aligned.span().first(length))), kCorrupt) << length;
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(length)), 0);
    ASSERT_EQ(CodeOf(CountingFilter::TryLoad(path)), kCorrupt) << length;
    ASSERT_EQ(CodeOf(FilterView::TryMap(path, Verify::kHeaderOnly)), kCorrupt) << length;
  }
  for (const size_t more : {size_t{1}, size_t{16}, size_t{4096}}) {
    AlignedBytes longer(bytes.size() + more);
    std::copy(bytes.begin(), bytes.end(), longer.span().begin());
    ExpectRefused(longer.span(), path, kCorrupt, std::to_string(bytes.size() + more));
  }
}

TEST(CountingSnapshotDamage, EveryBitOfTheHeader) {
  for (const OverflowPolicy policy : {OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
    AlignedBytes bytes(Serialized(SampleCounting(Layout::kCounting4, policy, true, 2)));
    for (size_t bit = 0; bit < 8 * kHeader; ++bit) {
      std::byte& byte = bytes.span()[bit / 8];
      byte ^= std::byte{1} << (bit % 8);
      const bool in_version = bit / 8 >= 8 && bit / 8 < 12;
      const ErrorCode code = CodeOf(CountingFilter::TryDeserialize(bytes.span()));
      ASSERT_TRUE(code == kCorrupt || (in_version && code == kUnsupported)) << bit;
      ASSERT_EQ(CodeOf(FilterView::TryWrap(bytes.span(), Verify::kHeaderOnly)), code) << bit;
      byte ^= std::byte{1} << (bit % 8);
    }
    EXPECT_TRUE(CountingFilter::TryDeserialize(bytes.span()).ok());
  }
}

// Of the payload, the gap behind it and the spilled counters.
TEST(CountingSnapshotDamage, BitsBehindTheHeader) {
  const TempDir folder;
  const std::string path = folder / "f";
  AlignedBytes bytes(Serialized(SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true, 2)));
  test::WriteBytes(path, bytes.span());
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  const size_t payload_end = kHeader + 128;
  for (size_t bit = 8 * kHeader; bit < 8 * bytes.span().size(); ++bit) {
    const size_t at = bit / 8;
    const bool in_gap = at >= payload_end && at < 8192;
    if (in_gap && at != payload_end && at != 8191 && bit % 101 != 0) continue;
    std::byte& byte = bytes.span()[at];
    byte ^= std::byte{1} << (bit % 8);
    ASSERT_EQ(CodeOf(CountingFilter::TryDeserialize(bytes.span())), kCorrupt) << bit;
    ASSERT_EQ(CodeOf(FilterView::TryWrap(bytes.span())), kCorrupt) << bit;
    // The spilled counters are read and so checked whatever was asked for.
    if (at >= payload_end) {
      ASSERT_EQ(CodeOf(FilterView::TryWrap(bytes.span(), Verify::kHeaderOnly)), kCorrupt) << bit;
    }
    if (bit % 5 == 0) {
      ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
      ASSERT_EQ(CodeOf(CountingFilter::TryLoad(path)), kCorrupt) << bit;
      ASSERT_EQ(CodeOf(FilterView::TryMap(path)), kCorrupt) << bit;
    }
    byte ^= std::byte{1} << (bit % 8);
    ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
  }
  close(fd);
  EXPECT_TRUE(CountingFilter::TryLoad(path).ok());
}

struct Forgery {
  const char* what;
  std::function<void(std::span<std::byte>)> change;
  ErrorCode code;
  const char* text;
};

// Headers with a right checksum.
TEST(CountingSnapshotForged, Headers) {
  using Bytes = std::span<std::byte>;
  const auto put = [](size_t offset, size_t width, uint64_t value) {
    return [=](Bytes bytes) { Put(bytes, offset, width, value); };
  };
  const std::vector<Forgery> forgeries = {
      {"kind 1: a filter", put(32, 4, 1), kCorrupt, ""},
      {"layout 4", put(40, 1, 4), kCorrupt, "layout id is 4"},
      {"layout 9", put(40, 1, 9), kCorrupt, "layout id is 9"},
      {"layout 8, 4 bits", put(40, 1, 8), kCorrupt, "counter bits is 4"},
      {"zones", put(41, 1, 1), kCorrupt, "zones is 1"},
      {"k 16", put(42, 1, 16), kCorrupt, "k is 16"},
      {"k 0", put(42, 1, 0), kCorrupt, "k is 0"},
      {"counter bits 0", put(43, 1, 0), kCorrupt, "counter bits is 0"},
      {"counter bits 8", put(43, 1, 8), kCorrupt, "counter bits is 8"},
      {"policy 0", put(44, 1, 0), kCorrupt, "overflow policy is 0"},
      {"policy 4", put(44, 1, 4), kCorrupt, "overflow policy is 4"},
      {"saturate with a side table", put(44, 1, 1), kCorrupt, "number of sections is 2"},
      {"reject with a side table", put(44, 1, 2), kCorrupt, "number of sections is 2"},
      {"blocks 0", put(48, 8, 0), kCorrupt, "number of blocks is 0"},
      {"blocks 3", put(48, 8, 3), kCorrupt, "192 for 3 blocks"},
      {"blocks · 64 wraps", put(48, 8, (uint64_t{1} << 58) + 2), kCorrupt, "number of blocks"},
      {"inserted 2^64 - 1", put(80, 8, ~uint64_t{0}), kCorrupt, "inserted count"},
      {"section 1 is a window", put(288, 4, 3), kCorrupt, "section 1's id is 3"},
      {"section 1 is of no kind", put(288, 4, 77), kCorrupt, "section 1's id is 77"},
      {"two payloads", put(288, 4, 1), kCorrupt, "section 1's id is 1"},
      {"the side table first", put(256, 4, 2), kCorrupt, "section 1's id is 2"},
      {"the side table inside the payload", put(296, 8, 4096), kCorrupt, "section 1's offset is 4096"},
      {"a shorter side table", [](Bytes b) { Put(b, 304, 8, Get(b, 304, 8) - 16); }, kCorrupt, "last section"},
      {"a longer side table", [](Bytes b) { Put(b, 304, 8, Get(b, 304, 8) + 16); }, kCorrupt, "section 1's length"},
      {"a side table of 2^60 bytes", put(304, 8, uint64_t{1} << 60), kCorrupt, "section 1's length"},
      {"another checksum", put(312, 8, 1), kCorrupt, "does not match its checksum"},
  };
  const TempDir folder;
  const std::vector<std::byte> sound = Serialized(SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true, 2));
  for (const Forgery& forgery : forgeries) {
    SCOPED_TRACE(forgery.what);
    AlignedBytes bytes(sound);
    forgery.change(bytes.span());
    test::Seal(bytes.span());
    if (Get(bytes.span(), 32, 4) == 1) {  // the doors of counting filters say that it is a filter; views look on
      EXPECT_EQ(CodeOf(CountingFilter::TryDeserialize(bytes.span())), kUnsupported);
      EXPECT_EQ(CodeOf(Filter::TryDeserialize(bytes.span())), kCorrupt);
      EXPECT_EQ(CodeOf(FilterView::TryWrap(bytes.span())), kCorrupt);
      continue;
    }
    ExpectRefused(bytes.span(), folder / "f", forgery.code, forgery.text);
  }
}

using Entries = std::vector<std::pair<uint64_t, uint64_t>>;

// `snapshot`, which has two sections, with other spilled counters; all checksums right. `odd` bytes are appended to
// them.
std::vector<std::byte> WithEntries(const std::vector<std::byte>& snapshot, const Entries& entries, size_t odd = 0) {
  const size_t begin = static_cast<size_t>(Get(snapshot, 296, 8));
  std::vector<std::byte> bytes(snapshot.begin(), snapshot.begin() + static_cast<std::ptrdiff_t>(begin));
  bytes.resize(begin + 16 * entries.size() + odd);
  for (size_t i = 0; i < entries.size(); ++i) {
    Put(bytes, begin + 16 * i, 8, entries[i].first);
    Put(bytes, begin + 16 * i + 8, 8, entries[i].second);
  }
  Put(bytes, 16, 8, bytes.size());
  Put(bytes, 304, 8, bytes.size() - begin);
  Put(bytes, 312, 8, XXH3_64bits(bytes.data() + begin, bytes.size() - begin));
  test::Seal(bytes);
  return bytes;
}

Entries EntriesOf(const std::vector<std::byte>& snapshot) {
  Entries entries;
  for (size_t at = static_cast<size_t>(Get(snapshot, 296, 8)); at < snapshot.size(); at += 16) {
    entries.emplace_back(Get(snapshot, at, 8), Get(snapshot, at + 8, 8));
  }
  return entries;
}

TEST(CountingSnapshotForged, SpilledCounters) {
  const TempDir folder;
  for (const Layout layout : test::kCountingLayouts) {
    SCOPED_TRACE(LayoutName(layout, 8));
    const CountingFilter filter = SampleCounting(layout, OverflowPolicy::kSpill, true, 2);
    const std::vector<std::byte> sound = Serialized(filter);
    const Entries entries = EntriesOf(sound);
    ASSERT_GT(entries.size(), 4U);
    ASSERT_EQ(WithEntries(sound, entries), sound);  // the forger's own work is right
    const uint64_t per_word = layout == Layout::kCounting4 ? 16 : 8;
    const uint64_t max = layout == Layout::kCounting4 ? 15 : 255;
    const uint64_t counters = 2 * 8 * per_word;
    const auto value = [&](uint64_t place) {
      const int bits = test::CounterBitsOf(layout);
      return (filter.words()[place / per_word] >> (place % per_word * static_cast<uint64_t>(bits))) & max;
    };
    const auto expect = [&](const char* what, const Entries& forged, const std::string& text, size_t odd = 0) {
      SCOPED_TRACE(what);
      AlignedBytes bytes(WithEntries(sound, forged, odd));
      ExpectRefused(bytes.span(), folder / "f", kCorrupt, text);
    };
    Entries forged = entries;
    std::swap(forged[1], forged[2]);
    expect("out of order", forged, "spilled counter 2 is at " + std::to_string(entries[1].first));
    forged = entries;
    forged[2].first = forged[1].first;
    expect("twice", forged, "spilled counter 2 is at");
    forged = entries;
    forged[3].second = 0;
    expect("count 0", forged, "spilled counter 3 has the count 0");
    forged = entries;
    forged[0].second = ~uint64_t{0};
    expect("count 2^64 - 1", forged, "has the count 18446744073709551615");
    forged = entries;
    for (auto& entry : forged) entry.second = uint64_t{1} << 62;
    expect("a sum that overflows", forged, "has the count 4611686018427387904");
    forged = entries;
    forged.back().first = counters;
    expect("beyond the filter", forged, "beyond the filter");
    forged.back().first = ~uint64_t{0};
    expect("far beyond the filter", forged, "beyond the filter");
    // A counter that is not full: at 0, or one below its maximum or anything between.
    size_t not_full = 0;
    for (uint64_t place = 0; place < counters; ++place) {
      if (value(place) == max) continue;
      forged.assign(1, {place, 1});
      AlignedBytes bytes(WithEntries(sound, forged));
      ASSERT_EQ(CodeOf(CountingFilter::TryDeserialize(bytes.span())), kCorrupt) << place;
      ++not_full;
    }
    EXPECT_GT(not_full, 10U);
    forged.assign(1, {0, 1});
    for (const size_t odd : {size_t{1}, size_t{8}, size_t{15}}) {
      expect("odd length", entries, "no multiple of 16", odd);
    }
    // Fewer entries are a sound snapshot of other counts.
    forged.assign(entries.begin(), entries.end() - 1);
    forged[0].second = (uint64_t{1} << 63) - 1'000'000;
    const auto other = CountingFilter::TryDeserialize(WithEntries(sound, forged));
    ASSERT_TRUE(other.ok()) << MessageOf(other);
    EXPECT_EQ(other->Overflow().spilled_counters, forged.size());
  }
}

// A claim of many entries is checked against the file's length before memory is taken for it.
TEST(CountingSnapshotForged, AHugeClaimFailsAtOnce) {
  const TempDir folder;
  AlignedBytes bytes(Serialized(SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true, 2)));
  const uint64_t huge = uint64_t{1} << 46;
  Put(bytes.span(), 304, 8, huge);
  Put(bytes.span(), 16, 8, 8192 + huge);
  test::Seal(bytes.span());
  ExpectRefused(bytes.span(), folder / "f", kCorrupt, std::to_string(8192 + huge));
}

}  // namespace
}  // namespace bloomline
