// Parts of a test that need a process of their own: because they forbid it system calls, or change what is asked once.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

// Clang's: there where the program is measured (tools/coverage.sh).
extern "C" int __llvm_profile_write_file() __attribute__((weak));  // NOLINT

namespace bloomline::test {

// _exit, which leaves the parent's buffers and files alone; what the child ran is not lost to tools/coverage.sh.
[[noreturn]] inline void ExitChild(int code) {
  if (__llvm_profile_write_file != nullptr) __llvm_profile_write_file();
  _exit(code);
}

// Runs `body` in a child process and returns its exit code; 128 + the signal where it died of one.
template <class Body>
int RunInChild(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) ExitChild(body());
  if (child < 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A system call and the errno that it fails with, always or only where one of its arguments has a value.
struct ForbiddenCall {
  long number;  // NOLINT(google-runtime-int): as the SYS_ constants
  int error;
  std::optional<uint32_t> third_argument = std::nullopt;
};

// From here on this process and its threads get errors for these calls. False where that cannot be arranged.
inline bool ForbidCalls(const std::vector<ForbiddenCall>& calls) {
  std::vector<sock_filter> program;
  for (const ForbiddenCall& call : calls) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    const uint8_t skipped = call.third_argument ? 3 : 1;
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, skipped));
    if (call.third_argument) {  // its low half, on a little-endian machine
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *call.third_argument, 0, 1));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(call.error)));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};  // NOLINT(google-runtime-int)
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace bloomline::test
