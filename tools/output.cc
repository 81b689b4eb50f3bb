#include "tools/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

// The mode that open(…, 0666) would give; reading the umask means setting it for a moment.
mode_t DefaultMode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666 & ~mask);
}

}  // namespace

ByteSink::ByteSink(int fd, std::string name) : fd_(fd), name_(std::move(name)), buffer_(kBufferBytes) {}

ByteSink::ByteSink(ByteSink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      buffer_(std::move(other.buffer_)),
      used_(std::exchange(other.used_, 0)) {}

ByteSink::~ByteSink() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

ByteSink ByteSink::Stdout() { return ByteSink(STDOUT_FILENO, "standard output"); }

ByteSink ByteSink::File(std::string_view option, const std::string& path) {
  const std::string name = std::string(option) + " " + Printable(path);
  if (path.empty()) ThrowUsage(option, path, "must be the name of a file");
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) ThrowSystem(name, errno);
  if (!exists && path.back() == '/') ThrowSystem(name, EISDIR);
  if (exists && S_ISDIR(info.st_mode)) ThrowSystem(name, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) ThrowSystem(name, errno);
    return ByteSink(fd, name);
  }
  const std::string target = ResolveLinks(name, path);
  // Not made from the target's name, which may be as long as names can be.
  constexpr std::string_view kSuffix = ".tmp";
  std::string temporary = DirectoryOf(target) + ".bloomline-XXXXXX" + std::string(kSuffix);
  const int fd = ::mkostemps(temporary.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
  if (fd < 0) ThrowSystem(name, errno);
  ByteSink sink(fd, name);
  sink.path_ = target;
  sink.temporary_path_ = temporary;
  if (::fchmod(fd, exists ? info.st_mode & 07777 : DefaultMode()) != 0) ThrowSystem(name, errno);
  return sink;
}

void ByteSink::WriteAll(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd_, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) throw BrokenPipe();
      ThrowSystem(name_, errno);
    }
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void ByteSink::Flush() { WriteAll(buffer_.data(), std::exchange(used_, 0)); }

void ByteSink::Write(const void* bytes, size_t size) {
  if (size > buffer_.size() - used_) {
    Flush();
    if (size >= buffer_.size()) {
      WriteAll(static_cast<const char*>(bytes), size);
      return;
    }
  }
  if (size > 0) std::memcpy(buffer_.data() + used_, bytes, size);
  used_ += size;
}

void ByteSink::Finish() {
  Flush();
  if (path_.empty()) return;
  // The new content is on the disk before it takes the old one's place.
  while (::fsync(fd_) != 0) {
    if (errno != EINTR) ThrowSystem(name_, errno);
  }
  // close reports what a network file system could not write.
  if (::close(std::exchange(fd_, -1)) != 0) ThrowSystem(name_, errno);
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) ThrowSystem(name_, errno);
  temporary_path_.clear();
}

bool ByteSink::IsTerminal() const { return ::isatty(fd_) == 1; }

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string ResolveLinks(const std::string& name, const std::string& path) {
  constexpr int kMaxLinks = 40;  // as many as Linux follows
  std::string target = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat info {};
    if (::lstat(target.c_str(), &info) != 0) {
      if (errno == ENOENT) return target;
      ThrowSystem(name, errno);
    }
    if (!S_ISLNK(info.st_mode)) return target;
    std::array<char, PATH_MAX> link{};
    const ssize_t length = ::readlink(target.c_str(), link.data(), link.size());
    if (length < 0) ThrowSystem(name, errno);
    const std::string to(link.data(), static_cast<size_t>(length));
    target = to.starts_with('/') ? to : DirectoryOf(target) + to;
  }
  ThrowSystem(name, ELOOP);
}

void PrintText(std::string_view text) {
  ByteSink sink = ByteSink::Stdout();
  sink.Write(text);
  sink.Finish();
}

void PrintJson(const Json& json) {
  // A file name need not be UTF-8, JSON must be.
  PrintText(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json Number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

void Warn(std::string_view command, std::string_view message) {
  const std::string line = "bloomline " + std::string(command) + ": warning: " + std::string(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Progress::Progress(std::string label, std::optional<uint64_t> total_bytes)
    : label_(std::move(label)),
      total_bytes_(total_bytes),
      enabled_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + std::chrono::milliseconds(200)) {}

void Progress::Draw(uint64_t keys, uint64_t bytes) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = "\r" + label_ + ": ";
  if (keys > 0) line += FormatCount(keys) + " keys, ";
  line += FormatMeasure(static_cast<double>(bytes) / 1048576 / seconds, 3) + " MiB/s";
  if (total_bytes_ && *total_bytes_ > 0) {
    line += ", " + std::to_string(bytes * 100 / *total_bytes_) + " %";
  }
  line += "\033[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Progress::Clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace bloomline::cli
