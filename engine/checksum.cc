#include "engine/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomline::detail {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(new State()) { XXH3_64bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::Update(std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksum::Digest() const noexcept { return XXH3_64bits_digest(&state_->xxh3); }

uint64_t Checksum::Of(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace bloomline::detail
