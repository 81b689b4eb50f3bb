// The section of a snapshot that holds spilled counters: 16 bytes each, little-endian, ascending by place.
//
//   +0  8  the counter's place: block · counters per block + its number in the line (word · counters per word + its
//          number in the word, from the low end)
//   +8  8  how much is beyond the counter's maximum, at least 1; the counter itself is full
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bloomline/error.h"
#include "engine/spill_table.h"

namespace bloomline::detail {

size_t SpillBytes(const SpillTable& table) noexcept;
std::vector<std::byte> EncodeSpill(const SpillTable& table);
// Checks every entry against the counters in `words`. Error: kCorrupt. Throws std::bad_alloc.
Status DecodeSpill(std::span<const std::byte> bytes, int counter_bits, std::span<const uint64_t> words,
                   const std::string& source, SpillTable& table);

}  // namespace bloomline::detail
