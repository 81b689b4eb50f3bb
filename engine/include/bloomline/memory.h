// Where a filter's bits live: what is asked for, and what the kernel granted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bloomline/export.h"

namespace bloomline {

class Topology;

enum class Pages : uint8_t {
  kDefault = 0,          // the system's base pages
  kTransparentHuge = 1,  // base pages with the request to merge them into 2 MiB pages (filters from 2 MiB on)
  kHuge2MiB = 2,         // pages of 2 MiB from the system's reserve (/proc/sys/vm/nr_hugepages)
  kHuge1GiB = 3,         // pages of 1 GiB from the system's reserve; the rest that fills none: in 2 MiB pages
};
BLOOMLINE_API const char* PagesName(Pages pages) noexcept;  // "default", "transparent", "2MiB", "1GiB"

// On which NUMA nodes. On a machine with one node all of them are kLocal.
enum class Placement : uint8_t {
  kAuto = 0,        // kLocal where one node's last-level cache holds the filter, kInterleave otherwise
  kLocal = 1,       // on the node of the thread that makes the filter
  kInterleave = 2,  // page by page over all nodes
  kBind = 3,        // on MemoryPolicy::node
  kReplicate = 4,   // a copy on each node: lookups read the near one, inserts go to all
  kPartition = 5,   // block ranges of equal size, one per node
};
BLOOMLINE_API const char* PlacementName(Placement placement) noexcept;  // "auto", "local", …

// What to ask for. A wish that cannot be granted is reported, not an error: what is refused in 1 GiB pages is tried in
// 2 MiB pages, then in transparent huge ones; memory that cannot be bound stays where the kernel puts it.
struct MemoryPolicy {
  Pages pages = Pages::kTransparentHuge;
  // false: the pages come into being with the filter, touched once, by threads of the nodes that they are on; a filter
  // that is larger than the available memory is refused. true: reserve address space only; pages come into being when
  // they are first written, and a filter may be larger than memory as long as it stays sparse. Explicit huge pages are
  // not lazy: transparent ones are asked for instead.
  bool lazy = false;
  Placement placement = Placement::kAuto;
  int node = 0;  // for kBind: the system's number of the node (Topology::nodes()[i].number); unknown ones are an error
  std::shared_ptr<const Topology> topology =
      nullptr;  // empty: this machine's. A made-up one decides, but nothing is bound
};

// What was granted, read back from the kernel when it is asked for.
struct BLOOMLINE_API MemoryReport {
  MemoryReport();
  MemoryReport(const MemoryReport& other);
  MemoryReport(MemoryReport&& other) noexcept;
  MemoryReport& operator=(const MemoryReport& other);
  MemoryReport& operator=(MemoryReport&& other) noexcept;
  ~MemoryReport();

  struct PageShare {
    uint64_t page_bytes = 0;
    bool transparent = false;  // merged by the kernel, not taken from the reserve
    uint64_t bytes = 0;        // resident in pages of this size, over all copies
  };
  struct NodeShare {
    int node = 0;        // the system's number
    uint64_t bytes = 0;  // resident there, over all copies
  };
  uint64_t bytes = 0;                       // the filter's own bits, once
  int copies = 1;                           // more where it is replicated
  uint64_t resident_bytes = 0;              // in memory now, over all copies
  uint64_t huge_page_bytes = 0;             // of these, in huge pages of any kind
  std::vector<PageShare> pages;             // largest first; empty where it is not known
  std::vector<NodeShare> nodes;             // ascending; empty where the kernel does not say
  Placement placement = Placement::kLocal;  // never kAuto
  std::string granted;                      // "4KiB", "2MiB (transparent)" or several with their shares
  std::string note;                         // why a wish was not granted; empty otherwise
};

}  // namespace bloomline
