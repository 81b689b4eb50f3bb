// bloomline: the command line. What the process itself needs; the rest is program.h.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tools/cli_error.h"
#include "tools/program.h"

namespace {

// A file that is opened while descriptor 1 is closed would become "standard output". Fills the gaps with a
// descriptor that fails where the closed one would have failed.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) std::_Exit(bloomline::cli::kExitResources);
  }
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardDescriptors();
  // A reader that goes away is an error of write, not the end of the process in the middle of something.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that reaches its size limit
  return bloomline::cli::RunProgram(argc, argv);
}
