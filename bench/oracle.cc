#include "bench/oracle.h"

#include <algorithm>

#include "kernels/layout.h"

namespace bloomline::bench {
namespace {

template <Layout kLayout, int kK>
void Batch(const detail::BlockBits& bits, std::span<const uint64_t> keys, uint64_t* bitmap) {
  static constexpr kernels::Spec kSpec = kernels::Describe(kLayout, kK);
  for (size_t first = 0; first < keys.size(); first += 64) {
    const size_t count = std::min<size_t>(64, keys.size() - first);
    uint64_t word = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t hash = detail::Mix(keys[first + i], bits.seed);
      const uint64_t* block = bits.words + kernels::BlockOf(kLayout, hash, bits.blocks) * kSpec.words_per_block();
      const kernels::LineMask mask = kernels::MaskOf(kSpec, hash);
      uint64_t missing = 0;
      for (size_t w = 0; w < kSpec.words_per_block(); ++w) missing |= mask.words[w] & ~block[w];
      word |= uint64_t{missing == 0} << i;
    }
    bitmap[first / 64] = word;
  }
}

}  // namespace

OracleBatch FindOracleBatch(Layout layout, int k) {
  if (layout == Layout::kWord64 && k == 5) return &Batch<Layout::kWord64, 5>;
  if (layout == Layout::kSplit512 && k == 8) return &Batch<Layout::kSplit512, 8>;
  if (layout == Layout::kSplit256 && k == 8) return &Batch<Layout::kSplit256, 8>;
  if (layout == Layout::kSector512z2 && k == 6) return &Batch<Layout::kSector512z2, 6>;
  if (layout == Layout::kSector512z4 && k == 8) return &Batch<Layout::kSector512z4, 8>;
  if (layout == Layout::kLine512 && k == 7) return &Batch<Layout::kLine512, 7>;
  return nullptr;
}

}  // namespace bloomline::bench
