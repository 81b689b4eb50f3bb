// What `bloomline validate` puts to the test: one filter of some layout, filled and asked through its batch calls.
// A new kind of filter is a class here and a line in Layouts().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bloomline/layout.h"
#include "tools/validate/patterns.h"

namespace bloomline::cli::validate {

// Deliberate damage, to show that it is found.
enum class Break : uint8_t {
  kNone,
  kLose,    // one key of 1000 is not inserted
  kTarget,  // on all targets but the best the filter has another seed
  // The keys go in as hashes of the caller's that are broken in a known way:
  kHash,   // one multiplication instead of a hash
  kReuse,  // the low half of the hash follows from the high half, which chooses the block
};

struct SubjectOptions {
  Layout layout = Layout::kSplit512;
  int k = 8;
  uint64_t keys = 1;
  double bits_per_key = 10;
  uint64_t seed = 0;
  std::string target;
  Break broken = Break::kNone;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual void Clear() = 0;
  virtual void Insert(const KeyChunk& keys) = 0;
  // Bit i of `bitmap`: key i may be present. `bitmap` has a word per 64 keys.
  virtual void Lookup(const KeyChunk& keys, std::span<uint64_t> bitmap) = 0;
  virtual double FillFpr() const = 0;
  virtual double FillFraction() const = 0;
  virtual std::span<const uint64_t> Words() const = 0;
};

struct LayoutSpec {
  std::string name;  // as in --layouts, e.g. "sector512z2"
  Layout layout = Layout::kSplit512;
  int default_k = 8;
  int fixed_k = 0;  // the name says it; 0: --k or the grid does
  std::unique_ptr<Subject> (*make)(const SubjectOptions&) = nullptr;
};

// Those that "all" means, in the order of the tables.
const std::vector<LayoutSpec>& Layouts();

// Blocks of a filter of these keys and bits (of counting layouts: counters) per key.
uint64_t BlocksFor(Layout layout, int k, uint64_t keys, double bits_per_key);

}  // namespace bloomline::cli::validate
