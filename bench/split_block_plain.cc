#include "bench/split_block_plain.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0  // scalar
#include <xxhash.h>

namespace bloomline::bench {
namespace {

constexpr uint32_t kSalts[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

uint64_t Hash(uint64_t key) { return XXH64(&key, sizeof key, 0); }

}  // namespace

void SplitBlockPlain::InsertHash(uint64_t hash) {
  uint32_t* const block = words_.data() + BlockOf(hash);
  for (size_t i = 0; i < kWords; ++i) block[i] |= uint32_t{1} << (static_cast<uint32_t>(hash) * kSalts[i] >> 27);
}

bool SplitBlockPlain::MayContainHash(uint64_t hash) const {
  const uint32_t* const block = words_.data() + BlockOf(hash);
  for (size_t i = 0; i < kWords; ++i) {
    if ((block[i] >> (static_cast<uint32_t>(hash) * kSalts[i] >> 27) & 1) == 0) return false;
  }
  return true;
}

void SplitBlockPlain::Insert(const uint64_t* keys, size_t count) {
  for (size_t i = 0; i < count; ++i) InsertHash(Hash(keys[i]));
}

size_t SplitBlockPlain::CountMayContain(const uint64_t* keys, size_t count) const {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) found += MayContainHash(Hash(keys[i]));
  return found;
}

}  // namespace bloomline::bench
