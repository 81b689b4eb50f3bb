// XXH3-64 of bytes that come in pieces: the checksum of snapshots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace bloomline::detail {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void Update(std::span<const std::byte> bytes) noexcept;
  uint64_t Digest() const noexcept;

  static uint64_t Of(std::span<const std::byte> bytes) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bloomline::detail
