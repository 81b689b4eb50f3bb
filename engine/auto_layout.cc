#include "engine/auto_layout.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

#include "bloomline/fpr_model.h"
#include "engine/fpr_blocked.h"
#include "engine/machine_memory.h"

namespace bloomline::detail {
namespace {

// Cost of one lookup in a batch that stays in the cache, as a multiple of hashing the key and touching its line:
// lookup_batch/<layout>/1MiB over limit/hash_touch/1MiB of bloomline_bench --all on AVX-512 (AVX3_DL, Zen 5, g++ 12).
// Smaller targets order the layouts differently (AVX2: split256 0.92, split512 1.2, word64 1.3, sector512z2 1.6,
// line512 2.4), but a filter should not change with the machine that sizes it. THE one place to change when better
// figures arrive.
struct LookupCost {
  Layout layout;
  int least_k;  // the entry is for least_k … most_k
  int most_k;
  double cost;
};
constexpr LookupCost kLookupCosts[] = {
    {Layout::kSector512z1, 1, 8, 1.05},   // eight keys per vector
    {Layout::kSplit256, 8, 8, 1.10},      // one vector test of half a line
    {Layout::kSplit512, 8, 8, 1.22},      // one vector test of the whole line
    {Layout::kLine512, 1, 7, 1.25},       // and a permute within it
    {Layout::kSector512z2, 2, 8, 1.33},   // and a mask on the word index
    {Layout::kSector512z4, 4, 8, 1.33},   //
    {Layout::kLine512, 8, 8, 1.45},       // a second word of g
    {Layout::kSector512z1, 9, 16, 1.50},  // two vector tests from here on
    {Layout::kSector512z8, 16, 16, 1.57}, {Layout::kSector512z2, 10, 16, 1.80},
    {Layout::kSector512z4, 12, 16, 1.90}, {Layout::kLine512, 9, 16, 2.10},
};

// A faster layout is worth this much more memory than the smallest filter, and no more. A judgement: what is gained
// holds while the filter stays in the core's cache, what is paid always. With 5 % split512 is chosen at the usual
// targets (0.1 % to 5 %); with 10 % it would be split256, a tenth faster in L2 and no faster beyond.
constexpr double kMemorySlack = 1.05;

std::string Described(const SizedLayout& sized) {
  return LayoutName(sized.layout, sized.k) + " (k = " + std::to_string(sized.k) + ")";
}

std::string Bytes(uint64_t bits) { return FormatBytes(bits / 8); }

// Fewer bits; at the same size the lower FPR.
bool Smaller(const SizedLayout& a, const SizedLayout& b) {
  if (b.blocks == 0) return a.blocks != 0;
  return a.blocks != 0 && (a.bits() < b.bits() || (a.bits() == b.bits() && a.fpr < b.fpr));
}

// The k in [least, most] that needs the fewest blocks.
SizedLayout BestOfLayout(uint64_t n, double fpr, Layout layout, int least, int most) {
  SizedLayout best{layout, 0, 0, 1.0, {}};
  for (int k = least; k <= most; ++k) {
    if (!IsValidHashCount(layout, k)) continue;
    SizedLayout sized{layout, k, BlocksForFpr(layout, k, n, fpr), 1.0, {}};
    if (sized.blocks == 0) continue;
    sized.fpr = PredictedFpr(layout, k, sized.blocks, n);
    if (Smaller(sized, best)) best = sized;
  }
  return best;
}

SizedLayout BestOfAll(uint64_t n, double fpr, int k) {
  SizedLayout of_entry[std::size(kLookupCosts)];
  SizedLayout smallest;
  for (size_t i = 0; i < std::size(kLookupCosts); ++i) {
    const LookupCost& entry = kLookupCosts[i];
    if (k != 0 && (k < entry.least_k || k > entry.most_k)) continue;
    of_entry[i] = BestOfLayout(n, fpr, entry.layout, k != 0 ? k : entry.least_k, k != 0 ? k : entry.most_k);
    if (Smaller(of_entry[i], smallest)) smallest = of_entry[i];
  }
  if (smallest.blocks == 0) return smallest;
  const double most_bits = kMemorySlack * static_cast<double>(smallest.bits());
  SizedLayout chosen;
  double cost = 0.0;
  for (size_t i = 0; i < std::size(kLookupCosts); ++i) {
    const SizedLayout& sized = of_entry[i];
    if (sized.blocks == 0 || static_cast<double>(sized.bits()) > most_bits) continue;
    if (chosen.blocks == 0 || kLookupCosts[i].cost < cost) {
      chosen = sized;
      cost = kLookupCosts[i].cost;
    }
  }
  if (chosen.layout == smallest.layout && chosen.k == smallest.k) {
    chosen.reason = Described(chosen) + ": the least memory for this FPR, and no faster layout comes within 5 % of it";
  } else if (chosen.bits() == smallest.bits()) {
    chosen.reason = Described(chosen) + ": the fastest lookup of the layouts with the least memory for this FPR (" +
                    Bytes(chosen.bits()) + ")";
  } else {
    chosen.reason =
        Described(chosen) + ": the fastest lookup of the layouts within 5 % of the least memory for this FPR (" +
        Bytes(chosen.bits()) + "; the least is " + Bytes(smallest.bits()) + ", " + Described(smallest) + ")";
  }
  return chosen;
}

}  // namespace

uint64_t BlocksForBits(Layout layout, uint64_t bits) noexcept {
  const auto unit = static_cast<uint64_t>(BlockBits(layout));
  return bits / unit + (bits % unit != 0 ? 1 : 0);
}

SizedLayout ChooseForFpr(uint64_t n, double fpr, Layout layout, int k) {
  if (layout == Layout::kAuto) return BestOfAll(n, fpr, k);
  return BestOfLayout(n, fpr, layout, k != 0 ? k : kMinHashes, k != 0 ? k : kMaxHashes);
}

SizedLayout ChooseForBits(uint64_t n, uint64_t bits, Layout layout, int k) {
  SizedLayout best;
  if (IsCounting(layout)) {  // never a choice of auto's, and k is fixed
    const uint64_t blocks = BlocksForBits(layout, bits);
    return {layout, 8, blocks, PredictedFpr(layout, 8, blocks, n), {}};
  }
  for (const LookupCost& entry : kLookupCosts) {
    if (layout != Layout::kAuto && layout != entry.layout) continue;
    const uint64_t blocks = BlocksForBits(entry.layout, bits);
    if (blocks > MaxBlocks(entry.layout)) continue;
    for (int candidate = entry.least_k; candidate <= entry.most_k; ++candidate) {
      if ((k != 0 && candidate != k) || !IsValidHashCount(entry.layout, candidate)) continue;
      const double fpr = PredictedFpr(entry.layout, candidate, blocks, n);
      if (best.blocks == 0 || fpr < best.fpr) best = {entry.layout, candidate, blocks, fpr, {}};
    }
  }
  if (layout != Layout::kAuto || best.blocks == 0) return best;
  const SizedLayout chosen = BestOfAll(n, best.fpr, k);
  if (chosen.blocks == 0) return best;
  SizedLayout sized = ChooseForBits(n, bits, chosen.layout, k);
  if (sized.blocks == 0) return best;
  char text[96];
  std::snprintf(text, sizeof text, " at these bits per key (predicted FPR %.3g %%; the lowest is %.3g %%, ",
                100.0 * sized.fpr, 100.0 * best.fpr);
  sized.reason = Described(sized);
  if (sized.layout == best.layout && sized.k == best.k) {
    sized.reason += ": the lowest FPR at these bits per key, and no faster layout comes within 5 % of its memory";
  } else {
    sized.reason +=
        ": the fastest lookup of the layouts within 5 % of the best" + std::string(text) + Described(best) + ")";
  }
  return sized;
}

}  // namespace bloomline::detail
