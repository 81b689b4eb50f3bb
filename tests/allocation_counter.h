// Replaces the allocation functions of the program that includes it, once: every allocation is counted, and one of them
// can be made to fail.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {  // in each program of its own
[[maybe_unused]] size_t allocations = 0;
[[maybe_unused]] size_t failing = ~size_t{0};  // the number of the allocation that fails
void* CountedAllocation(size_t bytes, size_t alignment) {
  if (allocations++ == failing) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes == 0 ? 1 : bytes) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}
}  // namespace
void* operator new(size_t bytes) { return CountedAllocation(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return CountedAllocation(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return CountedAllocation(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return CountedAllocation(bytes, static_cast<size_t>(alignment));
}
// Both sides are replaced here; with -O1, g++ 12 sees only one of them inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
