#include "engine/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/checksum.h"
#include "engine/shared_words.h"

namespace bloomline::detail {
namespace {

Error OutOfBuffers() { return Error(ErrorCode::kOutOfMemory, "no memory for a buffer of 1 MiB"); }

// Words go to files as they are in memory. A big-endian machine would have to swap them on the way.
static_assert(std::endian::native == std::endian::little,
              "snapshot payloads are little-endian words: this library runs on little-endian machines only");

// What is copied, checked and written at once: in the cache from the one to the other.
constexpr size_t kPieceBytes = size_t{1} << 20;

template <class Piece>  // Status Piece(uint64_t offset, size_t length)
Status ForEachPiece(uint64_t length, Piece&& piece) {
  for (uint64_t done = 0; done < length;) {
    const auto step = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, length - done));
    if (Status s = piece(done, step); !s.ok()) return s;
    done += step;
  }
  return {};
}

// Word by word where they are words: others may write to a filter while it is saved.
void CopyBytes(const std::byte* from, size_t length, std::byte* to) {
  const auto unaligned = (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to) | length) % 8;
  if (unaligned != 0) {
    std::memcpy(to, from, length);
  } else {
    CopySharedWords(reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to), length / 8);
  }
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte value) { return value == std::byte{0}; });
}

// Where what precedes section `index` ends.
uint64_t GapBegin(const SnapshotInfo& info, size_t index) {
  if (index == 0) return kSnapshotHeaderBytes;
  return info.sections[index - 1].offset + info.sections[index - 1].length;
}

Error ChecksumMismatch(const std::string& source, const SnapshotInfo& info, size_t index) {
  return Error(ErrorCode::kCorrupt, source + " is damaged: section " + std::to_string(index) + " (" +
                                        std::to_string(info.sections[index].length) + " bytes from offset " +
                                        std::to_string(info.sections[index].offset) +
                                        " on) does not match its checksum");
}

Error GapNotZero(const std::string& source, size_t index) {
  return Error(ErrorCode::kCorrupt,
               source + " is damaged: the bytes before section " + std::to_string(index) + " are not all 0");
}

Status PrepareInfo(SnapshotInfo& info, std::span<const SectionBytes> sections) {
  if (sections.empty() || sections.size() > kMaxSections) {
    return Error(ErrorCode::kInvalidArgument, "a snapshot has 1 … " + std::to_string(kMaxSections) + " sections, not " +
                                                  std::to_string(sections.size()));
  }
  info.sections.clear();
  for (const SectionBytes& section : sections) info.sections.push_back({section.id, 0, section.bytes.size(), 0});
  PlaceSections(info);
  return {};
}

std::string FileType(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a special file";
}

}  // namespace

uint64_t SnapshotBytes(std::span<const SectionBytes> sections) {
  SnapshotInfo info;
  if (!PrepareInfo(info, sections).ok()) return 0;
  return info.file_bytes;
}

Status WriteSnapshotFile(const std::string& path, SnapshotInfo info, std::span<const SectionBytes> sections) {
  if (Status s = PrepareInfo(info, sections); !s.ok()) return s;
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file.ok()) return file.error();
  // The header's place; it is known when the sections' checksums are.
  std::array<std::byte, kSnapshotHeaderBytes> header{};
  if (Status s = file->Write(header); !s.ok()) return s;

  const std::unique_ptr<std::byte[]> piece(new (std::nothrow) std::byte[kPieceBytes]);
  if (piece == nullptr) return OutOfBuffers();
  for (size_t i = 0; i < sections.size(); ++i) {
    const std::array<std::byte, kSectionAlignment> zeros{};
    const uint64_t gap = info.sections[i].offset - GapBegin(info, i);
    if (Status s = file->Write(std::span(zeros).first(static_cast<size_t>(gap))); !s.ok()) return s;
    Checksum checksum;
    Status written = ForEachPiece(sections[i].bytes.size(), [&](uint64_t offset, size_t length) -> Status {
      CopyBytes(sections[i].bytes.data() + offset, length, piece.get());
      const std::span<const std::byte> copied(piece.get(), length);
      checksum.Update(copied);
      return file->Write(copied);
    });
    if (!written.ok()) return written;
    info.sections[i].checksum = checksum.Digest();
  }
  EncodeSnapshotHeader(info, header);
  if (Status s = file->WriteAt(0, header); !s.ok()) return s;
  return file->Commit();
}

Result<size_t> SerializeSnapshot(std::span<std::byte> out, SnapshotInfo info, std::span<const SectionBytes> sections) {
  if (Status s = PrepareInfo(info, sections); !s.ok()) return s.error();
  if (out.size() < info.file_bytes) {
    return Error(ErrorCode::kInvalidArgument, "out holds " + std::to_string(out.size()) + " bytes; the snapshot has " +
                                                  std::to_string(info.file_bytes));
  }
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto gap_begin = static_cast<size_t>(GapBegin(info, i));
    const auto begin = static_cast<size_t>(info.sections[i].offset);
    std::fill(out.data() + gap_begin, out.data() + begin, std::byte{0});
    Checksum checksum;
    Status copied = ForEachPiece(sections[i].bytes.size(), [&](uint64_t offset, size_t length) -> Status {
      CopyBytes(sections[i].bytes.data() + offset, length, out.data() + begin + offset);
      checksum.Update({out.data() + begin + offset, length});
      return {};
    });
    if (!copied.ok()) return copied.error();
    info.sections[i].checksum = checksum.Digest();
  }
  EncodeSnapshotHeader(info, out.first<kSnapshotHeaderBytes>());
  return static_cast<size_t>(info.file_bytes);
}

Result<SnapshotFile> SnapshotFile::Open(const std::string& path, ObjectKinds expected) {
  if (Status s = CheckPath(path); !s.ok()) return s.error();
  SnapshotFile file;
  file.source_ = Quoted(path);
  do {  // not to be held up by a FIFO without a writer: O_NONBLOCK; regular files know no difference
    file.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ < 0) return IoError("open", path, errno);
  struct stat status {};
  if (fstat(file.fd_, &status) != 0) return IoError("read", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kIo,
                 "cannot read " + file.source_ + ": it is " + FileType(status.st_mode) + ", not a regular file");
  }
  const auto bytes = static_cast<uint64_t>(status.st_size);
  std::array<std::byte, kSnapshotHeaderBytes> header;
  const std::span<std::byte> start =
      std::span(header).first(static_cast<size_t>(std::min<uint64_t>(header.size(), bytes)));
  if (Status s = file.ReadAt(0, start); !s.ok()) return s.error();
  Result<SnapshotInfo> info = ParseSnapshotHeader(start, bytes, expected, file.source_);
  if (!info.ok()) return info.error();
  file.info_ = *std::move(info);
  return Result<SnapshotFile>(std::move(file));
}

SnapshotFile::SnapshotFile(SnapshotFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), source_(std::move(other.source_)), info_(std::move(other.info_)) {}

SnapshotFile::~SnapshotFile() {
  if (fd_ >= 0) close(fd_);
}

Status SnapshotFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Error(ErrorCode::kIo, "cannot read " + source_ + ": " + std::strerror(errno), errno);
    }
    if (count == 0) {
      return Error(ErrorCode::kCorrupt, source_ + " was cut to " + std::to_string(offset) + " bytes while it was read");
    }
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status SnapshotFile::CheckGap(size_t index) const {
  std::array<std::byte, kSectionAlignment> gap;
  const uint64_t begin = GapBegin(info_, index);
  const auto length = static_cast<size_t>(info_.sections[index].offset - begin);
  if (Status s = ReadAt(begin, std::span(gap).first(length)); !s.ok()) return s;
  if (!AllZero(std::span(gap).first(length))) return GapNotZero(source_, index);
  return {};
}

Status SnapshotFile::ReadSection(size_t index, std::span<std::byte> out) const {
  if (Status s = CheckGap(index); !s.ok()) return s;
  const SnapshotSection& section = info_.sections[index];
  // A hint: reading goes on without it.
  (void)posix_fadvise(fd_, static_cast<off_t>(section.offset), static_cast<off_t>(section.length),
                      POSIX_FADV_SEQUENTIAL);
  Checksum checksum;
  Status read = ForEachPiece(section.length, [&](uint64_t offset, size_t length) -> Status {
    const std::span<std::byte> piece = out.subspan(static_cast<size_t>(offset), length);
    if (Status s = ReadAt(section.offset + offset, piece); !s.ok()) return s;
    checksum.Update(piece);
    return {};
  });
  if (!read.ok()) return read;
  if (checksum.Digest() != section.checksum) return ChecksumMismatch(source_, info_, index);
  return {};
}

// Through read and not through a mapping: a bad disk or a file cut meanwhile is an error here, not a signal.
Status SnapshotFile::VerifySection(size_t index) const {
  if (Status s = CheckGap(index); !s.ok()) return s;
  const SnapshotSection& section = info_.sections[index];
  (void)posix_fadvise(fd_, static_cast<off_t>(section.offset), static_cast<off_t>(section.length),
                      POSIX_FADV_SEQUENTIAL);
  const std::unique_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[kPieceBytes]);
  if (buffer == nullptr) return OutOfBuffers();
  Checksum checksum;
  Status read = ForEachPiece(section.length, [&](uint64_t offset, size_t length) -> Status {
    const std::span<std::byte> piece(buffer.get(), length);
    if (Status s = ReadAt(section.offset + offset, piece); !s.ok()) return s;
    checksum.Update(piece);
    return {};
  });
  if (!read.ok()) return read;
  if (checksum.Digest() != section.checksum) return ChecksumMismatch(source_, info_, index);
  return {};
}

Result<SnapshotBuffer> SnapshotBuffer::Open(std::span<const std::byte> bytes, ObjectKinds expected) {
  SnapshotBuffer buffer;
  buffer.bytes_ = bytes;
  Result<SnapshotInfo> info = ParseSnapshotHeader(bytes.first(std::min(bytes.size(), kSnapshotHeaderBytes)),
                                                  bytes.size(), expected, kGivenBytes);
  if (!info.ok()) return info.error();
  buffer.info_ = *std::move(info);
  return Result<SnapshotBuffer>(std::move(buffer));
}

std::span<const std::byte> SnapshotBuffer::section(size_t index) const noexcept {
  return bytes_.subspan(static_cast<size_t>(info_.sections[index].offset),
                        static_cast<size_t>(info_.sections[index].length));
}

Status SnapshotBuffer::CheckGap(size_t index) const {
  const uint64_t begin = GapBegin(info_, index);
  const uint64_t length = info_.sections[index].offset - begin;
  if (!AllZero(bytes_.subspan(static_cast<size_t>(begin), static_cast<size_t>(length)))) {
    return GapNotZero(kGivenBytes, index);
  }
  return {};
}

Status SnapshotBuffer::ReadSection(size_t index, std::span<std::byte> out) const {
  if (Status s = CheckGap(index); !s.ok()) return s;
  const std::span<const std::byte> from = section(index);
  Checksum checksum;
  Status copied = ForEachPiece(from.size(), [&](uint64_t offset, size_t length) -> Status {
    std::byte* const to = out.data() + offset;
    std::memcpy(to, from.data() + offset, length);
    checksum.Update({to, length});
    return {};
  });
  if (!copied.ok()) return copied;
  if (checksum.Digest() != info_.sections[index].checksum) return ChecksumMismatch(kGivenBytes, info_, index);
  return {};
}

Status SnapshotBuffer::VerifySection(size_t index) const {
  if (Status s = CheckGap(index); !s.ok()) return s;
  if (Checksum::Of(section(index)) != info_.sections[index].checksum) {
    return ChecksumMismatch(kGivenBytes, info_, index);
  }
  return {};
}

}  // namespace bloomline::detail
