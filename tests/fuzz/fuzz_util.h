// What the fuzzers share. A fuzzer decodes its input to calls of the public API and holds each result against a model
// written plainly; whatever differs ends the process.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/target.h"

namespace bloomline::fuzz {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

template <class T>
T& Must(Result<T>& result) {
  if (!result.ok()) Require(false, result.error().what());
  return result.value();
}

inline bool BitOf(std::span<const uint64_t> bitmap, size_t i) { return (bitmap[i / 64] >> (i % 64) & 1) != 0; }
inline size_t WordsFor(size_t keys) { return (keys + 63) / 64; }

// Keys of one form, drawn from few values so that repeats happen, in memory that ends where they end (AddressSanitizer
// then sees every read beyond) and that starts at any address.
template <class Key>
class KeyArray {
 public:
  KeyArray(FuzzedDataProvider& input, size_t count, size_t values) : size_(count) {
    shift_ = input.ConsumeIntegralInRange<size_t>(0, sizeof(Key) - 1);
    bytes_ = std::vector<uint8_t>(shift_ + count * sizeof(Key));
    const auto first = input.ConsumeIntegral<uint8_t>();
    const auto step = input.ConsumeIntegralInRange<uint8_t>(0, 7);
    for (size_t i = 0; i < count; ++i) {
      const Key key = ValueOf((first + i * step) % values);
      std::memcpy(bytes_.data() + shift_ + i * sizeof(Key), &key, sizeof(Key));
    }
  }
  static Key ValueOf(size_t number) {
    // The ends of the range, and numbers all over it.
    if (number == 0) return 0;
    if (number == 1) return static_cast<Key>(~uint64_t{0});
    return static_cast<Key>(number * 0x9e3779b97f4a7c15);
  }
  std::span<const Key> keys() const { return {reinterpret_cast<const Key*>(bytes_.data() + shift_), size_}; }
  Key operator[](size_t i) const {
    Key key;
    std::memcpy(&key, bytes_.data() + shift_ + i * sizeof(Key), sizeof(Key));
    return key;
  }
  size_t size() const { return size_; }

 private:
  size_t size_;
  size_t shift_ = 0;
  std::vector<uint8_t> bytes_;
};

class StringArray {
 public:
  StringArray(FuzzedDataProvider& input, size_t count) {
    const auto first = input.ConsumeIntegral<uint8_t>();
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<uint8_t>(first + i * 3);
      strings_.emplace_back(number % 41, static_cast<char>(number));
    }
    views_.assign(strings_.begin(), strings_.end());
  }
  std::span<const std::string_view> keys() const { return views_; }
  std::string_view operator[](size_t i) const { return views_[i]; }
  size_t size() const { return views_.size(); }

 private:
  std::vector<std::string> strings_;
  std::vector<std::string_view> views_;
};

inline const std::vector<std::string>& Targets() {
  static const std::vector<std::string> targets = SupportedTargets();
  return targets;
}

}  // namespace bloomline::fuzz
