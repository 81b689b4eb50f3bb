#include "tools/key_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// The whole of XXH3 inline: only the streaming form is needed, and the library keeps its own to itself.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kLinesPerBatch = 1024;
constexpr size_t kIntegersPerBatch = 64 * 1024;
// For several threads: some 16 MiB with the buffer.
constexpr size_t kManyLines = 256 * 1024;
constexpr size_t kManyIntegers = kBufferBytes / 8;

// An unnamed file that vanishes with its descriptor.
int OpenSpool() {
  const char* directory = std::getenv("TMPDIR");
  std::string path = (directory != nullptr && *directory != '\0' ? directory : "/tmp");
  path += "/bloomline.XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) ThrowSystem("temporary file " + path, errno);
  ::unlink(path.c_str());
  return fd;
}

void WriteSpool(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowSystem("temporary file for a long line", errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

}  // namespace

void KeyOptions::Declare(CLI::App& app, const char* format_help) {
  app.add_option("--keys", path, "The keys: a file, or - for standard input")->required()->type_name("FILE|-");
  app.add_option("--format", format, format_help)->type_name("lines|u64le");
}

std::optional<KeyFormat> KeyOptions::Format() const {
  if (format.empty()) return std::nullopt;
  if (format == "lines") return KeyFormat::kLines;
  if (format == "u64le") return KeyFormat::kU64le;
  ThrowUsage("--format", format, "must be lines or u64le");
}

const char* KeyFormatName(KeyFormat format) { return format == KeyFormat::kLines ? "lines" : "u64le"; }

KeyReader::KeyReader(const std::string& path, KeyFormat format, uint64_t seed, bool keep_long_lines)
    : name_("--keys " + Printable(path)),
      format_(format),
      seed_(seed),
      keep_long_lines_(keep_long_lines),
      read_bytes_(kReadBytes),
      integers_per_batch_(kIntegersPerBatch) {
  fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) ThrowSystem(name_, errno);
  struct stat info {};
  if (::fstat(fd_, &info) != 0) ThrowSystem(name_, errno);
  if (S_ISDIR(info.st_mode)) ThrowSystem(name_, EISDIR);
  if (S_ISREG(info.st_mode)) {
    // Standard input may be a file that somebody has already read from.
    const off_t offset = ::lseek(fd_, 0, SEEK_CUR);
    if (offset < 0) ThrowSystem(name_, errno);
    start_offset_ = static_cast<uint64_t>(offset);
    total_bytes_ = info.st_size > offset ? static_cast<uint64_t>(info.st_size - offset) : 0;
    ::posix_fadvise(fd_, offset, 0, POSIX_FADV_SEQUENTIAL);
    // Known to be cut before a single answer is printed.
    if (format == KeyFormat::kU64le && *total_bytes_ % 8 != 0) ThrowRagged(*total_bytes_ / 8, *total_bytes_);
  }
  buffer_.reset(new char[kBufferBytes]);
  lines_.resize(kLinesPerBatch);
}

void KeyReader::TakeLargeBatches() {
  read_bytes_ = kBufferBytes;
  integers_per_batch_ = kManyIntegers;
  if (format_ == KeyFormat::kLines) lines_.resize(kManyLines);
}

KeyReader::~KeyReader() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
  if (spool_fd_ >= 0) ::close(spool_fd_);
}

void KeyReader::ThrowRagged(uint64_t keys, uint64_t bytes) const {
  throw CliError(kExitInput,
                 name_ + ": " + FormatCount(bytes) + (bytes == 1 ? " byte is" : " bytes are") +
                     " not whole 8-byte keys: " +
                     (bytes - 8 * keys == 1 ? "1 byte remains" : std::to_string(bytes - 8 * keys) + " bytes remain") +
                     " after key " + FormatCount(keys));
}

size_t KeyReader::ReadSome(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(fd_, out, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) ThrowSystem(name_, errno);
  }
}

uint64_t KeyReader::CountKeys() {
  if (format_ == KeyFormat::kU64le) return *total_bytes_ / 8;
  Progress progress("counting lines", total_bytes_);
  uint64_t lines = 0;
  uint64_t bytes = 0;
  char last = '\n';
  while (const size_t size = ReadSome(buffer_.get(), kReadBytes)) {
    lines += static_cast<uint64_t>(std::count(buffer_.get(), buffer_.get() + size, '\n'));
    last = buffer_[size - 1];
    bytes += size;
    progress.Update(0, bytes);
  }
  if (::lseek(fd_, static_cast<off_t>(start_offset_), SEEK_SET) < 0) ThrowSystem(name_, errno);
  return lines + (last == '\n' ? 0 : 1);
}

bool KeyReader::Next(KeyBatch& batch) {
  batch = {};
  const bool any = format_ == KeyFormat::kLines ? NextLines(batch) : NextIntegers(batch);
  if (any) keys_delivered_ += batch.size();
  return any;
}

bool KeyReader::Fill() {
  if (begin_ == end_) {
    begin_ = end_ = scanned_ = 0;
  } else if (kBufferBytes - end_ < read_bytes_ && begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ = scanned_ > begin_ ? scanned_ - begin_ : 0;
    begin_ = 0;
  }
  const size_t size = ReadSome(buffer_.get() + end_, std::min(read_bytes_, kBufferBytes - end_));
  end_ += size;
  bytes_read_ += size;
  return size > 0;
}

bool KeyReader::NextLines(KeyBatch& batch) {
  for (;;) {
    const char* line = buffer_.get() + begin_;
    const char* from = buffer_.get() + std::max(begin_, scanned_);
    const char* const end = buffer_.get() + end_;
    size_t count = 0;
    while (count < lines_.size() && from < end) {
      const auto* lf = static_cast<const char*>(std::memchr(from, '\n', static_cast<size_t>(end - from)));
      if (lf == nullptr) break;
      lines_[count++] = {line, static_cast<size_t>(lf - line)};
      line = from = lf + 1;
    }
    begin_ = static_cast<size_t>(line - buffer_.get());
    if (count == 0 && at_end_ && begin_ < end_) {  // the last line, without its LF
      lines_[count++] = {line, end_ - begin_};
      begin_ = end_;
    }
    if (count > 0) {
      scanned_ = begin_;
      batch.lines = {lines_.data(), count};
      return true;
    }
    if (at_end_) return false;
    scanned_ = end_;
    if (begin_ == 0 && end_ == kBufferBytes) {
      ReadLongLine(batch);
      return true;
    }
    at_end_ = !Fill();
  }
}

// The buffer is full and holds the beginning of one line.
void KeyReader::ReadLongLine(KeyBatch& batch) {
  XXH3_state_t state{};  // reset does not read it; g++ 12 warns that it might
  XXH3_64bits_reset_withSeed(&state, seed_);
  const bool spool = keep_long_lines_ && !total_bytes_;
  if (spool) {
    if (spool_fd_ < 0) spool_fd_ = OpenSpool();
    if (::ftruncate(spool_fd_, 0) != 0 || ::lseek(spool_fd_, 0, SEEK_SET) < 0) {
      ThrowSystem("temporary file for a long line", errno);
    }
  }
  long_offset_ = spool ? 0 : start_offset_ + bytes_read_ - (end_ - begin_);
  long_length_ = 0;
  const auto take = [&](size_t size) {
    XXH3_64bits_update(&state, buffer_.get() + begin_, size);
    if (spool) WriteSpool(spool_fd_, buffer_.get() + begin_, size);
    long_length_ += size;
    begin_ += size;
  };
  take(end_ - begin_);
  for (;;) {
    at_end_ = !Fill();
    if (at_end_) break;
    const auto* lf = static_cast<const char*>(std::memchr(buffer_.get() + begin_, '\n', end_ - begin_));
    take(lf == nullptr ? end_ - begin_ : static_cast<size_t>(lf - buffer_.get()) - begin_);
    if (lf != nullptr) {
      ++begin_;
      break;
    }
  }
  scanned_ = begin_;
  batch.long_line_hash = XXH3_64bits_digest(&state);
}

void KeyReader::CopyLongLine(ByteSink& sink) {
  const int fd = spool_fd_ >= 0 ? spool_fd_ : fd_;
  const std::unique_ptr<char[]> piece(new char[kReadBytes]);
  for (uint64_t done = 0; done < long_length_;) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kReadBytes, long_length_ - done));
    const ssize_t size = ::pread(fd, piece.get(), want, static_cast<off_t>(long_offset_ + done));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) ThrowSystem(name_, errno);
    if (size == 0) throw CliError(kExitInput, name_ + ": became shorter while it was read");
    sink.Write(piece.get(), static_cast<size_t>(size));
    done += static_cast<uint64_t>(size);
  }
}

bool KeyReader::NextIntegers(KeyBatch& batch) {
  while (end_ - begin_ < 8) {
    if (at_end_) {
      if (begin_ < end_) ThrowRagged(keys_delivered_, 8 * keys_delivered_ + (end_ - begin_));
      return false;
    }
    at_end_ = !Fill();
  }
  const size_t count = std::min((end_ - begin_) / 8, integers_per_batch_);
  integers_.resize(count);
  std::memcpy(integers_.data(), buffer_.get() + begin_, 8 * count);
  if constexpr (std::endian::native == std::endian::big) {
    for (uint64_t& key : integers_) {
      uint64_t swapped = 0;
      for (int byte = 0; byte < 8; ++byte) swapped = swapped << 8 | ((key >> (8 * byte)) & 0xff);
      key = swapped;
    }
  }
  begin_ += 8 * count;
  batch.integers = integers_;
  return true;
}

}  // namespace bloomline::cli
