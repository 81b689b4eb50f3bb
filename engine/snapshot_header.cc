#include "engine/snapshot_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bloomline/config.h"
#include "bloomline/layout.h"
#include "bloomline/overflow_policy.h"
#include "engine/checksum.h"
#include "engine/fpr_blocked.h"

namespace bloomline::detail {
namespace {

constexpr std::array<unsigned char, 8> kMagic = {0x89, 'B', 'L', 'M', 0x0d, 0x0a, 0x1a, 0x0a};

constexpr size_t kVersionAt = 8;
constexpr size_t kHeaderBytesAt = 12;
constexpr size_t kFileBytesAt = 16;
constexpr size_t kChecksumAt = 24;
constexpr size_t kKindAt = 32;
constexpr size_t kSectionCountAt = 36;
constexpr size_t kLayoutAt = 40;
constexpr size_t kZonesAt = 41;
constexpr size_t kHashCountAt = 42;
constexpr size_t kCounterBitsAt = 43;
constexpr size_t kOverflowPolicyAt = 44;
constexpr size_t kHashIdAt = 45;
constexpr size_t kKeyKindAt = 46;
constexpr size_t kBlocksAt = 48;
constexpr size_t kSeedAt = 56;
constexpr size_t kExpectedKeysAt = 64;
constexpr size_t kTargetFprAt = 72;
constexpr size_t kInsertedAt = 80;
constexpr size_t kFieldsEnd = 88;
constexpr size_t kSectionsAt = 256;
constexpr size_t kSectionEntryBytes = 32;
static_assert(kSectionsAt + kMaxSections * kSectionEntryBytes <= kSnapshotHeaderBytes);

// Byte by byte: the same on machines of either byte order.
template <class T>
void Store(std::byte* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

uint64_t Load(const std::byte* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(at[i]) << (8 * i);
  return value;
}
uint8_t Load8(const std::byte* at) { return std::to_integer<uint8_t>(*at); }
uint32_t Load32(const std::byte* at) { return static_cast<uint32_t>(Load(at, 4)); }
uint64_t Load64(const std::byte* at) { return Load(at, 8); }

constexpr uint64_t AlignSection(uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

Error Corrupt(const std::string& source, const std::string& what) {
  return Error(ErrorCode::kCorrupt, source + " is damaged: " + what);
}

// "k is 0; 1 … 16 are allowed"
Error BadField(const std::string& source, const char* field, const std::string& value, const std::string& allowed) {
  return Corrupt(source, std::string(field) + " is " + value + "; allowed: " + allowed);
}

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string KindText(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kFilter:
      return "a filter";
    case ObjectKind::kCounting:
      return "a counting filter";
    case ObjectKind::kClassic:
      return "a classic filter";
    case ObjectKind::kWindowed:
      return "a windowed filter";
  }
  return "an object of unknown kind " + std::to_string(static_cast<uint32_t>(kind));
}

// Offset of the first byte in [begin, end) that is not zero; `end` where all are.
size_t FirstNonZero(std::span<const std::byte> header, size_t begin, size_t end) {
  const auto it = std::find_if(header.begin() + static_cast<std::ptrdiff_t>(begin),
                               header.begin() + static_cast<std::ptrdiff_t>(end),
                               [](std::byte value) { return value != std::byte{0}; });
  return static_cast<size_t>(it - header.begin());
}

Status CheckStart(std::span<const std::byte> start, uint64_t file_bytes, const std::string& source) {
  const size_t known = std::min(start.size(), kMagic.size());
  if (file_bytes == 0) {
    return Error(ErrorCode::kCorrupt, source + " is not a bloomline file: it is empty");
  }
  if (std::memcmp(start.data(), kMagic.data(), known) != 0) {
    return Error(ErrorCode::kCorrupt, source + " is not a bloomline file");
  }
  // A newer version may have another header: nothing behind the version may be looked at before it is known.
  if (start.size() >= kVersionAt + 4) {
    const uint32_t version = Load32(start.data() + kVersionAt);
    if (version > kSnapshotVersion) {
      return Error(ErrorCode::kUnsupported, source + " has format version " + std::to_string(version) +
                                                "; this library reads version " + std::to_string(kSnapshotVersion) +
                                                " only: a newer one is needed");
    }
    if (version == 0) return BadField(source, "format version", "0", std::to_string(kSnapshotVersion));
  }
  if (start.size() < kSnapshotHeaderBytes) {
    return Corrupt(source, "it is cut after " + std::to_string(file_bytes) + " bytes; the header alone has " +
                               std::to_string(kSnapshotHeaderBytes));
  }
  return {};
}

Status CheckUnused(std::span<const std::byte> header, size_t sections, const std::string& source) {
  const auto check = [&](size_t begin, size_t end) -> Status {
    const size_t at = FirstNonZero(header, begin, end);
    if (at == end) return {};
    return BadField(source, ("unused header byte " + std::to_string(at)).c_str(),
                    std::to_string(Load8(header.data() + at)), "0");
  };
  if (Status s = check(kKeyKindAt + 1, kBlocksAt); !s.ok()) return s;
  if (Status s = check(kFieldsEnd, kSectionsAt); !s.ok()) return s;
  for (size_t i = 0; i < sections; ++i) {
    const size_t entry = kSectionsAt + i * kSectionEntryBytes;
    if (Status s = check(entry + 4, entry + 8); !s.ok()) return s;
  }
  return check(kSectionsAt + sections * kSectionEntryBytes, kSnapshotHeaderBytes);
}

Status CheckSections(const SnapshotInfo& info, const std::string& source) {
  uint64_t end = kSnapshotHeaderBytes;  // ≤ file_bytes throughout: no sum here overflows
  for (size_t i = 0; i < info.sections.size(); ++i) {
    const SnapshotSection& section = info.sections[i];
    const std::string name = "section " + std::to_string(i);
    for (size_t j = 0; j < i; ++j) {
      if (info.sections[j].id == section.id) {
        return BadField(source, (name + "'s id").c_str(), std::to_string(static_cast<uint32_t>(section.id)),
                        "no id twice");
      }
    }
    if (end > UINT64_MAX - kSectionAlignment || section.offset != AlignSection(end)) {
      return BadField(source, (name + "'s offset").c_str(), std::to_string(section.offset),
                      "the first multiple of 4096 from " + std::to_string(end) + " on");
    }
    if (section.offset > info.file_bytes || section.length > info.file_bytes - section.offset) {
      return BadField(source, (name + "'s length").c_str(), std::to_string(section.length),
                      "what fits the file's " + std::to_string(info.file_bytes) + " bytes from offset " +
                          std::to_string(section.offset) + " on");
    }
    end = section.offset + section.length;
  }
  if (end != info.file_bytes) {
    return BadField(source, "the end of the last section", std::to_string(end),
                    "the file's length, " + std::to_string(info.file_bytes));
  }
  return {};
}

// Fields whose range does not depend on the kind.
Status CheckCommonFields(const SnapshotInfo& info, const std::string& source) {
  if (info.key_kind > static_cast<uint8_t>(KeyKind::kHashed)) {
    return BadField(source, "key kind", std::to_string(info.key_kind), "0 … 3");
  }
  if (!(info.target_fpr >= 0 && info.target_fpr < 1) || std::signbit(info.target_fpr)) {
    return BadField(source, "design FPR", Number(info.target_fpr), "0 up to below 1");
  }
  if (info.expected_keys > kMaxCount) {
    return BadField(source, "design n", std::to_string(info.expected_keys), "0 … 2^63");
  }
  if (info.inserted > kMaxCount) {
    return BadField(source, "inserted count", std::to_string(info.inserted), "0 … 2^63 (merges add counts)");
  }
  return {};
}

}  // namespace

void PlaceSections(SnapshotInfo& info) {
  uint64_t end = kSnapshotHeaderBytes;
  for (SnapshotSection& section : info.sections) {
    section.offset = AlignSection(end);
    end = section.offset + section.length;
  }
  info.file_bytes = end;
}

void EncodeSnapshotHeader(const SnapshotInfo& info, std::span<std::byte, kSnapshotHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  std::byte* const header = out.data();
  std::memcpy(header, kMagic.data(), kMagic.size());
  Store(header + kVersionAt, kSnapshotVersion);
  Store(header + kHeaderBytesAt, static_cast<uint32_t>(kSnapshotHeaderBytes));
  Store(header + kFileBytesAt, info.file_bytes);
  Store(header + kKindAt, static_cast<uint32_t>(info.kind));
  Store(header + kSectionCountAt, static_cast<uint32_t>(info.sections.size()));
  header[kLayoutAt] = std::byte{info.layout_id};
  header[kZonesAt] = std::byte{info.zones};
  header[kHashCountAt] = std::byte{info.k};
  header[kCounterBitsAt] = std::byte{info.counter_bits};
  header[kOverflowPolicyAt] = std::byte{info.overflow_policy};
  header[kHashIdAt] = std::byte{info.hash_id};
  header[kKeyKindAt] = std::byte{info.key_kind};
  Store(header + kBlocksAt, info.blocks);
  Store(header + kSeedAt, info.seed);
  Store(header + kExpectedKeysAt, info.expected_keys);
  Store(header + kTargetFprAt, std::bit_cast<uint64_t>(info.target_fpr));
  Store(header + kInsertedAt, info.inserted);
  for (size_t i = 0; i < info.sections.size(); ++i) {
    const SnapshotSection& section = info.sections[i];
    std::byte* const entry = header + kSectionsAt + i * kSectionEntryBytes;
    Store(entry, static_cast<uint32_t>(section.id));
    Store(entry + 8, section.offset);
    Store(entry + 16, section.length);
    Store(entry + 24, section.checksum);
  }
  Store(header + kChecksumAt, Checksum::Of(out));
}

Result<SnapshotInfo> ParseSnapshotHeader(std::span<const std::byte> start, uint64_t file_bytes, ObjectKinds expected,
                                         const std::string& source) {
  if (Status s = CheckStart(start, file_bytes, source); !s.ok()) return s.error();

  std::array<std::byte, kSnapshotHeaderBytes> copy;
  std::memcpy(copy.data(), start.data(), copy.size());
  const std::byte* const header = copy.data();
  const uint64_t stored_checksum = Load64(header + kChecksumAt);
  Store(copy.data() + kChecksumAt, uint64_t{0});
  if (Checksum::Of(copy) != stored_checksum) {
    return Corrupt(source, "the header does not match its checksum");
  }

  const uint32_t header_bytes = Load32(header + kHeaderBytesAt);
  if (header_bytes != kSnapshotHeaderBytes) {
    return BadField(source, "header length", std::to_string(header_bytes), "4096");
  }
  SnapshotInfo info;
  info.file_bytes = Load64(header + kFileBytesAt);
  if (info.file_bytes != file_bytes) {
    return Corrupt(source, "its header was written for " + std::to_string(info.file_bytes) + " bytes; there are " +
                               std::to_string(file_bytes));
  }
  const uint32_t sections = Load32(header + kSectionCountAt);
  if (sections < 1 || sections > kMaxSections) {
    return BadField(source, "number of sections", std::to_string(sections), "1 … " + std::to_string(kMaxSections));
  }
  if (Status s = CheckUnused(copy, sections, source); !s.ok()) return s.error();

  info.kind = static_cast<ObjectKind>(Load32(header + kKindAt));
  info.layout_id = Load8(header + kLayoutAt);
  info.zones = Load8(header + kZonesAt);
  info.k = Load8(header + kHashCountAt);
  info.counter_bits = Load8(header + kCounterBitsAt);
  info.overflow_policy = Load8(header + kOverflowPolicyAt);
  info.hash_id = Load8(header + kHashIdAt);
  info.key_kind = Load8(header + kKeyKindAt);
  info.blocks = Load64(header + kBlocksAt);
  info.seed = Load64(header + kSeedAt);
  info.expected_keys = Load64(header + kExpectedKeysAt);
  info.target_fpr = std::bit_cast<double>(Load64(header + kTargetFprAt));
  info.inserted = Load64(header + kInsertedAt);
  for (size_t i = 0; i < sections; ++i) {
    const std::byte* const entry = header + kSectionsAt + i * kSectionEntryBytes;
    info.sections.push_back(
        {static_cast<SectionId>(Load32(entry)), Load64(entry + 8), Load64(entry + 16), Load64(entry + 24)});
  }
  if (Status s = CheckSections(info, source); !s.ok()) return s.error();
  if (!expected.Has(info.kind)) {
    std::string wanted;
    for (const ObjectKind kind :
         {ObjectKind::kFilter, ObjectKind::kCounting, ObjectKind::kClassic, ObjectKind::kWindowed}) {
      if (expected.Has(kind)) wanted += (wanted.empty() ? "" : " or ") + KindText(kind);
    }
    return Error(ErrorCode::kUnsupported, source + " holds " + KindText(info.kind) + "; " + wanted + " is wanted here");
  }
  if (Status s = CheckCommonFields(info, source); !s.ok()) return s.error();
  return Result<SnapshotInfo>(std::move(info));
}

Status CheckFilterHeader(const SnapshotInfo& info, const std::string& source) {
  const auto bad = [&](const char* field, uint64_t value, const std::string& allowed) {
    return BadField(source, field, std::to_string(value), allowed);
  };
  const bool counting = info.kind == ObjectKind::kCounting;
  const Layout first = counting ? Layout::kCounting4 : Layout::kSector512z1;
  const Layout last = counting ? Layout::kCounting8 : Layout::kSplit256;
  if (info.layout_id < static_cast<uint8_t>(first) || info.layout_id > static_cast<uint8_t>(last)) {
    return bad("layout id", info.layout_id, counting ? "7 or 8 for a counting filter" : "1 … 6");
  }
  const auto layout = static_cast<Layout>(info.layout_id);
  const auto zones = static_cast<uint64_t>(ZonesOf(layout));
  if (info.zones != zones) {
    return bad("zones", info.zones, std::to_string(zones) + " for layout " + std::to_string(info.layout_id));
  }
  if (!IsValidHashCount(layout, info.k)) {
    return bad("k", info.k,
               layout == Layout::kSplit256
                   ? "8 for split256"
                   : "1 … 16, divisible by the " + std::to_string(zones) + " zones of the layout");
  }
  const int counter_bits = counting ? BlockBits(layout) / CellsPerBlock(layout) : 0;
  if (info.counter_bits != counter_bits) {
    return bad("counter bits", info.counter_bits,
               std::to_string(counter_bits) + " for layout " + std::to_string(info.layout_id));
  }
  if (counting ? info.overflow_policy < 1 || info.overflow_policy > 3 : info.overflow_policy != 0) {
    return bad("overflow policy", info.overflow_policy, counting ? "1 … 3" : "0 for a filter");
  }
  if (info.hash_id != static_cast<uint8_t>(HashId::kMixXxh3)) {
    return Error(ErrorCode::kUnsupported,
                 source + " uses hash " + std::to_string(info.hash_id) + "; this library has hash 1 for filters");
  }
  const uint64_t max_blocks = MaxBlocks(layout);
  if (info.blocks < 1 || info.blocks > max_blocks) {
    return bad("number of blocks", info.blocks, "1 … " + std::to_string(max_blocks));
  }
  const bool may_spill = info.overflow_policy == static_cast<uint8_t>(OverflowPolicy::kSpill);
  if (info.sections.size() > (may_spill ? 2U : 1U)) {
    return bad("number of sections", info.sections.size(),
               may_spill ? "1 or 2 for a counting filter that spills" : "1");
  }
  if (info.sections.size() == 2 && info.sections[1].id != SectionId::kSpill) {
    return bad("section 1's id", static_cast<uint32_t>(info.sections[1].id), "2 (spilled counters)");
  }
  const SnapshotSection& payload = info.sections[0];
  if (payload.id != SectionId::kPayload) {
    return bad("section 0's id", static_cast<uint32_t>(payload.id), "1 (the blocks)");
  }
  const uint64_t bytes = info.blocks * static_cast<uint64_t>(BlockBits(layout) / 8);  // < 2^38
  if (payload.length != bytes) {
    return bad("section 0's length", payload.length,
               std::to_string(bytes) + " for " + std::to_string(info.blocks) + " blocks");
  }
  return {};
}

}  // namespace bloomline::detail
