// Where a command's output goes: bytes to stdout or a file, JSON, progress on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace bloomline::cli {

using Json = nlohmann::ordered_json;

// Buffered bytes to stdout or to a file. A regular file is written beside its path and renamed by Finish, so that an
// error leaves what was there; pipes and devices are written as they are.
// Errors: CliError 3, or 4 where the disk is full; BrokenPipe where the reader of a pipe has gone.
class ByteSink {
 public:
  static ByteSink Stdout();
  // `option` for messages, e.g. "--lines-to". Symbolic links stay: what they point to is replaced, or made.
  static ByteSink File(std::string_view option, const std::string& path);

  ByteSink(ByteSink&& other) noexcept;
  ByteSink& operator=(ByteSink&&) = delete;
  ~ByteSink();  // without Finish: drops what is buffered and removes the temporary file

  void Write(const void* bytes, size_t size);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  void Put(char c) {
    if (used_ == buffer_.size()) Flush();
    buffer_[used_++] = c;
  }
  void Flush();
  void Finish();  // flushes and, for a file, puts it in its place
  bool IsTerminal() const;

 private:
  ByteSink(int fd, std::string name);
  void WriteAll(const char* bytes, size_t size);

  int fd_;
  std::string name_;            // for messages
  std::string path_;            // the final path; empty: nothing to rename
  std::string temporary_path_;  // removed unless renamed
  std::vector<char> buffer_;
  size_t used_ = 0;
};

// Where writing to `path` ends up: symbolic links followed, also to a file that does not exist yet. `name` for the
// CliError of a loop, an over-long name, or a directory on the way that cannot be searched.
std::string ResolveLinks(const std::string& name, const std::string& path);
// What stands before the last component, with its slash; "./" where nothing does.
std::string DirectoryOf(const std::string& path);

// Prints text, or a JSON object as one line, on stdout.
void PrintText(std::string_view text);
void PrintJson(const Json& json);

// A JSON number; null where it is not finite.
Json Number(double x);

// One line on stderr: "bloomline build: warning: …".
void Warn(std::string_view command, std::string_view message);

// Progress on stderr where that is a terminal, at most ten times a second; the line is cleared at the end.
class Progress {
 public:
  Progress(std::string label, std::optional<uint64_t> total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }
  void Update(uint64_t keys, uint64_t bytes) {
    if (enabled_) Draw(keys, bytes);
  }
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(uint64_t keys, uint64_t bytes);

  std::string label_;
  std::optional<uint64_t> total_bytes_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace bloomline::cli
