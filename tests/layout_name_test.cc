// Names of layouts, which scripts and files depend on.
#include <gtest/gtest.h>

#include <string>

#include "bloomline/layout.h"

namespace bloomline {
namespace {

constexpr Layout kLayouts[] = {Layout::kSector512z1, Layout::kSector512z2, Layout::kSector512z4,
                               Layout::kSector512z8, Layout::kLine512,     Layout::kSplit256};

TEST(LayoutName, AsDocumented) {
  EXPECT_EQ(LayoutName(Layout::kSector512z1, 5), "word64");
  EXPECT_EQ(LayoutName(Layout::kSector512z2, 6), "sector512z2");
  EXPECT_EQ(LayoutName(Layout::kSector512z4, 8), "sector512z4");
  EXPECT_EQ(LayoutName(Layout::kSector512z8, 8), "split512");
  EXPECT_EQ(LayoutName(Layout::kSector512z8, 16), "sector512z8");
  EXPECT_EQ(LayoutName(Layout::kLine512, 7), "line512");
  EXPECT_EQ(LayoutName(Layout::kSplit256, 8), "split256");
  EXPECT_EQ(LayoutName(Layout::kAuto, 0), "auto");
  EXPECT_EQ(LayoutNameWithK(Layout::kSector512z1, 5), "word64k5");
  EXPECT_EQ(LayoutNameWithK(Layout::kSector512z2, 6), "sector512z2k6");
  EXPECT_EQ(LayoutNameWithK(Layout::kLine512, 7), "line512k7");
  EXPECT_EQ(LayoutNameWithK(Layout::kSplit512, 8), "split512");
  EXPECT_EQ(LayoutNameWithK(Layout::kSector512z8, 16), "sector512z8k16");
  EXPECT_EQ(LayoutNameWithK(Layout::kSplit256, 8), "split256");
}

TEST(LayoutName, EveryNameReadsBack) {
  for (const Layout layout : kLayouts) {
    for (int k = 1; k <= 16; ++k) {
      if (!IsValidHashCount(layout, k)) continue;
      const Result<LayoutChoice> with_k = TryParseLayout(LayoutNameWithK(layout, k));
      ASSERT_TRUE(with_k.ok()) << LayoutNameWithK(layout, k);
      EXPECT_EQ(*with_k, (LayoutChoice{layout, k}));
      const Result<LayoutChoice> without = TryParseLayout(LayoutName(layout, k));
      ASSERT_TRUE(without.ok()) << LayoutName(layout, k);
      EXPECT_EQ(without->layout, layout);
      EXPECT_TRUE(without->k == 0 || without->k == k);
    }
  }
  EXPECT_EQ(*TryParseLayout("auto"), (LayoutChoice{Layout::kAuto, 0}));
  EXPECT_EQ(*TryParseLayout("sector512z1"), (LayoutChoice{Layout::kWord64, 0}));
  EXPECT_EQ(*TryParseLayout("sector512z1k3"), (LayoutChoice{Layout::kWord64, 3}));
  EXPECT_EQ(*TryParseLayout("sector512z8"), (LayoutChoice{Layout::kSector512z8, 0}));
  EXPECT_EQ(*TryParseLayout("split512"), (LayoutChoice{Layout::kSplit512, 8}));
}

TEST(LayoutName, OthersAreRefusedByName) {
  for (const std::string name : {"",
                                 "word",
                                 "word64k",
                                 "word64k0",
                                 "word64k05",
                                 "word64k-1",
                                 "word64k+5",
                                 "word64k 5",
                                 "word64k17",
                                 "word64k555",
                                 "word64k5x",
                                 "word645",
                                 "Word64",
                                 "sector512z2k5",
                                 "sector512z3",
                                 "sector512z16",
                                 "sector512z8k4",
                                 "split512k9",
                                 "split256k8x",
                                 "line512k99999999999",
                                 " auto",
                                 "classic",
                                 "counting4k8",
                                 "counting16"}) {
    const Result<LayoutChoice> choice = TryParseLayout(name);
    ASSERT_FALSE(choice.ok()) << name;
    EXPECT_EQ(choice.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(choice.error().what()).find("layout = '" + name + "': "), std::string::npos)
        << choice.error().what();
  }
}

TEST(Layout, HashCounts) {
  for (const Layout layout : kLayouts) {
    for (const int k : {-8, 0, 17, 24, 255}) EXPECT_FALSE(IsValidHashCount(layout, k)) << k;
  }
  for (int k = 1; k <= 16; ++k) {
    EXPECT_TRUE(IsValidHashCount(Layout::kSector512z1, k));
    EXPECT_EQ(IsValidHashCount(Layout::kSector512z2, k), k % 2 == 0);
    EXPECT_EQ(IsValidHashCount(Layout::kSector512z4, k), k % 4 == 0);
    EXPECT_EQ(IsValidHashCount(Layout::kSector512z8, k), k % 8 == 0);
    EXPECT_TRUE(IsValidHashCount(Layout::kLine512, k));
    EXPECT_EQ(IsValidHashCount(Layout::kSplit256, k), k == 8);
    EXPECT_FALSE(IsValidHashCount(Layout::kAuto, k));
  }
  EXPECT_EQ(ZonesOf(Layout::kSector512z4), 4);
  EXPECT_EQ(ZonesOf(Layout::kSplit256), 8);
  EXPECT_EQ(ZonesOf(Layout::kLine512), 1);
  EXPECT_EQ(BlockBits(Layout::kSplit256), 256);
  EXPECT_EQ(BlockBits(Layout::kSplit512), 512);
}

TEST(ErrorCode, Names) {
  EXPECT_STREQ(ErrorCodeName(ErrorCode::kInvalidArgument), "invalid argument");
  EXPECT_STREQ(ErrorCodeName(ErrorCode::kUnsupported), "unsupported");
  EXPECT_STREQ(ErrorCodeName(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
}  // namespace bloomline
