// Snapshots of Filter, CountingFilter and FilterView.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/concurrent_filter.h"
#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "engine/filter_access.h"
#include "engine/out_of_memory.h"
#include "engine/snapshot.h"
#include "engine/spill_section.h"
#include "engine/spill_table.h"
#include "engine/storage.h"

namespace bloomline {
namespace {

using detail::ObjectKind;
using detail::ObjectKinds;
using detail::SectionBytes;
using detail::SectionId;
using detail::SnapshotBuffer;
using detail::SnapshotFile;
using detail::SnapshotInfo;
using detail::SpillTable;
using detail::Storage;

constexpr uintptr_t kWrapAlignment = 64;

SnapshotInfo InfoOf(const FilterReader& filter) {
  SnapshotInfo info;
  info.kind = IsCounting(filter.layout()) ? ObjectKind::kCounting : ObjectKind::kFilter;
  if (IsCounting(filter.layout())) {
    info.counter_bits = static_cast<uint8_t>(BlockBits(filter.layout()) / CellsPerBlock(filter.layout()));
    info.overflow_policy = static_cast<uint8_t>(filter.overflow_policy());
  }
  info.layout_id = static_cast<uint8_t>(filter.layout());
  info.zones = static_cast<uint8_t>(ZonesOf(filter.layout()));
  info.k = static_cast<uint8_t>(filter.k());
  info.key_kind = static_cast<uint8_t>(filter.key_kind());
  info.blocks = filter.blocks();
  info.seed = filter.seed();
  info.expected_keys = filter.expected_keys();
  info.target_fpr = filter.target_fpr();
  // Only merges of estimates can lead beyond; a file with more would be refused.
  info.inserted = std::min(filter.InsertedCount(), detail::kMaxCount);
  return info;
}

// The sections of a filter, and what they point to.
class Sections {
 public:
  Sections(const FilterReader& filter, const SpillTable* spill)
      : spilled_(spill == nullptr ? std::vector<std::byte>() : detail::EncodeSpill(*spill)) {
    sections_.push_back({SectionId::kPayload, std::as_bytes(filter.words())});
    if (!spilled_.empty()) sections_.push_back({SectionId::kSpill, spilled_});
  }
  std::span<const SectionBytes> all() const { return sections_; }

 private:
  std::vector<std::byte> spilled_;
  std::vector<SectionBytes> sections_;
};

// The header has passed CheckFilterHeader.
FilterAccess::Shape ShapeOf(const SnapshotInfo& info) {
  FilterAccess::Shape shape;
  shape.layout = static_cast<Layout>(info.layout_id);
  shape.k = info.k;
  shape.blocks = info.blocks;
  shape.seed = info.seed;
  shape.key_kind = static_cast<KeyKind>(info.key_kind);
  shape.expected_keys = info.expected_keys;
  shape.target_fpr = info.target_fpr;
  shape.inserted = info.inserted;
  shape.policy = static_cast<OverflowPolicy>(info.overflow_policy);
  return shape;
}

Error Named(const std::string& source, const Error& error) { return Error(error.code(), source + ": " + error.what()); }

// The side table of a snapshot whose counters are `words`; null where its policy has none. Source: SnapshotFile or
// SnapshotBuffer.
template <class Source>
Result<std::unique_ptr<SpillTable>> ReadSpill(const Source& source, const uint64_t* words, const std::string& name) {
  const SnapshotInfo& info = source.info();
  std::unique_ptr<SpillTable> table;
  if (info.overflow_policy != static_cast<uint8_t>(OverflowPolicy::kSpill)) return Result(std::move(table));
  try {
    table = std::make_unique<SpillTable>();
    if (info.sections.size() == 2) {
      std::vector<std::byte> bytes(static_cast<size_t>(info.sections[1].length));
      if (Status s = source.ReadSection(1, bytes); !s.ok()) return s.error();
      if (Status s = detail::DecodeSpill(bytes, info.counter_bits, {words, static_cast<size_t>(info.blocks * 8)}, name,
                                         *table);
          !s.ok()) {
        return s.error();
      }
    }
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, name + ": no memory for its spilled counters");
  }
  return Result(std::move(table));
}

// Reads the payload straight into the memory of a new filter.
template <class T, class Source>
Result<T> ReadFilter(const Source& source, const std::string& name, const MemoryPolicy& memory) {
  const SnapshotInfo& info = source.info();
  if (Status s = detail::CheckFilterHeader(info, name); !s.ok()) return s.error();
  const uint64_t bytes = info.sections[0].length;
  Result<std::unique_ptr<Storage>> storage = Storage::Allocate(bytes, memory);
  if (!storage.ok()) return Named(name, storage.error());
  uint64_t* const words = (*storage)->words();
  if (Status s = source.ReadSection(0, {(*storage)->data(), static_cast<size_t>(bytes)}); !s.ok()) return s.error();
  Result<std::unique_ptr<SpillTable>> spill = ReadSpill(source, words, name);
  if (!spill.ok()) return spill.error();
  return FilterAccess::Make<T>(ShapeOf(info), words, *std::move(storage), *std::move(spill));
}

template <class T>
Result<T> LoadFilter(const std::string& path, ObjectKind kind, const MemoryPolicy& memory) {
  Result<SnapshotFile> file = SnapshotFile::Open(path, kind);
  if (!file.ok()) return file.error();
  return ReadFilter<T>(*file, file->source(), memory);
}

template <class T>
Result<T> DeserializeFilter(std::span<const std::byte> bytes, ObjectKind kind, const MemoryPolicy& memory) {
  Result<SnapshotBuffer> buffer = SnapshotBuffer::Open(bytes, kind);
  if (!buffer.ok()) return buffer.error();
  return ReadFilter<T>(*buffer, detail::kGivenBytes, memory);
}

Status RequireBlocks(const FilterReader& filter) {
  if (filter.blocks() != 0) return {};
  return Error(ErrorCode::kInvalidArgument, "the filter was moved from: it has no blocks to save");
}

}  // namespace

void FilterReader::Save(const std::string& path) const { TrySave(path).value(); }

Status FilterReader::TrySave(const std::string& path) const try {
  if (Status s = RequireBlocks(*this); !s.ok()) return s;
  return detail::WriteSnapshotFile(path, InfoOf(*this), Sections(*this, spill_.get()).all());
} catch (...) {
  return detail::CaughtError();
}

// Of a live filter: the words are copied piece by piece, and the checksum is that of the copy.
Status ConcurrentFilter::TrySave(const std::string& path) const try {
  SnapshotInfo info = InfoOf(filter_);
  info.inserted = std::min(InsertedCount(), detail::kMaxCount);
  return detail::WriteSnapshotFile(path, info, Sections(filter_, nullptr).all());
} catch (...) {
  return detail::CaughtError();
}

size_t FilterReader::SerializedBytes() const noexcept {
  const size_t payload_end = detail::kSnapshotHeaderBytes + static_cast<size_t>(memory_bytes());
  if (spill_ == nullptr || spill_->entries().empty()) return payload_end;
  constexpr size_t kAlignment = detail::kSectionAlignment;
  return (payload_end + kAlignment - 1) / kAlignment * kAlignment + detail::SpillBytes(*spill_);
}

size_t FilterReader::SerializeTo(std::span<std::byte> out) const { return TrySerializeTo(out).value(); }

Result<size_t> FilterReader::TrySerializeTo(std::span<std::byte> out) const try {
  if (Status s = RequireBlocks(*this); !s.ok()) return s.error();
  return detail::SerializeSnapshot(out, InfoOf(*this), Sections(*this, spill_.get()).all());
} catch (...) {
  return detail::CaughtError();
}

Filter Filter::Load(const std::string& path, const MemoryPolicy& memory) { return TryLoad(path, memory).value(); }
Result<Filter> Filter::TryLoad(const std::string& path, const MemoryPolicy& memory) try {
  return LoadFilter<Filter>(path, ObjectKind::kFilter, memory);
} catch (...) {
  return detail::CaughtError();
}
Filter Filter::Deserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory) {
  return TryDeserialize(bytes, memory).value();
}
Result<Filter> Filter::TryDeserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory) try {
  return DeserializeFilter<Filter>(bytes, ObjectKind::kFilter, memory);
} catch (...) {
  return detail::CaughtError();
}

CountingFilter CountingFilter::Load(const std::string& path, const MemoryPolicy& memory) {
  return TryLoad(path, memory).value();
}
Result<CountingFilter> CountingFilter::TryLoad(const std::string& path, const MemoryPolicy& memory) try {
  return FilterAccess::Bound(LoadFilter<CountingFilter>(path, ObjectKind::kCounting, memory));
} catch (...) {
  return detail::CaughtError();
}
CountingFilter CountingFilter::Deserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory) {
  return TryDeserialize(bytes, memory).value();
}
Result<CountingFilter> CountingFilter::TryDeserialize(std::span<const std::byte> bytes,
                                                      const MemoryPolicy& memory) try {
  return FilterAccess::Bound(DeserializeFilter<CountingFilter>(bytes, ObjectKind::kCounting, memory));
} catch (...) {
  return detail::CaughtError();
}

constexpr ObjectKinds kViewable(ObjectKind::kFilter, ObjectKind::kCounting);

FilterView FilterView::Map(const std::string& path, Verify verify) { return TryMap(path, verify).value(); }

Result<FilterView> FilterView::TryMap(const std::string& path, Verify verify) try {
  Result<SnapshotFile> file = SnapshotFile::Open(path, kViewable);
  if (!file.ok()) return file.error();
  const SnapshotInfo& info = file->info();
  if (Status s = detail::CheckFilterHeader(info, file->source()); !s.ok()) return s.error();
  if (verify == Verify::kAll) {
    if (Status s = file->VerifySection(0); !s.ok()) return s.error();
  }
  Result<std::unique_ptr<Storage>> storage =
      Storage::MapFile(file->fd(), info.sections[0].offset, info.sections[0].length);
  if (!storage.ok()) return Named(file->source(), storage.error());
  uint64_t* const words = (*storage)->words();
  Result<std::unique_ptr<SpillTable>> spill = ReadSpill(*file, words, file->source());
  if (!spill.ok()) return spill.error();
  return FilterAccess::Make<FilterView>(ShapeOf(info), words, *std::move(storage), *std::move(spill));
} catch (...) {
  return detail::CaughtError();
}

FilterView FilterView::Wrap(std::span<const std::byte> bytes, Verify verify) { return TryWrap(bytes, verify).value(); }

Result<FilterView> FilterView::TryWrap(std::span<const std::byte> bytes, Verify verify) try {
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(bytes.data()) % kWrapAlignment;
  if (misaligned != 0) {
    return Error(ErrorCode::kInvalidArgument, "bytes start " + std::to_string(misaligned) +
                                                  " bytes behind a multiple of 64; a view needs them at a multiple "
                                                  "(Filter::Deserialize copies from anywhere)");
  }
  Result<SnapshotBuffer> buffer = SnapshotBuffer::Open(bytes, kViewable);
  if (!buffer.ok()) return buffer.error();
  const SnapshotInfo& info = buffer->info();
  if (Status s = detail::CheckFilterHeader(info, detail::kGivenBytes); !s.ok()) return s.error();
  if (verify == Verify::kAll) {
    if (Status s = buffer->VerifySection(0); !s.ok()) return s.error();
  }
  // A view never writes: kernels take one type for both.
  auto* const words = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(buffer->section(0).data()));
  Result<std::unique_ptr<SpillTable>> spill = ReadSpill(*buffer, words, detail::kGivenBytes);
  if (!spill.ok()) return spill.error();
  return FilterAccess::Make<FilterView>(ShapeOf(info), words, nullptr, *std::move(spill));
} catch (...) {
  return detail::CaughtError();
}

}  // namespace bloomline
