// Runs the real program as a child process, for the tests of the command line.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace bloomline::test {

using Json = nlohmann::json;

struct CliResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
  int64_t peak_rss_bytes = 0;
};

struct CliInput {
  // What comes down a pipe to stdin: the function writes to the descriptor. Neither this nor a path: /dev/null.
  std::function<void(int fd)> pipe;
  std::string stdin_path;
  std::string stdout_path;     // where stdout goes instead of the result
  bool append_stdout = false;  // to stdout_path, as >> does
  bool close_stdout = false;   // the child starts without one
  bool break_stdout = false;   // the child's stdout is a pipe that nobody reads
  std::map<std::string, std::string> environment;
  std::optional<uid_t> user;              // the child becomes this user, for what the superuser may do anyway
  std::optional<uint64_t> file_limit;     // RLIMIT_FSIZE, bytes
  std::optional<uint64_t> address_limit;  // RLIMIT_AS, bytes
};

inline void WriteFully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written <= 0) return;  // the child has gone
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

inline std::function<void(int)> Piped(std::string bytes) {
  return [bytes = std::move(bytes)](int fd) { WriteFully(fd, bytes); };
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

// 8 little-endian bytes per value.
inline std::string Bytes(const std::vector<uint64_t>& values) {
  std::string bytes;
  for (const uint64_t value : values) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

inline std::vector<uint64_t> Words(std::string_view bytes) {
  std::vector<uint64_t> words(bytes.size() / 8);
  for (size_t i = 0; i < 8 * words.size(); ++i) {
    words[i / 8] |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * (i % 8));
  }
  return words;
}

// A directory of its own per test, and the program run in it.
class CliTest : public testing::Test {
 protected:
  CliTest() {
    std::signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "bloomline-cli-test.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data()) != nullptr ? pattern : "";
  }
  ~CliTest() override {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }
  void SetUp() override { ASSERT_FALSE(directory_.empty()); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  CliResult Run(const std::vector<std::string>& arguments, const CliInput& input = {}) const {
    const std::string out_path = input.stdout_path.empty() ? Path(".stdout") : input.stdout_path;
    int in[2] = {-1, -1};
    if (input.pipe) {
      EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    }
    int broken[2] = {-1, -1};
    if (input.break_stdout) {
      EXPECT_EQ(::pipe2(broken, O_CLOEXEC), 0);
      ::close(broken[0]);
    }
    const pid_t pid = ::fork();
    if (pid == 0) Child(arguments, input, in[0], broken[1], out_path);
    EXPECT_GT(pid, 0);
    if (broken[1] >= 0) ::close(broken[1]);
    std::thread writer;
    if (input.pipe) {
      ::close(in[0]);
      writer = std::thread([&] {
        input.pipe(in[1]);
        ::close(in[1]);
      });
    }
    int status = 0;
    rusage usage{};
    EXPECT_EQ(::wait4(pid, &status, 0, &usage), pid);
    if (writer.joinable()) writer.join();
    CliResult result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (input.stdout_path.empty() && !input.close_stdout && !input.break_stdout) result.out = ReadFile(out_path);
    result.err = ReadFile(Path(".stderr"));
    result.peak_rss_bytes = int64_t{usage.ru_maxrss} * 1024;
    return result;
  }

  // Runs a command that must succeed with --json and nothing on stderr.
  Json RunJson(std::vector<std::string> arguments, const CliInput& input = {}) const {
    arguments.emplace_back("--json");
    const CliResult result = Run(arguments, input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    Json json = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << result.out;
    return json;
  }

  // Runs a command that must fail with `exit_code`, one line on stderr that contains `parts`, and nothing on stdout.
  void ExpectError(const std::vector<std::string>& arguments, int exit_code, const std::vector<std::string>& parts,
                   const CliInput& input = {}) const {
    std::string command;
    for (const std::string& argument : arguments) command += " " + argument;
    const CliResult result = Run(arguments, input);
    EXPECT_EQ(result.exit_code, exit_code) << command << "\n" << result.err;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_EQ(result.err.rfind("bloomline", 0), 0u) << command << "\n" << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << command << "\n" << result.err;
    for (const std::string& part : parts) {
      EXPECT_NE(result.err.find(part), std::string::npos) << command << "\nlacks " << part << "\n" << result.err;
    }
  }

  // Names in the directory, without those of this class: nothing temporary may stay behind.
  std::vector<std::string> Listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (name != ".stdout" && name != ".stderr") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  [[noreturn]] void Child(const std::vector<std::string>& arguments, const CliInput& input, int in, int broken,
                          const std::string& out_path) const {
    const std::string in_path = input.stdin_path.empty() ? "/dev/null" : input.stdin_path;
    ::dup2(in >= 0 ? in : ::open(in_path.c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open(Path(".stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    if (input.close_stdout) {
      ::close(STDOUT_FILENO);
    } else {
      const int flags = O_WRONLY | O_CREAT | (input.append_stdout ? O_APPEND : O_TRUNC);
      ::dup2(broken >= 0 ? broken : ::open(out_path.c_str(), flags, 0600), STDOUT_FILENO);
    }
    for (int fd = 3; fd < 64; ++fd) ::close(fd);
    ::unsetenv("BLOOMLINE_TARGET");
    for (const auto& [key, value] : input.environment) ::setenv(key.c_str(), value.c_str(), 1);
    std::signal(SIGPIPE, SIG_DFL);
    if (input.file_limit) {
      std::signal(SIGXFSZ, SIG_DFL);
      const rlimit limit{*input.file_limit, *input.file_limit};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (input.address_limit) {
      const rlimit limit{*input.address_limit, *input.address_limit};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    if (input.user && ::setresuid(*input.user, *input.user, *input.user) != 0) std::_Exit(126);
    std::vector<std::string> strings = {"bloomline"};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& string : strings) argv.push_back(string.data());
    argv.push_back(nullptr);
    ::execv(BLOOMLINE_CLI_PATH, argv.data());
    std::_Exit(127);
  }

  std::string directory_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace bloomline::test
