#include "bench/keys.h"

#include <cstring>
#include <map>
#include <mutex>

namespace bloomline::bench {
namespace {

// An independent sequence for choosing which keys are asked for.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(KeyAt(~seed)) {}
  uint64_t Next() { return KeyAt(state_++ ^ 0x5851f42d4c957f2d); }
  // 0 … bound − 1. 128-bit products are not ISO C++; 32 bits of randomness per 32 bits of bound do.
  uint64_t Below(uint64_t bound) { return bound >> 32 == 0 ? ((Next() >> 32) * bound) >> 32 : Next() % bound; }

 private:
  uint64_t state_;
};

ProbeSet Make(const ProbeShape& shape) {
  ProbeSet set;
  Random random(shape.stream * 101 + static_cast<uint64_t>(shape.hit_percent));
  set.member_bitmap.resize((shape.count + 63) / 64);
  std::vector<size_t> lengths;
  for (size_t i = 0; i < shape.count; ++i) {
    const bool member = random.Below(100) < static_cast<uint64_t>(shape.hit_percent);
    const uint64_t index = member ? random.Below(shape.members) : kFirstAbsent + shape.stream * shape.count + i;
    set.member_bitmap[i / 64] |= uint64_t{member} << (i % 64);
    if (shape.strings) {
      char text[kMaxStringBytes];
      lengths.push_back(WriteStringKey(index, text));
      set.bytes.insert(set.bytes.end(), text, text + lengths.back());
    } else {
      set.keys.push_back(KeyAt(index));
    }
  }
  const char* next = set.bytes.data();
  for (const size_t length : lengths) {
    set.strings.emplace_back(next, length);
    next += length;
  }
  return set;
}

std::vector<uint64_t> g_member_keys;

}  // namespace

size_t WriteStringKey(uint64_t index, char* out) {
  const uint64_t first = KeyAt(index);  // distinct for distinct indices, so the strings are too
  for (uint64_t i = 0; i < kMaxStringBytes / 8; ++i) {
    const uint64_t piece = i == 0 ? first : KeyAt(first ^ i);
    std::memcpy(out + i * 8, &piece, 8);
  }
  return 16 + first % (kMaxStringBytes - 16 + 1);
}

std::shared_ptr<const ProbeSet> GetProbeSet(const ProbeShape& shape) {
  static std::mutex mutex;
  static std::map<ProbeShape, std::shared_ptr<const ProbeSet>> sets;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const ProbeSet>& set = sets[shape];
  if (set == nullptr) set = std::make_shared<const ProbeSet>(Make(shape));
  return set;
}

const std::vector<uint64_t>& MemberKeys(uint64_t n) {
  if (g_member_keys.size() != n) {
    ForgetMemberKeys();
    g_member_keys.resize(n);
    for (uint64_t i = 0; i < n; ++i) g_member_keys[i] = KeyAt(i);
  }
  return g_member_keys;
}

void ForgetMemberKeys() { std::vector<uint64_t>().swap(g_member_keys); }

}  // namespace bloomline::bench
