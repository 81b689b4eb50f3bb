// Snapshots of Filter and FilterView.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bloomline/filter.h"
#include "engine/filter_access.h"
#include "engine/snapshot.h"
#include "engine/storage.h"

namespace bloomline {
namespace {

using detail::ObjectKind;
using detail::SectionBytes;
using detail::SectionId;
using detail::SnapshotBuffer;
using detail::SnapshotFile;
using detail::SnapshotInfo;
using detail::Storage;

constexpr uintptr_t kWrapAlignment = 64;

SnapshotInfo InfoOf(const FilterReader& filter) {
  SnapshotInfo info;
  info.kind = ObjectKind::kFilter;
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

SectionBytes PayloadOf(const FilterReader& filter) { return {SectionId::kPayload, std::as_bytes(filter.words())}; }

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
  return shape;
}

Error Named(const std::string& source, const Error& error) { return Error(error.code(), source + ": " + error.what()); }

// Reads the payload straight into the memory of a new filter. Source: SnapshotFile or SnapshotBuffer.
template <class Source>
Result<Filter> ReadFilter(const Source& source, const std::string& name, const MemoryPolicy& memory) {
  const SnapshotInfo& info = source.info();
  if (Status s = detail::CheckFilterHeader(info, name); !s.ok()) return s.error();
  const uint64_t bytes = info.sections[0].length;
  Result<std::unique_ptr<Storage>> storage = Storage::Allocate(bytes, memory);
  if (!storage.ok()) return Named(name, storage.error());
  uint64_t* const words = (*storage)->words();
  if (Status s = source.ReadSection(0, {(*storage)->data(), static_cast<size_t>(bytes)}); !s.ok()) return s.error();
  return FilterAccess::Make<Filter>(ShapeOf(info), words, *std::move(storage));
}

}  // namespace

namespace {
Status RequireBlocks(const FilterReader& filter) {
  if (filter.blocks() != 0) return {};
  return Error(ErrorCode::kInvalidArgument, "the filter was moved from: it has no blocks to save");
}
}  // namespace

void FilterReader::Save(const std::string& path) const { TrySave(path).value(); }

Status FilterReader::TrySave(const std::string& path) const {
  if (Status s = RequireBlocks(*this); !s.ok()) return s;
  const SectionBytes payload = PayloadOf(*this);
  return detail::WriteSnapshotFile(path, InfoOf(*this), {&payload, 1});
}

size_t FilterReader::SerializedBytes() const noexcept {
  return detail::kSnapshotHeaderBytes + static_cast<size_t>(memory_bytes());
}

size_t FilterReader::SerializeTo(std::span<std::byte> out) const { return TrySerializeTo(out).value(); }

Result<size_t> FilterReader::TrySerializeTo(std::span<std::byte> out) const {
  if (Status s = RequireBlocks(*this); !s.ok()) return s.error();
  const SectionBytes payload = PayloadOf(*this);
  return detail::SerializeSnapshot(out, InfoOf(*this), {&payload, 1});
}

Filter Filter::Load(const std::string& path, const MemoryPolicy& memory) { return TryLoad(path, memory).value(); }

Result<Filter> Filter::TryLoad(const std::string& path, const MemoryPolicy& memory) {
  Result<SnapshotFile> file = SnapshotFile::Open(path, ObjectKind::kFilter);
  if (!file.ok()) return file.error();
  return ReadFilter(*file, file->source(), memory);
}

Filter Filter::Deserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory) {
  return TryDeserialize(bytes, memory).value();
}

Result<Filter> Filter::TryDeserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory) {
  Result<SnapshotBuffer> buffer = SnapshotBuffer::Open(bytes, ObjectKind::kFilter);
  if (!buffer.ok()) return buffer.error();
  return ReadFilter(*buffer, detail::kGivenBytes, memory);
}

FilterView FilterView::Map(const std::string& path, Verify verify) { return TryMap(path, verify).value(); }

Result<FilterView> FilterView::TryMap(const std::string& path, Verify verify) {
  Result<SnapshotFile> file = SnapshotFile::Open(path, ObjectKind::kFilter);
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
  return FilterAccess::Make<FilterView>(ShapeOf(info), words, *std::move(storage));
}

FilterView FilterView::Wrap(std::span<const std::byte> bytes, Verify verify) { return TryWrap(bytes, verify).value(); }

Result<FilterView> FilterView::TryWrap(std::span<const std::byte> bytes, Verify verify) {
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(bytes.data()) % kWrapAlignment;
  if (misaligned != 0) {
    return Error(ErrorCode::kInvalidArgument, "bytes start " + std::to_string(misaligned) +
                                                  " bytes behind a multiple of 64; a view needs them at a multiple "
                                                  "(Filter::Deserialize copies from anywhere)");
  }
  Result<SnapshotBuffer> buffer = SnapshotBuffer::Open(bytes, ObjectKind::kFilter);
  if (!buffer.ok()) return buffer.error();
  const SnapshotInfo& info = buffer->info();
  if (Status s = detail::CheckFilterHeader(info, detail::kGivenBytes); !s.ok()) return s.error();
  if (verify == Verify::kAll) {
    if (Status s = buffer->VerifySection(0); !s.ok()) return s.error();
  }
  // A view never writes: kernels take one type for both.
  auto* const words = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(buffer->section(0).data()));
  return FilterAccess::Make<FilterView>(ShapeOf(info), words, nullptr);
}

}  // namespace bloomline
