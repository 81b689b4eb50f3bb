#include "engine/spill_section.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/snapshot_header.h"
#include "kernels/counting_layout.h"

namespace bloomline::detail {
namespace {

constexpr size_t kEntryBytes = 16;

// The library runs on little-endian machines only where files are concerned, as payloads do.
uint64_t Load(const std::byte* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

size_t SpillBytes(const SpillTable& table) noexcept { return table.entries().size() * kEntryBytes; }

std::vector<std::byte> EncodeSpill(const SpillTable& table) {
  std::vector<std::pair<uint64_t, uint64_t>> entries(table.entries().begin(), table.entries().end());
  std::sort(entries.begin(), entries.end());
  std::vector<std::byte> bytes(entries.size() * kEntryBytes);
  for (size_t i = 0; i < entries.size(); ++i) {
    std::memcpy(bytes.data() + i * kEntryBytes, &entries[i].first, 8);
    std::memcpy(bytes.data() + i * kEntryBytes + 8, &entries[i].second, 8);
  }
  return bytes;
}

Status DecodeSpill(std::span<const std::byte> bytes, int counter_bits, std::span<const uint64_t> words,
                   const std::string& source, SpillTable& table) {
  const auto corrupt = [&](size_t entry, const std::string& what) {
    return Error(ErrorCode::kCorrupt, source + " is damaged: spilled counter " + std::to_string(entry) + " " + what);
  };
  if (bytes.size() % kEntryBytes != 0) {
    return Error(ErrorCode::kCorrupt, source + " is damaged: its spilled counters take " +
                                          std::to_string(bytes.size()) + " bytes, which is no multiple of 16");
  }
  const auto per_word = static_cast<uint64_t>(64 / counter_bits);
  const uint64_t max = kernels::CounterMax(counter_bits);
  uint64_t least = 0;
  for (size_t i = 0; i < bytes.size() / kEntryBytes; ++i) {
    const uint64_t place = Load(bytes.data() + i * kEntryBytes);
    const uint64_t count = Load(bytes.data() + i * kEntryBytes + 8);
    if (place < least || place / per_word >= words.size()) {
      return corrupt(i, "is at " + std::to_string(place) + ", out of order or beyond the filter");
    }
    if (count == 0 || count > kMaxCount - table.total()) {
      return corrupt(i, "has the count " + std::to_string(count));
    }
    const uint64_t counter =
        (words[static_cast<size_t>(place / per_word)] >> (place % per_word * static_cast<uint64_t>(counter_bits))) &
        max;
    if (counter != max) return corrupt(i, "belongs to a counter at " + std::to_string(counter) + ", which is not full");
    if (!table.Add(place, count)) throw std::bad_alloc();
    least = place + 1;
  }
  return {};
}

}  // namespace bloomline::detail
