// Keys of any kind as a source of hashes, for loops that sort hashes before they use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bloomline/detail/block_ops.h"
#include "engine/key_chunks.h"

namespace bloomline::detail {

// Each has size() and Hash(first, count, out).
class FixedKeys {
 public:
  static constexpr bool kHashingIsDear = false;
  FixedKeys(const BlockOps& ops, const BlockBits& bits, std::span<const uint64_t> keys, KeyForm form)
      : ops_(ops), bits_(bits), keys_(keys), form_(form) {}
  size_t size() const { return keys_.size(); }
  void Hash(size_t first, size_t count, uint64_t* out) const {
    ops_.hash_batch(bits_, {keys_.data() + first, count, form_}, out);
  }

 private:
  const BlockOps& ops_;
  const BlockBits& bits_;
  std::span<const uint64_t> keys_;
  KeyForm form_;
};

class StringKeys {
 public:
  static constexpr bool kHashingIsDear = true;
  StringKeys(std::span<const std::string_view> keys, uint64_t seed) : keys_(keys), seed_(seed) {}
  size_t size() const { return keys_.size(); }
  void Hash(size_t first, size_t count, uint64_t* out) const {
    for (size_t i = 0; i < count; ++i) out[i] = HashString(keys_[first + i], seed_);
  }

 private:
  std::span<const std::string_view> keys_;
  uint64_t seed_;
};

}  // namespace bloomline::detail
