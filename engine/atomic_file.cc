#include "engine/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

namespace bloomline::detail {
namespace {

constexpr int kMaxLinks = 40;  // as many as Linux follows
constexpr int kMaxNameAttempts = 100;
constexpr size_t kMaxWrite = size_t{1} << 30;  // Linux writes no more than 2 GiB at once

// With the slash; empty for a name in the current directory.
std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// Follows symbolic links by hand: realpath would refuse one whose target does not exist yet.
Result<std::string> ResolveLinks(const std::string& path) {
  std::string target = path;
  for (int hops = 0; hops <= kMaxLinks; ++hops) {
    struct stat status {};
    if (lstat(target.c_str(), &status) != 0) {
      if (errno == ENOENT) return target;  // to be made
      return IoError("write", path, errno);
    }
    if (!S_ISLNK(status.st_mode)) return target;
    std::vector<char> link(PATH_MAX);
    const ssize_t length = readlink(target.c_str(), link.data(), link.size());
    if (length < 0) return IoError("write", path, errno);
    const std::string to(link.data(), static_cast<size_t>(length));
    target = to.starts_with('/') ? to : DirectoryOf(target).append(to);
  }
  return IoError("write", path, ELOOP);
}

// A name that does not depend on the target's, which may already be as long as names can be.
std::string TemporaryName() {
  static std::atomic<uint64_t> counter{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t time = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  char name[80];
  std::snprintf(name, sizeof name, ".bloomline-%d-%llx-%llx.tmp", static_cast<int>(getpid()),
                static_cast<unsigned long long>(time),
                static_cast<unsigned long long>(counter.fetch_add(1, std::memory_order_relaxed)));
  return name;
}

int SyncRetrying(int fd) {
  int result = 0;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

std::string Quoted(const std::string& path) { return "\"" + path + "\""; }

Error IoError(const char* action, const std::string& path, int error) {
  return Error(ErrorCode::kIo, std::string("cannot ") + action + " " + Quoted(path) + ": " + std::strerror(error),
               error);
}

Status CheckPath(const std::string& path) {
  if (path.empty()) return Error(ErrorCode::kInvalidArgument, "path is empty: the name of a file is needed");
  if (path.find('\0') != std::string::npos) {
    return Error(ErrorCode::kInvalidArgument, "path " + Quoted(path.c_str()) + "… has a NUL byte in it");
  }
  return {};
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (Status s = CheckPath(path); !s.ok()) return s.error();
  Result<std::string> target = ResolveLinks(path);
  if (!target.ok()) return target.error();
  struct stat status {};
  if (path.back() == '/') {
    return Error(ErrorCode::kIo, "cannot write " + Quoted(path) + ": it names a directory, not a regular file");
  }
  const bool exists = stat(target->c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kIo, "cannot write " + Quoted(path) + ": it is " +
                                     (S_ISDIR(status.st_mode) ? "a directory, " : "") + "not a regular file");
  }

  AtomicFile file;
  file.path_ = path;
  file.target_ = *std::move(target);
  int error = EEXIST;
  for (int attempt = 0; attempt < kMaxNameAttempts && (error == EEXIST || error == EINTR); ++attempt) {
    std::string temporary = DirectoryOf(file.target_) + TemporaryName();
    file.fd_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, exists ? 0600 : 0666);
    if (file.fd_ >= 0) {
      file.temporary_ = std::move(temporary);
      // A file that is replaced keeps its mode, as one that is opened for writing does: a private one stays private.
      if (exists && fchmod(file.fd_, status.st_mode & 07777) != 0) return IoError("set the mode of", path, errno);
      return Result<AtomicFile>(std::move(file));
    }
    error = errno;
  }
  return IoError("create a temporary file beside", path, error);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      end_(other.end_),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status AtomicFile::Fail(const char* action) const { return IoError(action, path_, errno); }

Status AtomicFile::Write(std::span<const std::byte> bytes) {
  Status written = WriteAt(end_, bytes);
  if (written.ok()) end_ += bytes.size();
  return written;
}

Status AtomicFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;  // never for a regular file; no endless loop
    if (count <= 0) return Fail("write");
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status AtomicFile::Commit() {
  // Before the rename: what needs memory fails while the old file is there.
  std::string directory = DirectoryOf(target_);
  if (directory.empty()) directory = ".";
  if (SyncRetrying(fd_) != 0) return Fail("sync");
  const int closed = close(std::exchange(fd_, -1));  // the descriptor is gone even where close reports an error
  if (closed != 0 && errno != EINTR) return Fail("close");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return Fail("rename a temporary file to");
  temporary_.clear();

  const int directory_fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A directory that may be written but not read cannot be opened, and some file systems sync no directories: then
  // the rename is as durable as it can be made.
  if (directory_fd < 0) return errno == EACCES ? Status() : Fail("sync the directory of");
  const int synced = SyncRetrying(directory_fd);
  const int error = errno;
  close(directory_fd);
  errno = error;
  if (synced != 0 && error != EINVAL && error != EROFS && error != EBADF) {
    return Fail("sync the directory of (the new file is in place)");
  }
  return {};
}

}  // namespace bloomline::detail
