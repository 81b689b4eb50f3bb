// The batch calls: fixed-width keys go straight to the kernels, byte strings through chunks of hashes on the stack.
#include <algorithm>
#include <bit>
#include <cstring>

#include "bloomline/filter.h"
#include "engine/key_chunks.h"
#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

using detail::Covered;
using detail::ForHashChunks;
using detail::Hashes;
using detail::HashString;
using detail::Keys;
using detail::KeySpan;
using detail::kStringChunk;
using detail::WordsFor;

// Keys between probing and writing positions.
constexpr size_t kSelectChunk = 1024;

// Appends the positions of the set bits of `bitmap` to out; position i of the bitmap is position(i).
template <class Position>
size_t WritePositions(const uint64_t* bitmap, size_t count, uint32_t* out, const Position& position) {
  size_t written = 0;
  for (size_t w = 0; w < WordsFor(count); ++w) {
    for (uint64_t word = bitmap[w]; word != 0; word &= word - 1) {
      out[written++] = position(w * 64 + static_cast<size_t>(std::countr_zero(word)));
    }
  }
  return written;
}

// Probes chunks of fixed-width keys and writes the positions of those that pass.
template <class KeysOf>
size_t Select(const detail::BlockOps& ops, const detail::BlockBits& bits, const KeysOf& keys_of, size_t count,
              uint32_t* out) {
  uint64_t bitmap[kSelectChunk / 64];
  size_t written = 0;
  for (size_t first = 0; first < count; first += kSelectChunk) {
    const size_t size = std::min(kSelectChunk, count - first);
    ops.contains_batch(bits, keys_of(first, size), bitmap);
    written += WritePositions(bitmap, size, out + written, [&](size_t i) { return static_cast<uint32_t>(first + i); });
  }
  return written;
}

template <class Strings>
size_t SelectStrings(const detail::BlockOps& ops, const detail::BlockBits& bits, const Strings& keys, size_t count,
                     uint32_t* out) {
  size_t written = 0;
  ForHashChunks(keys, count, bits.seed, [&](size_t first, const KeySpan& hashes) {
    uint64_t bitmap[kStringChunk / 64];
    ops.contains_batch(bits, hashes, bitmap);
    written +=
        WritePositions(bitmap, hashes.size, out + written, [&](size_t i) { return static_cast<uint32_t>(first + i); });
  });
  return written;
}

// The keys at the selected positions, gathered as hashes. `hash` takes a position in range.
template <class HashOf>
size_t SelectFrom(const detail::BlockOps& ops, const detail::BlockBits& bits, std::span<const uint32_t> selection,
                  size_t key_count, std::span<uint32_t> positions, const HashOf& hash) {
  const size_t count = std::min(selection.size(), positions.size());
  size_t written = 0;
  for (size_t first = 0; first < count;) {
    uint64_t hashes[kStringChunk];
    uint32_t chosen[kStringChunk];
    size_t size = 0;
    for (; first < count && size < kStringChunk; ++first) {
      const uint32_t position = selection[first];
      if (position >= key_count) continue;
      chosen[size] = position;
      hashes[size++] = hash(position);
    }
    uint64_t bitmap[kStringChunk / 64];
    ops.contains_batch(bits, Hashes(hashes, size), bitmap);
    written += WritePositions(bitmap, size, positions.data() + written, [&](size_t i) { return chosen[i]; });
  }
  return written;
}

template <class Strings>
void ContainsStrings(const detail::BlockOps& ops, const detail::BlockBits& bits, const Strings& keys,
                     std::span<uint64_t> bitmap) {
  ForHashChunks(keys, Covered(keys.size(), bitmap.size()), bits.seed, [&](size_t first, const KeySpan& hashes) {
    ops.contains_batch(bits, hashes, bitmap.data() + first / 64);
  });
}

}  // namespace

uint64_t HashBytes(std::string_view bytes, uint64_t seed) noexcept { return HashString(bytes, seed); }

// ---- Columns of strings.

namespace {
template <class Offset>
Status CheckOffsets(std::span<const Offset> offsets, std::string_view bytes) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const Offset least = i == 0 ? 0 : offsets[i - 1];
    const bool fits = offsets[i] >= least && static_cast<uint64_t>(offsets[i]) <= bytes.size();
    if (!fits) {
      return Error(ErrorCode::kInvalidArgument, "offsets[" + std::to_string(i) + "] = " + std::to_string(offsets[i]) +
                                                    ": must be at least " + std::to_string(least) +
                                                    " and at most the bytes given, " + std::to_string(bytes.size()));
    }
  }
  return {};
}
}  // namespace

Result<BinaryColumn> BinaryColumn::Create(std::span<const int32_t> offsets, std::string_view bytes) try {
  if (Status checked = CheckOffsets(offsets, bytes); !checked.ok()) return checked.error();
  BinaryColumn column;
  column.offsets_ = offsets.data();
  column.bytes_ = bytes.data();
  column.size_ = offsets.empty() ? 0 : offsets.size() - 1;
  return column;
} catch (...) {
  return detail::CaughtError();
}
Result<BinaryColumn> BinaryColumn::Create(std::span<const int64_t> offsets, std::string_view bytes) try {
  if (Status checked = CheckOffsets(offsets, bytes); !checked.ok()) return checked.error();
  BinaryColumn column;
  column.offsets_ = offsets.data();
  column.bytes_ = bytes.data();
  column.size_ = offsets.empty() ? 0 : offsets.size() - 1;
  column.wide_ = true;
  return column;
} catch (...) {
  return detail::CaughtError();
}
BinaryColumn::BinaryColumn(std::span<const int32_t> offsets, std::string_view bytes)
    : BinaryColumn(Create(offsets, bytes).value()) {}
BinaryColumn::BinaryColumn(std::span<const int64_t> offsets, std::string_view bytes)
    : BinaryColumn(Create(offsets, bytes).value()) {}

// ---- Lookups.

void FilterReader::MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap) const noexcept {
  ops_->contains_batch(bits_, Keys(keys, 0, Covered(keys.size(), bitmap.size())), bitmap.data());
}
void FilterReader::MayContainBatch(std::span<const uint32_t> keys, std::span<uint64_t> bitmap) const noexcept {
  ops_->contains_batch(bits_, Keys(keys, 0, Covered(keys.size(), bitmap.size())), bitmap.data());
}
void FilterReader::MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap) const noexcept {
  ContainsStrings(*ops_, bits_, keys, bitmap);
}
void FilterReader::MayContainBatch(std::span<const std::string> keys, std::span<uint64_t> bitmap) const noexcept {
  ContainsStrings(*ops_, bits_, keys, bitmap);
}
void FilterReader::MayContainBatch(const BinaryColumn& keys, std::span<uint64_t> bitmap) const noexcept {
  ContainsStrings(*ops_, bits_, keys, bitmap);
}
void FilterReader::MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap) const noexcept {
  ops_->contains_batch(bits_, Hashes(hashes.data(), Covered(hashes.size(), bitmap.size())), bitmap.data());
}

size_t FilterReader::SelectBatch(std::span<const uint64_t> keys, std::span<uint32_t> positions) const noexcept {
  return Select(
      *ops_, bits_, [&](size_t first, size_t size) { return Keys(keys, first, size); },
      std::min(keys.size(), positions.size()), positions.data());
}
size_t FilterReader::SelectBatch(std::span<const uint32_t> keys, std::span<uint32_t> positions) const noexcept {
  return Select(
      *ops_, bits_, [&](size_t first, size_t size) { return Keys(keys, first, size); },
      std::min(keys.size(), positions.size()), positions.data());
}
size_t FilterReader::SelectHashBatch(std::span<const uint64_t> hashes, std::span<uint32_t> positions) const noexcept {
  return Select(
      *ops_, bits_, [&](size_t first, size_t size) { return Hashes(hashes.data() + first, size); },
      std::min(hashes.size(), positions.size()), positions.data());
}
size_t FilterReader::SelectBatch(std::span<const std::string_view> keys, std::span<uint32_t> positions) const noexcept {
  return SelectStrings(*ops_, bits_, keys, std::min(keys.size(), positions.size()), positions.data());
}
size_t FilterReader::SelectBatch(const BinaryColumn& keys, std::span<uint32_t> positions) const noexcept {
  return SelectStrings(*ops_, bits_, keys, std::min(keys.size(), positions.size()), positions.data());
}

size_t FilterReader::SelectBatch(std::span<const uint64_t> keys, std::span<const uint32_t> selection,
                                 std::span<uint32_t> positions) const noexcept {
  return SelectFrom(*ops_, bits_, selection, keys.size(), positions,
                    [&](uint32_t i) { return detail::MixMasked(detail::KeyAt(keys, i), key_mask_); });
}
size_t FilterReader::SelectBatch(std::span<const uint32_t> keys, std::span<const uint32_t> selection,
                                 std::span<uint32_t> positions) const noexcept {
  return SelectFrom(*ops_, bits_, selection, keys.size(), positions,
                    [&](uint32_t i) { return detail::MixMasked(detail::KeyAt(keys, i), key_mask_); });
}
size_t FilterReader::SelectBatch(std::span<const std::string_view> keys, std::span<const uint32_t> selection,
                                 std::span<uint32_t> positions) const noexcept {
  return SelectFrom(*ops_, bits_, selection, keys.size(), positions,
                    [&](uint32_t i) { return HashString(keys[i], bits_.seed); });
}

// ---- Inserts.

namespace {
template <class Strings>
void InsertStrings(const detail::BlockOps& ops, const detail::BlockBits& bits, const Strings& keys) {
  ForHashChunks(keys, keys.size(), bits.seed, [&](size_t, const KeySpan& hashes) { ops.insert_batch(bits, hashes); });
}
template <class Strings>
void TryInsertStrings(const detail::BlockOps& ops, const detail::BlockBits& bits, const Strings& keys, size_t count,
                      uint64_t* changed) {
  ForHashChunks(keys, count, bits.seed,
                [&](size_t first, const KeySpan& hashes) { ops.try_insert_batch(bits, hashes, changed + first / 64); });
}
}  // namespace

void Filter::InsertBatch(std::span<const uint64_t> keys) noexcept {
  inserted_ += keys.size();
  ops_->insert_batch(bits_, Keys(keys, 0, keys.size()));
}
void Filter::InsertBatch(std::span<const uint32_t> keys) noexcept {
  inserted_ += keys.size();
  ops_->insert_batch(bits_, Keys(keys, 0, keys.size()));
}
void Filter::InsertBatch(std::span<const std::string_view> keys) noexcept {
  inserted_ += keys.size();
  InsertStrings(*ops_, bits_, keys);
}
void Filter::InsertBatch(std::span<const std::string> keys) noexcept {
  inserted_ += keys.size();
  InsertStrings(*ops_, bits_, keys);
}
void Filter::InsertBatch(const BinaryColumn& keys) noexcept {
  inserted_ += keys.size();
  InsertStrings(*ops_, bits_, keys);
}
void Filter::InsertHashBatch(std::span<const uint64_t> hashes) noexcept {
  inserted_ += hashes.size();
  ops_->insert_batch(bits_, Hashes(hashes.data(), hashes.size()));
}

void Filter::TryInsertBatch(std::span<const uint64_t> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  inserted_ += count;
  ops_->try_insert_batch(bits_, Keys(keys, 0, count), changed.data());
}
void Filter::TryInsertBatch(std::span<const uint32_t> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  inserted_ += count;
  ops_->try_insert_batch(bits_, Keys(keys, 0, count), changed.data());
}
void Filter::TryInsertBatch(std::span<const std::string_view> keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  inserted_ += count;
  TryInsertStrings(*ops_, bits_, keys, count, changed.data());
}
void Filter::TryInsertBatch(const BinaryColumn& keys, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(keys.size(), changed.size());
  inserted_ += count;
  TryInsertStrings(*ops_, bits_, keys, count, changed.data());
}
void Filter::TryInsertHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> changed) noexcept {
  const size_t count = Covered(hashes.size(), changed.size());
  inserted_ += count;
  ops_->try_insert_batch(bits_, Hashes(hashes.data(), count), changed.data());
}

}  // namespace bloomline
