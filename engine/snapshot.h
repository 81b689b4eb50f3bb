// Writing and reading snapshots of any kind of object: a header (snapshot_header.h) and its sections.
//
// Payloads are little-endian words. They are checked while they are copied, once: what a checksum covers is the copy,
// so that a filter that others write to at the same time still makes a file that is consistent with itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bloomline/error.h"
#include "engine/snapshot_header.h"

namespace bloomline::detail {

// A section to be written.
struct SectionBytes {
  SectionId id = SectionId::kPayload;
  std::span<const std::byte> bytes;
};

// How messages call bytes that are in no file.
inline constexpr const char* kGivenBytes = "the snapshot in the given bytes";

// The length of a snapshot with these sections. At most kMaxSections.
uint64_t SnapshotBytes(std::span<const SectionBytes> sections);

// Writes a snapshot; info's sections and file_bytes are filled in here. Files are replaced as a whole (AtomicFile).
// Errors: kInvalidArgument, kIo.
Status WriteSnapshotFile(const std::string& path, SnapshotInfo info, std::span<const SectionBytes> sections);
// Returns the bytes written. kInvalidArgument where `out` is shorter than SnapshotBytes(sections).
Result<size_t> SerializeSnapshot(std::span<std::byte> out, SnapshotInfo info, std::span<const SectionBytes> sections);

// A snapshot file open for reading, its header checked against the file's length.
class SnapshotFile {
 public:
  // Errors: kInvalidArgument, kIo (also for what is no regular file), kCorrupt, kUnsupported.
  static Result<SnapshotFile> Open(const std::string& path, ObjectKinds expected);

  SnapshotFile(SnapshotFile&& other) noexcept;
  SnapshotFile& operator=(SnapshotFile&&) = delete;
  ~SnapshotFile();

  const SnapshotInfo& info() const noexcept { return info_; }
  int fd() const noexcept { return fd_; }
  const std::string& source() const noexcept { return source_; }  // the path in quotes

  // Reads section `index` into `out` (its length exactly) and checks it against its checksum, in one pass; also that
  // the bytes between it and what precedes it are zero. On an error `out` holds anything. Errors: kIo, kCorrupt.
  Status ReadSection(size_t index, std::span<std::byte> out) const;
  // The same check without keeping the bytes.
  Status VerifySection(size_t index) const;

 private:
  SnapshotFile() = default;
  Status CheckGap(size_t index) const;
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;

  int fd_ = -1;
  std::string source_;
  SnapshotInfo info_;
};

// The same for a snapshot in memory, whose bytes are `bytes` exactly.
class SnapshotBuffer {
 public:
  // Errors: kCorrupt, kUnsupported.
  static Result<SnapshotBuffer> Open(std::span<const std::byte> bytes, ObjectKinds expected);

  const SnapshotInfo& info() const noexcept { return info_; }
  std::span<const std::byte> section(size_t index) const noexcept;

  Status ReadSection(size_t index, std::span<std::byte> out) const;
  Status VerifySection(size_t index) const;

 private:
  SnapshotBuffer() = default;
  Status CheckGap(size_t index) const;

  std::span<const std::byte> bytes_;
  SnapshotInfo info_;
};

}  // namespace bloomline::detail
