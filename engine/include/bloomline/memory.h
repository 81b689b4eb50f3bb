// Where a filter's bits live: what is asked for, and what the kernel granted.
#pragma once

#include <cstdint>
#include <string>

namespace bloomline {

enum class Pages : uint8_t {
  kDefault = 0,          // the system's base pages
  kTransparentHuge = 1,  // base pages with the request to merge them into 2 MiB pages (filters from 2 MiB on)
};

// What to ask for. A wish that cannot be granted is reported, not an error.
struct MemoryPolicy {
  Pages pages = Pages::kTransparentHuge;
  // false: refuse a filter that is larger than the machine's memory. true: reserve address space only; pages come
  // into being when they are first written, and a filter may be larger than memory as long as it stays sparse.
  bool lazy = false;
};

// What was granted, read back from the kernel when it is asked for.
struct MemoryReport {
  uint64_t bytes = 0;            // the filter's own bits
  uint64_t resident_bytes = 0;   // of these, in memory now
  uint64_t huge_page_bytes = 0;  // of these, in huge pages
  std::string granted;           // "4KiB", "2MiB (transparent)" or both with their shares
  std::string note;              // why a wish was not granted; empty otherwise
};

}  // namespace bloomline
