// Streams the keys of a file or a pipe in batches, in constant memory.
//
// Lines: the bytes of a line are the key. LF ends it; a CR stays part of it; the last line needs no LF; an empty line
// is the key "". Any bytes are allowed. A line longer than the buffer is hashed piece by piece, so lines may be of any
// length.
// u64le: 8 bytes per key, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/output.h"

namespace bloomline::cli {

enum class KeyFormat : uint8_t { kLines, kU64le };

// The options --keys and --format, for every command that reads keys.
struct KeyOptions {
  std::string path;    // "-": stdin
  std::string format;  // "": not given
  void Declare(CLI::App& app, const char* format_help);
  // Throws CliError(2) for an unknown name.
  std::optional<KeyFormat> Format() const;
};
const char* KeyFormatName(KeyFormat format);

// Bytes of keys below which starting threads is not worth it. Keys that come down a pipe are taken as they come.
inline constexpr uint64_t kWorthThreads = uint64_t{4} << 20;

// Some keys in the order of the input; exactly one of the three is not empty. Valid until the next call of Next.
struct KeyBatch {
  std::span<const std::string_view> lines;
  std::span<const uint64_t> integers;
  std::optional<uint64_t> long_line_hash;  // XXH3-64 under the reader's seed of one line longer than the buffer
  size_t size() const { return lines.size() + integers.size() + (long_line_hash ? 1 : 0); }
};

// All errors: CliError(3) naming the file.
class KeyReader {
 public:
  // `seed` is that of the filter. `keep_long_lines`: CopyLongLine will be called; a pipe's over-long lines then go
  // through an unnamed temporary file in $TMPDIR (or /tmp).
  KeyReader(const std::string& path, KeyFormat format, uint64_t seed, bool keep_long_lines);
  KeyReader(const KeyReader&) = delete;
  KeyReader& operator=(const KeyReader&) = delete;
  ~KeyReader();

  // The input's length where it is a regular file.
  std::optional<uint64_t> TotalBytes() const { return total_bytes_; }
  // The keys of a regular file: reads it for lines, divides for u64le. Call before Next.
  uint64_t CountKeys();
  // Batches for several threads, as far as the buffer goes, in place of those that stay in one core's cache. Before
  // Next.
  void TakeLargeBatches();
  // False at the end of the input.
  bool Next(KeyBatch& batch);
  // Writes the bytes of the over-long line that Next has just delivered.
  void CopyLongLine(ByteSink& sink);

  uint64_t bytes_read() const { return bytes_read_; }
  // For messages: "--keys words.txt".
  const std::string& name() const { return name_; }

 private:
  bool NextLines(KeyBatch& batch);
  bool NextIntegers(KeyBatch& batch);
  void ReadLongLine(KeyBatch& batch);
  bool Fill();  // false at the end of the input
  size_t ReadSome(char* out, size_t size);
  [[noreturn]] void ThrowRagged(uint64_t keys, uint64_t bytes) const;

  std::string name_;
  int fd_ = -1;
  KeyFormat format_;
  uint64_t seed_;
  bool keep_long_lines_;
  size_t read_bytes_;  // at a time
  size_t integers_per_batch_;
  std::optional<uint64_t> total_bytes_;
  uint64_t start_offset_ = 0;  // of a regular file

  // Unread bytes are buffer_[begin_, end_); no LF lies in [begin_, scanned_).
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t scanned_ = 0;
  bool at_end_ = false;
  uint64_t bytes_read_ = 0;
  uint64_t keys_delivered_ = 0;
  std::vector<std::string_view> lines_;
  std::vector<uint64_t> integers_;

  // Where the last over-long line can be read again.
  int spool_fd_ = -1;
  uint64_t long_offset_ = 0;
  uint64_t long_length_ = 0;
};

}  // namespace bloomline::cli
