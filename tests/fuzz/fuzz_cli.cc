// The command line with any arguments, any key files and any filter files: exit codes as documented, never a crash.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "tests/fuzz/fuzz_util.h"
#include "tools/program.h"

namespace bloomline::fuzz {
namespace {

constexpr const char* kCommands[] = {"build", "query", "add", "remove", "count", "info", "merge", "fpr", "targets"};
// Values that mean something somewhere. Sizes are small, or so large that they are refused: what lies between would
// measure the kernel's memory, not this program.
constexpr const char* kWords[] = {"--keys",
                                  "--out",
                                  "--fpr",
                                  "--expected",
                                  "--bits-per-key",
                                  "--layout",
                                  "--k",
                                  "--format",
                                  "--seed",
                                  "--json",
                                  "--target",
                                  "--output",
                                  "--lines-to",
                                  "--overflow",
                                  "--help",
                                  "--version",
                                  "--table",
                                  "--svg",
                                  "--memory",
                                  "--quick",
                                  "--threads",
                                  "--pages",
                                  "--placement",
                                  "--",
                                  "-",
                                  "",
                                  "lines",
                                  "u64le",
                                  "split512",
                                  "word64",
                                  "sector512z2",
                                  "sector512z4",
                                  "line512",
                                  "split256",
                                  "counting4",
                                  "counting8",
                                  "auto",
                                  "saturate",
                                  "reject",
                                  "spill",
                                  "count",
                                  "maybe",
                                  "absent",
                                  "bitmap",
                                  "0.01",
                                  "1e-9",
                                  "0",
                                  "1",
                                  "2",
                                  "-1",
                                  "1000",
                                  "1K",
                                  "10",
                                  "16",
                                  "nan",
                                  "inf",
                                  "1e400",
                                  "99999999999999999999",
                                  "AVX2",
                                  "scalar",
                                  "best",
                                  "4KiB",
                                  "1.5",
                                  "default",
                                  "bind:0",
                                  "keys",
                                  "filter",
                                  "other",
                                  "/",
                                  "missing/out",
                                  "bitmap.out"};

class Folder {
 public:
  Folder() {
    std::string name = "/dev/shm/bloomline_fuzz_XXXXXX";
    Require(mkdtemp(name.data()) != nullptr && chdir(name.c_str()) == 0, "a folder in /dev/shm");
    name_ = name;
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);  // -close_fd_mask would close it, and writing would fail
  }
  ~Folder() {
    for (const char* file : {"keys", "filter", "other", "bitmap.out", "-", "lines"}) unlink(file);
    rmdir(name_.c_str());
  }
  static void Write(const char* name, std::string_view bytes) {
    const int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    Require(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "a file to write");
    close(fd);
  }

 private:
  std::string name_;
};

int Run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bloomline");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return cli::RunProgram(static_cast<int>(arguments.size()), pointers.data());
}

}  // namespace
}  // namespace bloomline::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bloomline::fuzz;
  static const Folder folder;
  FuzzedDataProvider input(data, size);
  Folder::Write("keys", input.ConsumeRandomLengthString(300));
  const int standard_input = open("keys", O_RDONLY);
  dup2(standard_input, STDIN_FILENO);
  close(standard_input);
  switch (input.ConsumeIntegralInRange<int>(0, 3)) {
    case 0:
      Folder::Write("filter", input.ConsumeRandomLengthString(5000));
      break;
    case 1:
      unlink("filter");
      break;
    case 2:
      Require(Run({"build", "--keys", "keys", "--out", "filter", "--layout", "counting4"}) <= 4, "exit code");
      break;
    default:
      Require(Run({"build", "--keys", "keys", "--out", "filter"}) <= 4, "exit code");
  }
  std::vector<std::string> arguments;
  arguments.emplace_back(input.PickValueInArray(kCommands));
  while (input.remaining_bytes() > 0 && arguments.size() < 12) {
    if (input.ConsumeIntegralInRange<int>(0, 9) == 0) {
      std::string text = input.ConsumeRandomLengthString(6);
      text.resize(std::strlen(text.c_str()));
      if (!text.empty() && text[0] >= '0' && text[0] <= '9') text.resize(1);  // no sizes but those above
      arguments.push_back(std::move(text));
    } else {
      arguments.emplace_back(input.PickValueInArray(kWords));
    }
  }
  const int exit_code = Run(arguments);
  Require(exit_code >= 0 && exit_code <= 4, "an exit code of 0 ... 4");
  return 0;
}
