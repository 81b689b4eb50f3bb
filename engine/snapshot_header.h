// The first 4096 bytes of a snapshot, format version 1. All numbers are little-endian.
//
//   offset  bytes  field
//        0      8  magic: 89 'B' 'L' 'M' 0d 0a 1a 0a  (as in PNG: a transfer that strips the top bit or rewrites line
//                  ends shows)
//        8      4  format version: 1
//       12      4  bytes of this header: 4096
//       16      8  file length
//       24      8  header checksum: XXH3-64 of the 4096 bytes with this field zero
//       32      4  object kind (ObjectKind)
//       36      4  number of sections, 1 … 32
//       40      1  layout id (Layout)
//       41      1  zones
//       42      1  k
//       43      1  counter bits; 0: no counters
//       44      1  overflow policy; 0: none
//       45      1  hash id (HashId)
//       46      1  key kind (KeyKind)
//       47      1  zero
//       48      8  number of blocks
//       56      8  seed
//       64      8  design n; 0: not given
//       72      8  design FPR, IEEE 754 double, 0 ≤ value < 1; 0: not given
//       80      8  inserted count, at most 2^63
//       88    168  zero
//      256   32·i  section i
//                    +0  4  id (SectionId)
//                    +4  4  zero
//                    +8  8  offset
//                   +16  8  length
//                   +24  8  XXH3-64 of the section's bytes
//             rest  zero
//
// Sections follow in the table's order: the first at 4096, each next one at the first multiple of 4096 at or behind the
// end of the one before; the bytes between are zero. The file ends with the last section. The magic, the version and
// the place of both are the same in all versions to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bloomline/error.h"

namespace bloomline::detail {

inline constexpr uint32_t kSnapshotVersion = 1;
inline constexpr size_t kSnapshotHeaderBytes = 4096;
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr size_t kMaxSections = 32;
// Counts are added when filters are merged: two of these still fit 64 bits, and no filter ever sees that many inserts.
inline constexpr uint64_t kMaxCount = uint64_t{1} << 63;

enum class ObjectKind : uint32_t {
  kFilter = 1,
  kCounting = 2,
  kClassic = 3,
  kWindowed = 4,
};
// The kinds that a reader takes.
class ObjectKinds {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): one kind is a set of kinds
  constexpr ObjectKinds(ObjectKind kind) : mask_(uint32_t{1} << static_cast<uint32_t>(kind)) {}
  constexpr ObjectKinds(ObjectKind a, ObjectKind b) : mask_(ObjectKinds(a).mask_ | ObjectKinds(b).mask_) {}
  constexpr bool Has(ObjectKind kind) const {
    return static_cast<uint32_t>(kind) < 32 && ((mask_ >> static_cast<uint32_t>(kind)) & 1) != 0;
  }

 private:
  uint32_t mask_;
};
enum class SectionId : uint32_t {
  kPayload = 1,  // the blocks
  kSpill = 2,    // counters that outgrew theirs
  kWindow = 3,   // the state of a window of filters
};
enum class HashId : uint8_t {
  kMixXxh3 = 1,  // u64 by Mix, byte strings by XXH3-64, both seeded
};

struct SnapshotSection {
  SectionId id = SectionId::kPayload;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t checksum = 0;
};

// The header's fields. What they may be depends on the kind; the widths are those of the file.
struct SnapshotInfo {
  ObjectKind kind = ObjectKind::kFilter;
  uint8_t layout_id = 0;
  uint8_t zones = 0;
  uint8_t k = 0;
  uint8_t counter_bits = 0;
  uint8_t overflow_policy = 0;
  uint8_t hash_id = static_cast<uint8_t>(HashId::kMixXxh3);
  uint8_t key_kind = 0;
  uint64_t blocks = 0;
  uint64_t seed = 0;
  uint64_t expected_keys = 0;
  double target_fpr = 0;
  uint64_t inserted = 0;
  uint64_t file_bytes = 0;                // set by PlaceSections and ParseSnapshotHeader
  std::vector<SnapshotSection> sections;  // in file order
};

// Sets each section's offset and info.file_bytes from the lengths. At most kMaxSections sections.
void PlaceSections(SnapshotInfo& info);

// Writes the header of `info`, whose sections are placed and have their checksums.
void EncodeSnapshotHeader(const SnapshotInfo& info, std::span<std::byte, kSnapshotHeaderBytes> out);

// Reads a header and checks everything that holds for all kinds of object: magic, version, checksum, unused bytes, the
// file's length, where the sections lie. `start` is the first min(4096, file_bytes) bytes of the file, `source` what
// messages call it ("file.blm" in quotes, "the given bytes"). Allocates nothing that a field's value could enlarge.
// Errors: kCorrupt; kUnsupported for a newer version, and for an object that is of no kind of `expected`.
Result<SnapshotInfo> ParseSnapshotHeader(std::span<const std::byte> start, uint64_t file_bytes, ObjectKinds expected,
                                         const std::string& source);

// What holds for a header of kind kFilter or kCounting: layout, zones, k, counters, block count, hash, and a payload of
// just these blocks; where counters spill, perhaps a section of those that did (spill_section.h).
// Errors: kCorrupt; kUnsupported for an unknown hash.
Status CheckFilterHeader(const SnapshotInfo& info, const std::string& source);

}  // namespace bloomline::detail
