#include "tools/validate/patterns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "bloomline/filter.h"

namespace bloomline::cli::validate {
namespace {

// A bijection of u64 that shares no constant and no shift with the library's hash, so that "random" keys are not
// simply what that hash would undo.
constexpr uint64_t Scramble(uint64_t x, uint64_t seed) {
  x += seed * 0xa24baed4963ee407 + 0x9fb21c651e98df25;
  x ^= x >> 28;
  x *= 0xda942042e4dd58b5;
  x ^= x >> 35;
  x *= 0xaef17502108ef2d9;
  return x ^ (x >> 29);
}

// A bijection of the numbers of `bits` bits.
constexpr uint64_t ScrambleBits(uint64_t x, int bits, uint64_t seed) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const int half = bits / 2;
  x = (x + seed) & mask;
  x = (x * 0x9ddfea08eb382d69) & mask;
  x ^= x >> half;
  x = (x * 0xc2b2ae3d27d4eb4f) & mask;
  return x ^ (x >> half);
}

template <class KeyOf>
Pattern Integers(std::string name, std::string what, KeyOf key_of) {
  Pattern pattern;
  pattern.name = std::move(name);
  pattern.what = std::move(what);
  pattern.fill = [key_of](uint64_t first, size_t count, KeyChunk& keys) {
    keys.type = KeyType::kU64;
    keys.u64.resize(count);
    for (size_t i = 0; i < count; ++i) keys.u64[i] = key_of(first + i);
  };
  return pattern;
}

// `write(i, out)` writes key i of at most kLongest bytes at `out` and returns its length.
constexpr size_t kLongest = 160;
template <class Write>
Pattern Strings(std::string name, std::string what, Write write) {
  Pattern pattern;
  pattern.name = std::move(name);
  pattern.what = std::move(what);
  pattern.type = KeyType::kString;
  pattern.fill = [write](uint64_t first, size_t count, KeyChunk& keys) {
    keys.type = KeyType::kString;
    keys.text.resize(count * kLongest);
    keys.strings.resize(count);
    char* out = keys.text.data();
    for (size_t i = 0; i < count; ++i) {
      const size_t length = write(first + i, out);
      keys.strings[i] = {out, length};
      out += length;
    }
  };
  return pattern;
}

size_t WriteDecimal(uint64_t value, char* out) {
  std::array<char, 20> reversed;
  size_t length = 0;
  do {
    reversed[length++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (size_t i = 0; i < length; ++i) out[i] = reversed[length - 1 - i];
  return length;
}

size_t WriteHex(uint64_t value, int digits, char* out) {
  for (int i = 0; i < digits; ++i) out[i] = "0123456789abcdef"[value >> (4 * (digits - 1 - i)) & 15];
  return static_cast<size_t>(digits);
}

size_t WriteText(std::string_view text, char* out) {
  std::copy(text.begin(), text.end(), out);
  return text.size();
}

// 122 free bits of 128, as version 4 has them. The four bits that the version displaces move to the other half, so
// that no two of them are equal.
size_t WriteUuid(uint64_t i, uint64_t seed, char* out) {
  const uint64_t a = Scramble(i, seed);
  const uint64_t b = Scramble(i, seed ^ 0x5555);
  const uint64_t high = (a & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = uint64_t{2} << 62 | (a >> 12 & 15) << 58 | b >> 6;
  size_t length = WriteHex(high >> 32, 8, out);
  out[length++] = '-';
  length += WriteHex(high >> 16 & 0xffff, 4, out + length);
  out[length++] = '-';
  length += WriteHex(high & 0xffff, 4, out + length);
  out[length++] = '-';
  length += WriteHex(low >> 48, 4, out + length);
  out[length++] = '-';
  return length + WriteHex(low & 0xffffffffffff, 12, out + length);
}

size_t WriteUrl(uint64_t i, uint64_t seed, char* out) {
  static constexpr std::array<std::string_view, 4> kHosts = {"www.example.org", "shop.example.com", "example.net",
                                                             "static.cdn.example.com"};
  static constexpr std::array<std::string_view, 5> kPaths = {"/articles/", "/users/profile?id=", "/images/2024/07/",
                                                             "/api/v1/orders/", "/search?lang=en&page=1&q="};
  const uint64_t mixed = Scramble(i / 50, seed);  // runs of pages of one site
  size_t length = WriteText(mixed % 8 == 0 ? "http://" : "https://", out);
  length += WriteText(kHosts[mixed >> 8 & 3], out + length);
  length += WriteText(kPaths[(mixed >> 16) % kPaths.size()], out + length);
  length += WriteDecimal(i, out + length);
  return length + (mixed >> 32 & 1 ? WriteText(".html", out + length) : 0);
}

// Objects of `size` bytes side by side in areas of 1 MiB, which lie anywhere below 2^47.
Pattern Pointers(std::string name, std::string what, uint64_t size, uint64_t seed) {
  const uint64_t per_area = (uint64_t{1} << 20) / size;
  Pattern pattern = Integers(std::move(name), std::move(what), [size, per_area, seed](uint64_t i) {
    return uint64_t{1} << 46 | ScrambleBits(i / per_area, 26, seed) << 20 | i % per_area * size;
  });
  pattern.limit = per_area << 26;
  return pattern;
}

Pattern Ipv4(uint64_t seed) {
  constexpr uint64_t kHosts = 200;  // used addresses of a /24 network
  Pattern pattern;
  pattern.name = "ipv4";
  pattern.what = "u32 addresses: 200 hosts each of many /24 networks";
  pattern.type = KeyType::kU32;
  pattern.limit = kHosts << 24;
  pattern.fill = [seed](uint64_t first, size_t count, KeyChunk& keys) {
    keys.type = KeyType::kU32;
    keys.u32.resize(count);
    for (size_t j = 0; j < count; ++j) {
      const uint64_t i = first + j;
      keys.u32[j] = static_cast<uint32_t>(ScrambleBits(i / kHosts, 24, seed) << 8 | (i % kHosts + 10));
    }
  };
  return pattern;
}

Pattern Words(std::vector<std::string> list) {
  const auto words = std::make_shared<const std::vector<std::string>>(std::move(list));
  Pattern pattern;
  pattern.name = "words";
  pattern.what = "a word list, half of it members (--words)";
  pattern.type = KeyType::kString;
  pattern.limit = words->size();
  pattern.fill = [words](uint64_t first, size_t count, KeyChunk& keys) {
    keys.type = KeyType::kString;
    keys.strings.resize(count);
    for (size_t i = 0; i < count; ++i) keys.strings[i] = (*words)[static_cast<size_t>(first) + i];
  };
  return pattern;
}

constexpr uint64_t ReverseBits(uint64_t x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  return __builtin_bswap64(x);
}

void AddIntegers(uint64_t seed, std::vector<Pattern>& all) {
  all.push_back(Integers("random", "random 64-bit integers", [seed](uint64_t i) { return Scramble(i, seed); }));
  all.push_back(Integers("sequential", "0, 1, 2, …", [](uint64_t i) { return i; }));
  // A rotation: what a shift would lose comes back at the bottom, so that strides of 2^60 have more than 16 keys.
  for (const int shift : {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60}) {
    all.push_back(Integers("stride" + std::to_string(shift), "multiples of 2^" + std::to_string(shift),
                           [shift](uint64_t i) { return std::rotl(i, shift); }));
  }
  all.push_back(
      Integers("big-endian", "a counter with its bytes swapped", [](uint64_t i) { return __builtin_bswap64(i); }));
  const uint64_t high = Scramble(0, seed) << 32;
  all.push_back(
      Integers("dense-low", "all low bits under constant high bits", [high](uint64_t i) { return high ^ i; }));
  all.push_back(Integers("dense-high", "a counter with its bits reversed", ReverseBits));
  all.push_back(Pointers("pointers16", "heap-like addresses, 16-byte aligned", 16, seed));
  all.push_back(Pointers("pointers64", "heap-like addresses, 64-byte aligned", 64, seed));
  all.push_back(Ipv4(seed));
  all.push_back(Integers("doubles", "bits of 0.1 · i",
                         [](uint64_t i) { return std::bit_cast<uint64_t>(static_cast<double>(i) * 0.1); }));
  all.push_back(Integers("doubles-int", "bits of whole numbers as doubles",
                         [](uint64_t i) { return std::bit_cast<uint64_t>(static_cast<double>(i)); }));
}

void AddStrings(uint64_t seed, std::vector<Pattern>& all) {
  all.push_back(Strings("decimal", "numbers in decimal", WriteDecimal));
  all.push_back(Strings("hex", "16 hexadecimal digits", [](uint64_t i, char* out) { return WriteHex(i, 16, out); }));
  all.push_back(
      Strings("uuid", "version 4 UUIDs as text", [seed](uint64_t i, char* out) { return WriteUuid(i, seed, out); }));
  all.push_back(Strings("url", "URLs", [seed](uint64_t i, char* out) { return WriteUrl(i, seed, out); }));
}

}  // namespace

uint64_t KeyChunk::Fingerprint(size_t i) const {
  if (type == KeyType::kU64) return u64[i];
  if (type == KeyType::kU32) return u32[i];
  return HashBytes(strings[i], 0xf1bbcdcbfa53e0af);
}

std::vector<Pattern> MakePatterns(uint64_t seed, std::vector<std::string> words) {
  std::vector<Pattern> all;
  AddIntegers(seed, all);
  AddStrings(seed, all);
  if (words.size() >= 2) all.push_back(Words(std::move(words)));
  return all;
}

std::vector<std::string> PatternNames() {
  std::vector<std::string> names;
  for (const Pattern& pattern : MakePatterns(0, {"a", "b"})) names.push_back(pattern.name);
  return names;
}

const std::vector<PatternPair>& MixedPairs() {
  static const std::vector<PatternPair> pairs = {
      {"sequential", "random"},
      {"random", "sequential"},
      {"sequential", "stride32"},
      {"pointers64", "pointers16"},
      {"doubles-int", "doubles"},
      {"decimal", "hex"},
      {"uuid", "url"},
  };
  return pairs;
}

}  // namespace bloomline::cli::validate
