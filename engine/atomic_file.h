// AtomicFile: a file that appears as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bloomline/error.h"

namespace bloomline::detail {

// Writes a temporary file (".bloomline-….tmp") beside the target; Commit syncs it, renames it over the target and syncs
// the directory. Without Commit the destructor removes it and the target stays as it was. A process that is killed
// leaves it; each save makes a name of its own, so that it is in nobody's way.
//  - The new file's mode is 0666 under the umask, as with open; an old file's mode and owner are not taken over.
//  - A symbolic link stays: what it points to is replaced. A hard link's other names keep the old content.
//  - What exists under the name and is no regular file (a directory, a device, a FIFO) is refused.
class AtomicFile {
 public:
  // Errors: kInvalidArgument for an empty path or one with a NUL byte, kIo.
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Write(std::span<const std::byte> bytes);                     // at the end of what was written before
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);  // in place
  // Where only the sync of the directory fails, the new file is in place and the error says that it may not outlive a
  // crash. The object is used up either way.
  Status Commit();

 private:
  AtomicFile() = default;
  Status Fail(const char* action) const;  // from errno

  int fd_ = -1;
  uint64_t end_ = 0;
  std::string path_;       // as the caller gave it, for messages
  std::string target_;     // links resolved
  std::string temporary_;  // empty: nothing to remove
};

// "cannot open "path": reason", from an errno value.
Error IoError(const char* action, const std::string& path, int error);
// A path in quotes, as messages name it.
std::string Quoted(const std::string& path);
// kInvalidArgument where `path` is empty or has a NUL byte, which would name another file than was meant.
Status CheckPath(const std::string& path);

}  // namespace bloomline::detail
