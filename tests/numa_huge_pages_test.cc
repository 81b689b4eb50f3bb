// Explicit huge pages: granted where the system keeps them in reserve, refused with a fallback and a note where not.
// See numa_util.h for a machine that has some.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/memory.h"
#include "bloomline/topology.h"
#include "engine/replicas.h"
#include "tests/numa_util.h"
#include "tests/test_util.h"

namespace bloomline::test {
namespace {

constexpr uint64_t k2MiB = 2 * kMiB;

uint64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : 0;
}

// Pages of this size in the reserve that are neither used nor promised.
uint64_t FreePages(uint64_t page_bytes) {
  const std::string directory = "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(page_bytes / kKiB) + "kB/";
  const uint64_t free = NumberIn(directory + "free_hugepages");
  return free - std::min(free, NumberIn(directory + "resv_hugepages"));
}
uint64_t FreePagesOn(int node, uint64_t page_bytes) {
  return NumberIn("/sys/devices/system/node/node" + std::to_string(node) + "/hugepages/hugepages-" +
                  std::to_string(page_bytes / kKiB) + "kB/free_hugepages");
}

// What memory() says of pages, by size; those that the kernel merged are left out unless asked for.
uint64_t InPagesOf(const MemoryReport& report, uint64_t page_bytes, bool transparent = false) {
  uint64_t bytes = 0;
  for (const MemoryReport::PageShare& share : report.pages) {
    if (share.page_bytes == page_bytes && share.transparent == transparent) bytes += share.bytes;
  }
  return bytes;
}
uint64_t InAllPages(const MemoryReport& report) {
  uint64_t bytes = 0;
  for (const MemoryReport::PageShare& share : report.pages) bytes += share.bytes;
  return bytes;
}

// Every line is written and read.
void ExpectWholeFilterWorks(Filter& filter) {
  const std::vector<uint64_t> keys = Random(1).Take(1000);
  filter.InsertBatch(keys);
  std::vector<uint64_t> bitmap(BitmapWords(keys.size()));
  filter.MayContainBatch(keys, bitmap);
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(BitOf(bitmap, i)) << i;
  // One key for each page: the top bits of a hash choose the block.
  const uint64_t pages = filter.memory_bytes() / 4096;
  for (uint64_t page = 0; page < pages; ++page) {
    const uint64_t hash = ~uint64_t{0} / pages * page + (keys[page % keys.size()] >> 32);
    filter.InsertHash(hash);
    ASSERT_TRUE(filter.MayContainHash(hash));
  }
}

// Tests that need pages in reserve.
class HugePages : public ::testing::Test {
 protected:
  static bool Enough(uint64_t count_2mib, uint64_t count_1gib) {
    return FreePages(k2MiB) >= count_2mib && FreePages(kGiB) >= count_1gib;
  }
  void TearDown() override {
    EXPECT_EQ(FreePages(k2MiB), free_2mib_) << "pages were not given back";
    EXPECT_EQ(FreePages(kGiB), free_1gib_) << "pages were not given back";
  }
  const uint64_t free_2mib_ = FreePages(k2MiB);
  const uint64_t free_1gib_ = FreePages(kGiB);
  const std::vector<KernelNode> nodes_ = KernelNodes();
};

// Leaves the test where the reserve is too small, as a failure where it was announced.
#define NEED_HUGE_PAGES(count_2mib, count_1gib)                                                        \
  do {                                                                                                 \
    if (ExpectHugePages()) {                                                                           \
      ASSERT_TRUE(Enough(count_2mib, count_1gib))                                                      \
          << FreePages(k2MiB) << " pages of 2 MiB and " << FreePages(kGiB) << " of 1 GiB are free";    \
    } else if (!Enough(count_2mib, count_1gib)) {                                                      \
      GTEST_SKIP() << "the test takes " << (count_2mib) << " pages of 2 MiB and " << (count_1gib)      \
                   << " of 1 GiB, the reserve has " << FreePages(k2MiB) << " and " << FreePages(kGiB); \
    }                                                                                                  \
  } while (false)
#define NEED_NODES()                                                                        \
  do {                                                                                      \
    if (ExpectedNodes() != 0) {                                                             \
      ASSERT_EQ(Topology::Machine()->nodes().size(), static_cast<size_t>(ExpectedNodes())); \
    } else if (Topology::Machine()->nodes().size() < 2 || !MayPlaceMemory()) {              \
      GTEST_SKIP() << "two NUMA nodes and the right to place memory are needed";            \
    }                                                                                       \
  } while (false)

TEST_F(HugePages, PagesOf2MiBAreGranted) {
  NEED_HUGE_PAGES(8, 0);
  Filter filter(ConfigOfBytes(16 * kMiB, Policy(Placement::kLocal, 0, Pages::kHuge2MiB)));
  EXPECT_EQ(FreePages(k2MiB), free_2mib_ - 8);
  const MemoryReport report = filter.memory();
  EXPECT_EQ(InPagesOf(report, k2MiB), 16 * kMiB);
  EXPECT_EQ(report.huge_page_bytes, 16 * kMiB);
  EXPECT_EQ(report.resident_bytes, 16 * kMiB);
  EXPECT_EQ(report.granted, "2MiB");
  EXPECT_EQ(report.note, "");
  ExpectWholeFilterWorks(filter);
}

TEST_F(HugePages, TheRestIsInSmallerPages) {
  NEED_HUGE_PAGES(8, 0);
  Filter filter(ConfigOfBytes(5 * kMiB + 12 * kKiB, Policy(Placement::kLocal, 0, Pages::kHuge2MiB)));
  const MemoryReport report = filter.memory();
  EXPECT_EQ(InPagesOf(report, k2MiB), 4 * kMiB);
  EXPECT_EQ(InAllPages(report), 5 * kMiB + 12 * kKiB);
  EXPECT_EQ(report.resident_bytes, 5 * kMiB + 12 * kKiB);
  EXPECT_EQ(report.note, "");
  ExpectWholeFilterWorks(filter);
}

TEST_F(HugePages, PagesOf1GiBAreGrantedAndTheRestIn2MiB) {
  NEED_HUGE_PAGES(2, 1);
  constexpr uint64_t kSize = kGiB + 5 * kMiB + 12 * kKiB;
  Filter filter(ConfigOfBytes(kSize, Policy(Placement::kLocal, 0, Pages::kHuge1GiB)));
  EXPECT_EQ(FreePages(kGiB), free_1gib_ - 1);
  EXPECT_EQ(FreePages(k2MiB), free_2mib_ - 2);
  const MemoryReport report = filter.memory();
  EXPECT_EQ(InPagesOf(report, kGiB), kGiB);
  EXPECT_EQ(InPagesOf(report, k2MiB), 4 * kMiB);
  EXPECT_EQ(InAllPages(report), kSize);
  EXPECT_EQ(report.resident_bytes, kSize);
  EXPECT_EQ(report.huge_page_bytes, kGiB + 4 * kMiB);
  EXPECT_EQ(report.note, "");
  const std::vector<uint64_t> keys = Random(1).Take(1000);
  filter.InsertBatch(keys);
  for (const uint64_t key : keys) ASSERT_TRUE(filter.MayContain(key));
}

TEST_F(HugePages, APageOf1GiBIsBoundToItsNode) {
  NEED_NODES();
  NEED_HUGE_PAGES(0, 1);
  for (const KernelNode& node : nodes_) {
    const uint64_t free = FreePagesOn(node.number, kGiB);
    if (free == 0) continue;  // an odd reserve
    const Filter filter(ConfigOfBytes(kGiB, Policy(Placement::kBind, node.number, Pages::kHuge1GiB)));
    EXPECT_EQ(FreePagesOn(node.number, kGiB), free - 1);
    EXPECT_EQ(ReportedNodes(filter.memory()), (std::map<int, uint64_t>{{node.number, kGiB}}));
    EXPECT_EQ(filter.memory().granted, "1GiB");
  }
}

TEST_F(HugePages, BoundPagesAreOnTheirNode) {
  NEED_NODES();
  NEED_HUGE_PAGES(8 * nodes_.size(), 0);
  for (const KernelNode& node : nodes_) {
    const uint64_t free = FreePagesOn(node.number, k2MiB);
    Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kBind, node.number, Pages::kHuge2MiB)));
    EXPECT_EQ(FreePagesOn(node.number, k2MiB), free - 4) << node.number;
    EXPECT_EQ(BytesPerNode(filter), (std::map<int, uint64_t>{{node.number, 8 * kMiB}}));
    EXPECT_EQ(ReportedNodes(filter.memory()), BytesPerNode(filter));
    EXPECT_EQ(filter.memory().note, "");
  }
}

TEST_F(HugePages, EveryPlacementTakesThem) {
  NEED_NODES();
  NEED_HUGE_PAGES(8 * nodes_.size(), 0);
  for (const Placement placement : {Placement::kInterleave, Placement::kReplicate, Placement::kPartition}) {
    SCOPED_TRACE(PlacementName(placement));
    Filter filter(ConfigOfBytes(8 * kMiB, Policy(placement, 0, Pages::kHuge2MiB)));
    const MemoryReport report = filter.memory();
    const uint64_t all = 8 * kMiB * static_cast<uint64_t>(report.copies);
    EXPECT_EQ(report.copies, placement == Placement::kReplicate ? static_cast<int>(nodes_.size()) : 1);
    EXPECT_EQ(InPagesOf(report, k2MiB), all);
    EXPECT_EQ(report.note, "");
    const std::map<int, uint64_t> reported = ReportedNodes(report);
    ASSERT_EQ(reported.size(), nodes_.size());
    for (const KernelNode& node : nodes_) EXPECT_EQ(reported.at(node.number), all / nodes_.size()) << node.number;
    if (const detail::Replicas* const replicas = detail::ReplicasOf(filter); replicas != nullptr) {
      for (size_t i = 0; i < replicas->count; ++i) {
        EXPECT_EQ(BytesPerNode(replicas->copies[i], 8 * kMiB), (std::map<int, uint64_t>{{nodes_[i].number, 8 * kMiB}}));
      }
    }
    ExpectWholeFilterWorks(filter);
  }
}

// The pages that all nodes have together would do, those of the node do not: the kernel promises them when they are
// mapped, and ends the process when one is touched that the node does not have.
TEST_F(HugePages, ANodeWithoutEnoughDoesNotEndTheProcess) {
  NEED_NODES();
  NEED_HUGE_PAGES(8 * nodes_.size(), 0);
  const int node = nodes_.back().number;
  const uint64_t here = FreePagesOn(node, k2MiB);
  ASSERT_LT(here, free_2mib_);
  const uint64_t pages = here + (free_2mib_ - here) / 2;
  Filter filter(ConfigOfBytes(pages * k2MiB, Policy(Placement::kBind, node, Pages::kHuge2MiB)));
  const MemoryReport report = filter.memory();
  EXPECT_EQ(report.resident_bytes, pages * k2MiB);
  EXPECT_EQ(InAllPages(report), pages * k2MiB);
  uint64_t on_nodes = 0;
  for (const auto& [number, bytes] : ReportedNodes(report)) on_nodes += bytes;
  EXPECT_EQ(on_nodes, pages * k2MiB);
  // Either pages of the reserve elsewhere, or smaller ones here; the reader is told.
  if (ReportedNodes(report) != std::map<int, uint64_t>{{node, pages * k2MiB}} ||
      InPagesOf(report, k2MiB) != pages * k2MiB) {
    EXPECT_NE(report.note, "");
  }
  ExpectWholeFilterWorks(filter);
}

TEST_F(HugePages, MoreThanTheReserveFallsBack) {
  NEED_HUGE_PAGES(8, 0);
  const uint64_t pages = free_2mib_ + 4;
  Filter filter(ConfigOfBytes(pages * k2MiB, Policy(Placement::kLocal, 0, Pages::kHuge2MiB)));
  const MemoryReport report = filter.memory();
  EXPECT_EQ(report.resident_bytes, pages * k2MiB);
  EXPECT_LE(InPagesOf(report, k2MiB), free_2mib_ * k2MiB);
  EXPECT_EQ(InAllPages(report), pages * k2MiB);
  EXPECT_NE(report.note.find("2 MiB pages"), std::string::npos) << report.note;
  ExpectWholeFilterWorks(filter);
  // Nothing is left for a second one.
  const Filter second(ConfigOfBytes((free_2mib_ + 1) * k2MiB, Policy(Placement::kLocal, 0, Pages::kHuge2MiB)));
  EXPECT_NE(second.memory().note, "");
}

TEST_F(HugePages, PagesOf1GiBThatAreTakenFallBack) {
  NEED_HUGE_PAGES(8, 1);
  if (free_1gib_ > 4) GTEST_SKIP() << "the test would take all " << free_1gib_ << " pages of 1 GiB";
  const Filter first(ConfigOfBytes(free_1gib_ * kGiB, Policy(Placement::kInterleave, 0, Pages::kHuge1GiB)));
  EXPECT_EQ(InPagesOf(first.memory(), kGiB), free_1gib_ * kGiB);
  EXPECT_EQ(FreePages(kGiB), 0U);
  const Filter second(ConfigOfBytes(kGiB, Policy(Placement::kInterleave, 0, Pages::kHuge1GiB)));
  const MemoryReport report = second.memory();
  EXPECT_EQ(report.resident_bytes, kGiB);
  EXPECT_EQ(InAllPages(report), kGiB);
  EXPECT_EQ(InPagesOf(report, kGiB), 0U);
  EXPECT_EQ(InPagesOf(report, k2MiB), std::min(kGiB, free_2mib_ * k2MiB)) << "what is left of the reserve";
  EXPECT_NE(report.note.find("1 GiB pages"), std::string::npos) << report.note;
}

TEST_F(HugePages, FiltersBelow1GiBAreIn2MiBPages) {
  NEED_HUGE_PAGES(8, 0);
  Filter filter(ConfigOfBytes(16 * kMiB, Policy(Placement::kLocal, 0, Pages::kHuge1GiB)));
  EXPECT_EQ(InPagesOf(filter.memory(), k2MiB), 16 * kMiB);
  EXPECT_EQ(InPagesOf(filter.memory(), kGiB), 0U);
  ExpectWholeFilterWorks(filter);
}

TEST_F(HugePages, LazyMemoryTakesNone) {
  NEED_HUGE_PAGES(8, 0);
  MemoryPolicy policy = Policy(Placement::kLocal, 0, Pages::kHuge2MiB);
  policy.lazy = true;
  const Filter filter(ConfigOfBytes(8 * kMiB, policy));
  EXPECT_EQ(FreePages(k2MiB), free_2mib_);
  EXPECT_NE(filter.memory().note, "");
}

TEST_F(HugePages, LoadedAndClonedFiltersTakeThem) {
  NEED_HUGE_PAGES(8, 0);
  Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kLocal)));
  filter.InsertBatch(Random(1).Take(1000));
  std::vector<std::byte> bytes(filter.SerializedBytes());
  filter.SerializeTo(bytes);
  const Filter loaded = Filter::Deserialize(bytes, Policy(Placement::kLocal, 0, Pages::kHuge2MiB));
  EXPECT_EQ(InPagesOf(loaded.memory(), k2MiB), 8 * kMiB);
  const Filter clone = loaded.Clone();
  EXPECT_EQ(InPagesOf(clone.memory(), k2MiB), 8 * kMiB);
  EXPECT_TRUE(std::equal(clone.words().begin(), clone.words().end(), filter.words().begin()));
}

// Where nothing is in reserve, as on most machines.
TEST(NoHugePages, TheWishIsRefusedWithANoteAndSmallerPages) {
  if (FreePages(k2MiB) != 0) GTEST_SKIP() << "this machine has 2 MiB pages in reserve";
  for (const Pages pages : {Pages::kHuge2MiB, Pages::kHuge1GiB}) {
    Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kLocal, 0, pages)));
    const MemoryReport report = filter.memory();
    EXPECT_EQ(report.resident_bytes, 8 * kMiB);
    EXPECT_EQ(InPagesOf(report, k2MiB), 0U);
    EXPECT_EQ(InAllPages(report), 8 * kMiB);
    EXPECT_NE(report.note.find("2 MiB pages"), std::string::npos) << report.note;
    ExpectWholeFilterWorks(filter);
  }
}

}  // namespace
}  // namespace bloomline::test
