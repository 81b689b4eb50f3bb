// The key patterns of `bloomline validate`: for every pattern the i-th of its keys, all distinct, the same for the same
// seed. Members and probes are ranges of i, so that no probe is a member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace bloomline::cli::validate {

enum class KeyType : uint8_t { kU64, kU32, kString };

// Some keys; only the vector of `type` is filled.
struct KeyChunk {
  KeyType type = KeyType::kU64;
  std::vector<uint64_t> u64;
  std::vector<uint32_t> u32;
  std::vector<std::string_view> strings;  // into `text`, or into the pattern's own memory
  std::vector<char> text;

  size_t size() const {
    return type == KeyType::kU64 ? u64.size() : type == KeyType::kU32 ? u32.size() : strings.size();
  }
  // What tells key i from the others of its type: its value, for strings a 64-bit hash that no filter uses.
  uint64_t Fingerprint(size_t i) const;
};

struct Pattern {
  std::string name;  // as in --patterns
  std::string what;  // a few words for the help
  KeyType type = KeyType::kU64;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // how many keys it has
  std::function<void(uint64_t first, size_t count, KeyChunk& keys)> fill;
};

// All patterns in the order of the tables. `words` are distinct and shared by the pattern "words", which is left out
// where there are none.
std::vector<Pattern> MakePatterns(uint64_t seed, std::vector<std::string> words);

// Every name, also "words".
std::vector<std::string> PatternNames();

// The default pairs of patterns of members and of probes, as names.
struct PatternPair {
  const char* members;
  const char* probes;
};
const std::vector<PatternPair>& MixedPairs();

// The distinct lines of a file, in an order that depends on the seed. An empty path: the usual dictionary files, and
// nothing where none is there. Errors: CliError(3) naming --words; files above 256 MiB are refused (4).
std::vector<std::string> ReadWords(const std::string& path, uint64_t seed);

}  // namespace bloomline::cli::validate
