// What the machine allows: the library's own hash and addressing with the least possible work per key behind them.
// Every benchmark is judged by its ratio to these.
#pragma once

#include <cstdint>
#include <string_view>

#include "bloomline/detail/block_ops.h"

namespace bloomline::bench {

struct LimitOps {
  // Hash the keys, compute block and in-block word, keep nothing. Returns a value that depends on every key.
  uint64_t (*hash)(const detail::BlockBits& bits, const detail::KeySpan& keys);
  // And load one full line (64 bytes) per key. bits.prefetch as in the library: 0 or 1.
  uint64_t (*hash_touch)(const detail::BlockBits& bits, const detail::KeySpan& keys);
  // And store the line back as it was.
  uint64_t (*hash_rmw)(const detail::BlockBits& bits, const detail::KeySpan& keys);
};

// For a target by its canonical name; nullptr where it was not compiled.
const LimitOps* FindLimitOps(std::string_view target);

}  // namespace bloomline::bench
