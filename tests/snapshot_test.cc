// Snapshots that are as they should be: the format's bytes, round trips, what reading them costs.
#include "engine/snapshot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::AlignedBytes;
using test::Get;
using test::TempDir;

TEST(SnapshotFormat, HeaderFieldsAreWhereTheFormatSays) {
  Filter filter(FilterConfig::ForFpr(1000, 0.01, Layout::kSector512z2, 6)
                    .WithSeed(0x0123456789abcdef)
                    .WithKeyKind(KeyKind::kBytes));
  filter.Insert("one");
  filter.Insert("two");
  filter.Insert("two");
  const std::vector<std::byte> bytes = test::Serialized(filter);
  const uint64_t payload = filter.blocks() * 64;
  ASSERT_EQ(bytes.size(), 4096 + payload);
  EXPECT_EQ(std::memcmp(bytes.data(),
                        "\x89"
                        "BLM\r\n\x1a\n",
                        8),
            0);
  EXPECT_EQ(Get(bytes, 8, 4), 1u);      // version
  EXPECT_EQ(Get(bytes, 12, 4), 4096u);  // header length
  EXPECT_EQ(Get(bytes, 16, 8), bytes.size());
  EXPECT_EQ(Get(bytes, 32, 4), 1u);  // a filter
  EXPECT_EQ(Get(bytes, 36, 4), 1u);  // one section
  EXPECT_EQ(Get(bytes, 40, 1), 2u);  // sector512z2
  EXPECT_EQ(Get(bytes, 41, 1), 2u);  // zones
  EXPECT_EQ(Get(bytes, 42, 1), 6u);  // k
  EXPECT_EQ(Get(bytes, 43, 1), 0u);  // counter bits
  EXPECT_EQ(Get(bytes, 44, 1), 0u);  // overflow policy
  EXPECT_EQ(Get(bytes, 45, 1), 1u);  // hash
  EXPECT_EQ(Get(bytes, 46, 1), 2u);  // byte strings
  EXPECT_EQ(Get(bytes, 48, 8), filter.blocks());
  EXPECT_EQ(Get(bytes, 56, 8), 0x0123456789abcdefu);
  EXPECT_EQ(Get(bytes, 64, 8), 1000u);
  EXPECT_EQ(std::bit_cast<double>(Get(bytes, 72, 8)), 0.01);
  EXPECT_EQ(Get(bytes, 80, 8), 3u);   // inserted
  EXPECT_EQ(Get(bytes, 256, 4), 1u);  // payload
  EXPECT_EQ(Get(bytes, 264, 8), 4096u);
  EXPECT_EQ(Get(bytes, 272, 8), payload);
  EXPECT_EQ(Get(bytes, 280, 8), XXH3_64bits(bytes.data() + 4096, payload));
  std::vector<std::byte> sealed = bytes;
  test::Seal(sealed);
  EXPECT_EQ(sealed, bytes);  // the header's checksum
  EXPECT_EQ(std::memcmp(bytes.data() + 4096, filter.words().data(), payload), 0);
  for (size_t i = 288; i < 4096; ++i) ASSERT_EQ(bytes[i], std::byte{0}) << i;
}

TEST(SnapshotFormat, TheChecksumsOfAnEmptyFilterArePinned) {
  // One block without keys. Computed from the drawing of the format by other means: what is written today must be
  // readable for ever.
  const Filter filter(FilterConfig::ForBits(512).WithSeed(1));
  const std::vector<std::byte> bytes = test::Serialized(filter);
  ASSERT_EQ(bytes.size(), 4160u);
  EXPECT_EQ(Get(bytes, 280, 8), 0x2ffb6918c12c256eu);  // XXH3-64 of 64 zeros
  EXPECT_EQ(Get(bytes, 24, 8), 0xe799d06f8ff61319u);
}

TEST(SnapshotRoundTrip, EveryLayoutThroughEveryDoor) {
  const TempDir folder;
  for (const test::LayoutAndK& choice : test::AllLayouts()) {
    for (const uint64_t blocks : {1u, 3u, 100u}) {
      SCOPED_TRACE(choice.Name() + " blocks " + std::to_string(blocks));
      const uint64_t seed = 0xfedcba9876543210 + blocks;
      const Filter filter = test::SampleFilter(choice.layout, choice.k, blocks, 20 * blocks, seed);
      const std::vector<std::byte> bytes = test::Serialized(filter);
      const std::string path = folder / "f.blm";
      filter.Save(path);
      EXPECT_EQ(test::ReadBytes(path), bytes);

      test::ExpectSame(filter, Filter::Load(path));
      test::ExpectSame(filter, FilterView::Map(path));
      test::ExpectSame(filter, FilterView::Map(path, Verify::kHeaderOnly));
      AlignedBytes aligned(bytes);
      test::ExpectSame(filter, FilterView::Wrap(aligned.span()));
      EXPECT_NE(FilterView::Wrap(aligned.span()).memory().note.find("the caller's"), std::string::npos);
      test::ExpectSame(filter, FilterView::Wrap(aligned.span(), Verify::kHeaderOnly));
      for (size_t shift = 0; shift < 64; shift += 21) {  // Deserialize copies from any alignment
        AlignedBytes moved(bytes.size() + shift);
        std::copy(bytes.begin(), bytes.end(), moved.span().begin() + static_cast<std::ptrdiff_t>(shift));
        test::ExpectSame(filter, Filter::Deserialize(moved.span().subspan(shift)));
      }
    }
  }
}

TEST(SnapshotRoundTrip, SeedKindDesignAndAnswersTravelWithTheFile) {
  const TempDir folder;
  const std::string path = folder / "f.blm";
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (const KeyKind kind : {KeyKind::kUnspecified, KeyKind::kU64, KeyKind::kBytes, KeyKind::kHashed}) {
      Filter filter(FilterConfig::ForFpr(500, 0.003).WithSeed(seed).WithKeyKind(kind));
      for (uint64_t key = 0; key < 500; ++key) filter.Insert(key);
      filter.Insert("a string");
      filter.Save(path);
      const Filter loaded = Filter::Load(path);  // nothing but the file
      const FilterView mapped = FilterView::Map(path);
      test::ExpectSame(filter, loaded);
      EXPECT_EQ(loaded.key_kind(), kind);
      EXPECT_EQ(loaded.seed(), seed);
      EXPECT_EQ(loaded.expected_keys(), 500u);
      EXPECT_EQ(loaded.target_fpr(), 0.003);
      EXPECT_EQ(loaded.InsertedCount(), 501u);
      for (uint64_t key = 0; key < 5000; ++key) {
        ASSERT_EQ(loaded.MayContain(key), filter.MayContain(key)) << key;
        ASSERT_EQ(mapped.MayContain(key), filter.MayContain(key)) << key;
      }
      EXPECT_TRUE(loaded.MayContain("a string"));
      EXPECT_TRUE(mapped.MayContain("a string"));
    }
  }
}

TEST(SnapshotRoundTrip, ALoadedFilterGrowsOnAndAViewSavesAgain) {
  const TempDir folder;
  Filter filter = test::SampleFilter(Layout::kSplit512, 8, 50, 100);
  filter.Save(folder / "a");
  Filter loaded = Filter::Load(folder / "a");
  filter.Insert(uint64_t{12345});
  loaded.Insert(uint64_t{12345});
  test::ExpectSame(filter, loaded);
  FilterView::Map(folder / "a").Save(folder / "b");
  EXPECT_EQ(test::ReadBytes(folder / "a"), test::ReadBytes(folder / "b"));
}

TEST(SnapshotRoundTrip, AMappedFilterOutlivesItsName) {
  const TempDir folder;
  const Filter filter = test::SampleFilter(Layout::kLine512, 7, 1000, 4000);
  filter.Save(folder / "f");
  const FilterView view = FilterView::Map(folder / "f");
  test::SampleFilter(Layout::kSplit512, 8, 1, 5).Save(folder / "f");  // replaced, not changed in place
  test::ExpectSame(filter, view);
  std::filesystem::remove(folder / "f");
  test::ExpectSame(filter, view);
}

TEST(SnapshotSerialize, TooShortAnOutputIsAnErrorAndALongOneIsFine) {
  const Filter filter = test::SampleFilter(Layout::kSplit512, 8, 2, 10);
  std::vector<std::byte> out(filter.SerializedBytes() + 100, std::byte{0xee});
  EXPECT_EQ(filter.SerializeTo(out), filter.SerializedBytes());
  for (size_t i = filter.SerializedBytes(); i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0xee}) << i;
  for (const size_t length : {size_t{0}, size_t{4096}, filter.SerializedBytes() - 1}) {
    const auto result = filter.TrySerializeTo(std::span(out).first(length));
    EXPECT_EQ(test::CodeOf(result), ErrorCode::kInvalidArgument);
    EXPECT_NE(test::MessageOf(result).find(std::to_string(filter.SerializedBytes())), std::string::npos);
  }
  EXPECT_THROW((void)filter.SerializeTo({}), Error);
}

TEST(SnapshotWrap, NeedsAlignedBytes) {
  const std::vector<std::byte> bytes = test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 2, 10));
  AlignedBytes moved(bytes.size() + 64);
  for (size_t shift = 1; shift < 64; ++shift) {
    std::copy(bytes.begin(), bytes.end(), moved.span().begin() + static_cast<std::ptrdiff_t>(shift));
    const auto result = FilterView::TryWrap(moved.span().subspan(shift, bytes.size()));
    ASSERT_EQ(test::CodeOf(result), ErrorCode::kInvalidArgument) << shift;
  }
}

// Later kinds of object have more sections: the same reader and writer.
TEST(SnapshotSections, ManySectionsRoundTripAndTheGapsAreChecked) {
  const TempDir folder;
  const std::string path = folder / "s";
  std::vector<std::vector<std::byte>> contents;
  std::vector<detail::SectionBytes> sections;
  for (const size_t length : {100u, 0u, 4096u, 5000u, 1u}) {
    contents.emplace_back(length, static_cast<std::byte>(length + 1));
  }
  for (size_t i = 0; i < contents.size(); ++i) {
    sections.push_back({static_cast<detail::SectionId>(i + 1), contents[i]});
  }
  detail::SnapshotInfo info;
  info.kind = detail::ObjectKind::kCounting;
  info.layout_id = 9;
  info.counter_bits = 4;
  info.overflow_policy = 2;
  info.inserted = 77;
  ASSERT_TRUE(detail::WriteSnapshotFile(path, info, sections).ok());
  std::vector<std::byte> bytes(detail::SnapshotBytes(sections), std::byte{0xcc});
  ASSERT_TRUE(detail::SerializeSnapshot(bytes, info, sections).ok());
  EXPECT_EQ(test::ReadBytes(path), bytes);
  EXPECT_EQ(bytes.size(), 5u * 4096 + 1);  // the header, then 100, 0, 4096 and 5000 bytes: 1 + 1 + 0 + 1 + 2 pages

  const auto file = detail::SnapshotFile::Open(path, detail::ObjectKind::kCounting);
  ASSERT_TRUE(file.ok()) << test::MessageOf(file);
  EXPECT_EQ(file->info().counter_bits, 4);
  EXPECT_EQ(file->info().overflow_policy, 2);
  EXPECT_EQ(file->info().inserted, 77u);
  ASSERT_EQ(file->info().sections.size(), contents.size());
  const auto buffer = detail::SnapshotBuffer::Open(bytes, detail::ObjectKind::kCounting);
  ASSERT_TRUE(buffer.ok()) << test::MessageOf(buffer);
  for (size_t i = 0; i < contents.size(); ++i) {
    std::vector<std::byte> read(contents[i].size());
    EXPECT_TRUE(file->ReadSection(i, read).ok());
    EXPECT_EQ(read, contents[i]);
    std::fill(read.begin(), read.end(), std::byte{0});
    EXPECT_TRUE(buffer->ReadSection(i, read).ok());
    EXPECT_EQ(read, contents[i]);
    EXPECT_TRUE(file->VerifySection(i).ok());
    EXPECT_TRUE(buffer->VerifySection(i).ok());
  }
  // Every byte behind the header belongs to a section or to a gap: one of the checks sees any change.
  for (size_t at = 4096; at < bytes.size(); at += 37) {
    bytes[at] ^= std::byte{0x10};
    const auto changed = detail::SnapshotBuffer::Open(bytes, detail::ObjectKind::kCounting);
    ASSERT_TRUE(changed.ok());
    int seen = 0;
    for (size_t i = 0; i < contents.size(); ++i) seen += changed->VerifySection(i).ok() ? 0 : 1;
    EXPECT_GE(seen, 1) << at;
    bytes[at] ^= std::byte{0x10};
  }
  const auto wrong_kind = Filter::TryLoad(path);
  EXPECT_EQ(test::CodeOf(wrong_kind), ErrorCode::kUnsupported);
  EXPECT_NE(test::MessageOf(wrong_kind).find("a counting filter"), std::string::npos) << test::MessageOf(wrong_kind);
}

TEST(SnapshotSections, ThirtyTwoAreTheMost) {
  const std::array<std::byte, 1> content{};
  for (const size_t count : {0u, 1u, 32u, 33u}) {
    std::vector<detail::SectionBytes> sections;
    for (size_t i = 0; i < count; ++i) sections.push_back({static_cast<detail::SectionId>(i + 1), content});
    std::vector<std::byte> out(40 * 4096);
    const auto written = detail::SerializeSnapshot(out, {}, sections);
    EXPECT_EQ(written.ok(), count >= 1 && count <= 32) << count;
    if (written.ok()) {
      EXPECT_TRUE(detail::SnapshotBuffer::Open(std::span(out).first(*written), detail::ObjectKind::kFilter).ok());
    }
  }
}

// ---- What loading costs.
void SaveSample(const std::string& path, uint64_t bytes) {
  Filter filter(FilterConfig::ForBits(bytes * 8));
  test::Random random(3);
  const std::vector<uint64_t> keys = random.Take(1 << 20);
  filter.InsertBatch(std::span<const uint64_t>(keys));
  filter.Save(path);
}

// In a child: its peak starts at what it holds now. Prints and returns 1 where a bound does not hold.
template <class Open>
int PeakIsPayloadPlusConstant(uint64_t allowed_kib, uint64_t expected_read, uint64_t read_slack, Open&& open) {
  const uint64_t before = test::ProcValue("/proc/self/status", "VmRSS");
  const uint64_t read_before = test::ProcValue("/proc/self/io", "rchar");
  open();
  const uint64_t read = test::ProcValue("/proc/self/io", "rchar") - read_before;
  const uint64_t peak = test::ProcValue("/proc/self/status", "VmHWM") - before;
  const bool peak_ok = peak <= allowed_kib;
  const bool read_ok = read_before == 0 || (read >= expected_read && read <= expected_read + read_slack);
  if (!peak_ok || !read_ok) {
    std::fprintf(stderr, "peak %llu KiB (allowed %llu), read %llu bytes (expected %llu)\n",
                 static_cast<unsigned long long>(peak), static_cast<unsigned long long>(allowed_kib),
                 static_cast<unsigned long long>(read), static_cast<unsigned long long>(expected_read));
  }
  return peak_ok && read_ok ? 0 : 1;
}

void CheckLoadingCost(uint64_t payload) {
  const TempDir folder;
  const std::string path = folder / "f";
  SaveSample(path, payload);
  const uint64_t file_bytes = payload + 4096;
  constexpr uint64_t kSlackKib = 64 << 10;
  constexpr uint64_t kReadSlack = 256 << 10;  // /proc files
  EXPECT_EQ(test::RunInChild([&] {
              return PeakIsPayloadPlusConstant(payload / 1024 + kSlackKib, file_bytes, kReadSlack,
                                               [&] { (void)Filter::Load(path); });
            }),
            0)
      << "Load";
  EXPECT_EQ(test::RunInChild([&] {
              return PeakIsPayloadPlusConstant(kSlackKib, file_bytes, kReadSlack, [&] { (void)FilterView::Map(path); });
            }),
            0)
      << "Map, verified";
  EXPECT_EQ(test::RunInChild([&] {
              return PeakIsPayloadPlusConstant(kSlackKib, 4096, kReadSlack,
                                               [&] { (void)FilterView::Map(path, Verify::kHeaderOnly); });
            }),
            0)
      << "Map, header only";
  // The last bit counts.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(file_bytes - 1));
  const int last = file.get();
  file.seekp(static_cast<std::streamoff>(file_bytes - 1));
  file.put(static_cast<char>(last ^ 0x80));
  file.close();
  EXPECT_EQ(test::CodeOf(Filter::TryLoad(path)), ErrorCode::kCorrupt);
  EXPECT_EQ(test::CodeOf(FilterView::TryMap(path)), ErrorCode::kCorrupt);
  EXPECT_TRUE(FilterView::TryMap(path, Verify::kHeaderOnly).ok());
}

TEST(SnapshotCost, LoadReadsTheFileOnceAndHoldsOneCopy) { CheckLoadingCost(uint64_t{256} << 20); }
TEST(LargeSnapshot, FourGibibytesAreReadOnceAndHeldOnce) { CheckLoadingCost(uint64_t{4} << 30); }

// A header that tells the truth about a file that is mostly a hole: more than memory holds, and still no crash.
TEST(SnapshotCost, AFileBeyondMemoryIsRefusedByLoadAndMapped) {
  const uint64_t blocks = 0xffffffff;
  const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (memory >= blocks * 64) GTEST_SKIP() << "this machine could load it";
  const TempDir folder;
  const std::string path = folder / "hole";
  std::vector<std::byte> header = test::Serialized(test::SampleFilter(Layout::kSplit512, 8, 1, 0));
  header.resize(4096);
  test::Put(header, 48, 8, blocks);
  test::Put(header, 16, 8, 4096 + blocks * 64);
  test::Put(header, 272, 8, blocks * 64);
  test::Seal(header);
  test::WriteBytes(path, header);
  if (truncate(path.c_str(), static_cast<off_t>(4096 + blocks * 64)) != 0) GTEST_SKIP() << "no such large files here";
  const auto loaded = Filter::TryLoad(path);
  EXPECT_EQ(test::CodeOf(loaded), ErrorCode::kOutOfMemory);
  EXPECT_NE(test::MessageOf(loaded).find(path), std::string::npos) << test::MessageOf(loaded);
  const auto mapped = FilterView::TryMap(path, Verify::kHeaderOnly);
  ASSERT_TRUE(mapped.ok()) << test::MessageOf(mapped);
  EXPECT_FALSE(mapped->MayContainHash(0));
  EXPECT_FALSE(mapped->MayContainHash(~uint64_t{0}));  // the last block
}

}  // namespace
}  // namespace bloomline
