// Replaces what hands out memory in the program that includes it, once: operator new, mmap, mprotect and, where the C
// library allows, malloc (hwloc's and the C library's own). All calls are counted; the N-th from arming on can be made
// to fail, alone or with all that follow.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

// Sanitizers bring a malloc and an mmap of their own, which they depend on: there only operator new fails.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BLOOMLINE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define BLOOMLINE_TEST_SANITIZED 1
#endif
#endif
#if !defined(BLOOMLINE_TEST_SANITIZED) && defined(__GLIBC__)
#define BLOOMLINE_TEST_FAILS_MALLOC 1
#endif

namespace bloomline::test {

enum class Failing {
  kOne,   // only the N-th
  kFrom,  // the N-th and all later ones
};

// What is held now. Equal before and after: nothing leaked.
struct Held {
  int64_t blocks = 0;        // of operator new
  int64_t mallocs = 0;       // of malloc, callers in the program and in shared libraries
  int64_t mapped_bytes = 0;  // by mmap, callers as above
  int open_files = 0;        // descriptors below 256
  friend bool operator==(const Held&, const Held&) = default;
};

// Constant-initialised: allocations begin before any constructor.
class FailingMemory {
 public:
  // malloc: whether malloc's calls are counted and failed too.
  static void Arm(int64_t nth, Failing failing, bool malloc) {
    calls_ = 0;
    fired_ = false;
    nth_ = nth;
    later_ = failing == Failing::kFrom;
    malloc_ = malloc;
    armed_ = true;
  }
  // Whether any call was failed.
  static bool Disarm() {
    armed_ = false;
    return fired_;
  }
  static Held Now() {
    Held held{blocks_, mallocs_, mapped_bytes_, 0};
    for (int fd = 0; fd < 256; ++fd) held.open_files += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
    return held;
  }

  static bool Fails() {
    if (!armed_) return false;
    const int64_t call = ++calls_;
    if (call != nth_ && !(later_ && call > nth_)) return false;
    fired_ = true;
    return true;
  }
  static bool MallocFails() { return malloc_ && Fails(); }

  inline static std::atomic<int64_t> blocks_{0};
  inline static std::atomic<int64_t> mallocs_{0};
  inline static std::atomic<int64_t> mapped_bytes_{0};

 private:
  inline static std::atomic<bool> armed_{false};
  inline static std::atomic<bool> later_{false};
  inline static std::atomic<bool> malloc_{false};
  inline static std::atomic<bool> fired_{false};
  inline static std::atomic<int64_t> nth_{0};
  inline static std::atomic<int64_t> calls_{0};
};

}  // namespace bloomline::test

// ---- malloc.

#if defined(BLOOMLINE_TEST_FAILS_MALLOC)
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);
}

namespace bloomline::test {
inline void* Counted(void* memory) {
  if (memory != nullptr) ++FailingMemory::mallocs_;
  return memory;
}
inline bool RefusedMalloc() {
  if (!FailingMemory::MallocFails()) return false;
  errno = ENOMEM;
  return true;
}
}  // namespace bloomline::test

extern "C" {
void* malloc(size_t bytes) noexcept {
  return bloomline::test::RefusedMalloc() ? nullptr : bloomline::test::Counted(__libc_malloc(bytes));
}
void* calloc(size_t count, size_t bytes) noexcept {
  return bloomline::test::RefusedMalloc() ? nullptr : bloomline::test::Counted(__libc_calloc(count, bytes));
}
void* realloc(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(memory);
    return nullptr;
  }
  return bloomline::test::RefusedMalloc() ? nullptr : __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return bloomline::test::RefusedMalloc() ? nullptr : bloomline::test::Counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  void* const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}
// CPU_ALLOC, which hwloc 2.9 takes to succeed always: never refused, or hwloc crashes.
cpu_set_t* __sched_cpualloc(size_t cpus) noexcept {
  return static_cast<cpu_set_t*>(bloomline::test::Counted(__libc_malloc(CPU_ALLOC_SIZE(cpus))));
}
void free(void* memory) noexcept {
  if (memory == nullptr) return;
  --bloomline::test::FailingMemory::mallocs_;
  __libc_free(memory);
}
}  // extern "C"
#endif

// ---- operator new.

namespace bloomline::test {
inline void* NewBlock(size_t bytes, size_t alignment) noexcept {
  if (FailingMemory::Fails()) return nullptr;
  if (bytes == 0) bytes = 1;
#if defined(BLOOMLINE_TEST_FAILS_MALLOC)
  void* const memory = __libc_memalign(alignment, bytes);
#else
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) != 0) return nullptr;
#endif
  if (memory != nullptr) ++FailingMemory::blocks_;
  return memory;
}
inline void* NewOrThrow(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
  void* const memory = NewBlock(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
inline void DeleteBlock(void* memory) noexcept {
  if (memory == nullptr) return;
  --FailingMemory::blocks_;
#if defined(BLOOMLINE_TEST_FAILS_MALLOC)
  __libc_free(memory);
#else
  std::free(memory);
#endif
}
}  // namespace bloomline::test

void* operator new(size_t bytes) { return bloomline::test::NewOrThrow(bytes); }
void* operator new[](size_t bytes) { return bloomline::test::NewOrThrow(bytes); }
void* operator new(size_t bytes, std::align_val_t a) {
  return bloomline::test::NewOrThrow(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return bloomline::test::NewOrThrow(bytes, static_cast<size_t>(a));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return bloomline::test::NewBlock(bytes, alignof(std::max_align_t));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return bloomline::test::NewBlock(bytes, alignof(std::max_align_t));
}
void* operator new(size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return bloomline::test::NewBlock(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return bloomline::test::NewBlock(bytes, static_cast<size_t>(a));
}
void operator delete(void* memory) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete[](void* memory) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete(void* memory, size_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete[](void* memory, size_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { bloomline::test::DeleteBlock(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  bloomline::test::DeleteBlock(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  bloomline::test::DeleteBlock(memory);
}

// ---- mmap.

#if !defined(BLOOMLINE_TEST_SANITIZED) && defined(SYS_mmap)
extern "C" {
int munmap(void* address, size_t bytes) noexcept {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto result = static_cast<int>(syscall(SYS_munmap, address, bytes));
  if (result == 0) {
    bloomline::test::FailingMemory::mapped_bytes_ -= static_cast<int64_t>((bytes + page - 1) / page * page);
  }
  return result;
}
void* mmap(void* where, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (bloomline::test::FailingMemory::Fails()) {
    if ((flags & MAP_FIXED) != 0) munmap(where, bytes);  // as the kernel does before it looks for pages
    errno = ENOMEM;
    return MAP_FAILED;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto counted = static_cast<int64_t>((bytes + page - 1) / page * page);
  void* const mapped = reinterpret_cast<void*>(syscall(SYS_mmap, where, bytes, protection, flags, fd, offset));
  if ((flags & MAP_FIXED) == 0) {
    if (mapped != MAP_FAILED) bloomline::test::FailingMemory::mapped_bytes_ += counted;
  } else if (mapped == MAP_FAILED) {
    bloomline::test::FailingMemory::mapped_bytes_ -= counted;
  }
  return mapped;
}
int mprotect(void* address, size_t bytes, int protection) noexcept {
  if (bloomline::test::FailingMemory::Fails()) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}
// Populating memory is what can fail for want of pages; other advice cannot.
int madvise(void* address, size_t bytes, int advice) noexcept {
  if (bloomline::test::FailingMemory::Fails()) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}
}  // extern "C"
#endif
