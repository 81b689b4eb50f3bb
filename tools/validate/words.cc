// The word list of the pattern "words".
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/validate/patterns.h"

namespace bloomline::cli::validate {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;

// Where distributions put their lists, the longest first.
constexpr std::array<const char*, 4> kUsualFiles = {"/usr/share/dict/american-english-insane",
                                                    "/usr/share/dict/american-english", "/usr/share/dict/words",
                                                    "/usr/dict/words"};

std::string ReadAll(const std::string& path) {
  const std::string name = "--words " + Printable(path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) ThrowSystem(name, errno);
  std::string bytes;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      const int error = errno;
      ::close(fd);
      ThrowSystem(name, error);
    }
    if (size == 0) break;
    if (bytes.size() + static_cast<size_t>(size) > kLargestFile) {
      ::close(fd);
      throw CliError(kExitResources, name + ": is larger than 256 MiB, the most that is read");
    }
    bytes.append(buffer.data(), static_cast<size_t>(size));
  }
  ::close(fd);
  return bytes;
}

}  // namespace

std::vector<std::string> ReadWords(const std::string& path, uint64_t seed) {
  std::string file = path;
  if (file.empty()) {
    for (const char* usual : kUsualFiles) {
      if (::access(usual, R_OK) == 0) {
        file = usual;
        break;
      }
    }
    if (file.empty()) return {};
  }
  const std::string bytes = ReadAll(file);
  std::vector<std::string> words;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    words.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  if (!path.empty() && words.size() < 2) {
    throw CliError(kExitInput, "--words " + Printable(path) + ": needs at least 2 different lines, has " +
                                   std::to_string(words.size()));
  }
  // Sorted by a hash that no filter uses, so that neither half has the words of one letter.
  std::vector<std::pair<uint64_t, size_t>> order(words.size());
  for (size_t i = 0; i < words.size(); ++i) order[i] = {HashBytes(words[i], ~seed ^ 0x8ebc6af09c88c6e3), i};
  std::sort(order.begin(), order.end());
  std::vector<std::string> shuffled;
  shuffled.reserve(words.size());
  for (const auto& [hash, i] : order) shuffled.push_back(std::move(words[i]));
  return shuffled;
}

}  // namespace bloomline::cli::validate
