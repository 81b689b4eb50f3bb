// The keys that benchmarks insert and look up: random, reproducible, and known to be members or not without a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace bloomline::bench {

// Key number `index`: a bijection of u64 that shares nothing with the library's mixer. Members have the indices
// 0 … n − 1, absent keys those from kFirstAbsent on, so that neither is ever taken for the other.
constexpr uint64_t KeyAt(uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
inline constexpr uint64_t kFirstAbsent = uint64_t{1} << 48;

// Byte string number `index`, 16 … 64 bytes, into `out` (64 bytes); returns its length.
inline constexpr size_t kMaxStringBytes = 64;
size_t WriteStringKey(uint64_t index, char* out);

// What is asked of a filter in one pass.
struct ProbeShape {
  uint64_t members = 0;  // n: members are drawn from the first n keys
  size_t count = 0;      // keys in a pass
  int hit_percent = 50;  // members among them, in random order
  bool strings = false;
  uint64_t stream = 0;  // another stream, another set: one per thread
  friend auto operator<=>(const ProbeShape&, const ProbeShape&) = default;
};

struct ProbeSet {
  std::vector<uint64_t> keys;             // empty where the keys are strings
  std::vector<char> bytes;                // the strings, one behind the other
  std::vector<std::string_view> strings;  // into bytes
  std::vector<uint64_t> member_bitmap;    // bit i: key i is a member
  size_t size() const { return keys.empty() ? strings.size() : keys.size(); }
};

// Made once per shape and kept. Thread-safe.
std::shared_ptr<const ProbeSet> GetProbeSet(const ProbeShape& shape);

// The first n keys in their order, for builds; the last one asked for is kept. Not thread-safe.
const std::vector<uint64_t>& MemberKeys(uint64_t n);
void ForgetMemberKeys();

}  // namespace bloomline::bench
