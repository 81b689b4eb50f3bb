// Storage::Report: what the kernel granted, read back from it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/machine_memory.h"
#include "engine/storage.h"

namespace bloomline {

// Not in the header: see BLOOMLINE_INLINE.
MemoryReport::MemoryReport() = default;
MemoryReport::MemoryReport(const MemoryReport& other) = default;
MemoryReport::MemoryReport(MemoryReport&& other) noexcept = default;
MemoryReport& MemoryReport::operator=(const MemoryReport& other) = default;
MemoryReport& MemoryReport::operator=(MemoryReport&& other) noexcept = default;
MemoryReport::~MemoryReport() = default;

}  // namespace bloomline

namespace bloomline::detail {
namespace {

constexpr const char* kThpDirectory = "/sys/kernel/mm/transparent_hugepage/";

// "4KiB", "2MiB": page sizes are powers of two.
std::string PageName(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return std::to_string(bytes >> 30) + "GiB";
  if (bytes >= uint64_t{1} << 20) return std::to_string(bytes >> 20) + "MiB";
  return std::to_string(bytes >> 10) + "KiB";
}

uint64_t HugePageBytesOfKernel() {
  std::ifstream file = OpenSystemFile(std::string(kThpDirectory) + "hpage_pmd_size");
  uint64_t bytes = 0;
  return file >> bytes && bytes != 0 ? bytes : kHugePageBytes;
}

// The word in brackets of "always [madvise] never"; empty where the file is not there.
std::string ThpMode() {
  std::ifstream file = OpenSystemFile(std::string(kThpDirectory) + "enabled");
  std::string word;
  while (file >> word) {
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') return word.substr(1, word.size() - 2);
  }
  return "";
}

// Resident bytes by mincore, which needs no /proc. False where the kernel refuses.
bool ResidentByMincore(const std::byte* data, uint64_t bytes, uint64_t* resident) {
  const uint64_t page = PageBytes();
  const uint64_t ahead = reinterpret_cast<uintptr_t>(data) % page;
  const std::byte* const begin = data - ahead;
  const uint64_t pages = (ahead + bytes + page - 1) / page;
  std::array<unsigned char, 4096> present{};
  uint64_t count = 0;
  for (uint64_t done = 0; done < pages; done += present.size()) {
    const uint64_t step = std::min<uint64_t>(present.size(), pages - done);
    void* const from = const_cast<std::byte*>(begin + done * page);
    if (mincore(from, static_cast<size_t>(step * page), present.data()) != 0) return false;
    for (uint64_t i = 0; i < step; ++i) count += present[i] & 1U;
  }
  *resident = std::min(bytes, count * page);
  return true;
}

std::string Percent(uint64_t part, uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

std::string GrantedText(const std::vector<MemoryReport::PageShare>& pages, uint64_t resident) {
  std::string text;
  for (const MemoryReport::PageShare& share : pages) {
    if (!text.empty()) text += ", ";
    text += PageName(share.page_bytes) + (share.transparent ? " (transparent)" : "");
    if (pages.size() > 1) text += " " + Percent(share.bytes, resident);
  }
  return text;
}

// The pages that memory with this account is in, largest first.
std::vector<MemoryReport::PageShare> PageShares(const MappingAccount& account, uint64_t resident) {
  std::vector<MemoryReport::PageShare> shares;
  const auto add = [&](uint64_t page_bytes, bool transparent, uint64_t bytes) {
    if (bytes != 0) shares.push_back({page_bytes, transparent, bytes});
  };
  const uint64_t huge = account.reserved_1gib + account.reserved_2mib + account.transparent_bytes;
  add(kGiantPageBytes, false, account.reserved_1gib);
  add(kHugePageBytes, false, account.reserved_2mib);
  add(HugePageBytesOfKernel(), true, account.transparent_bytes);
  add(PageBytes(), false, resident > huge ? resident - huge : 0);
  return shares;
}

void Add(MappingAccount& sum, const MappingAccount& account) {
  sum.found = sum.found && account.found;
  sum.exact = sum.exact && account.exact;
  sum.resident_bytes += account.resident_bytes;
  sum.transparent_bytes += account.transparent_bytes;
  sum.reserved_2mib += account.reserved_2mib;
  sum.reserved_1gib += account.reserved_1gib;
}

void AddShare(const MemoryReport::NodeShare& share, std::vector<MemoryReport::NodeShare>& nodes) {
  auto place = std::lower_bound(nodes.begin(), nodes.end(), share.node,
                                [](const MemoryReport::NodeShare& a, int number) { return a.node < number; });
  if (place == nodes.end() || place->node != share.node) place = nodes.insert(place, {share.node, 0});
  place->bytes += share.bytes;
}

void AddNote(std::string& note, const std::string& text) {
  if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
}

}  // namespace

MappingAccount ReadMappingAccount(const void* begin, uint64_t bytes, const char* smaps_file) {
  MappingAccount account;
  std::ifstream file = OpenSystemFile(smaps_file);
  const auto first = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin));
  const uint64_t last = first + bytes;
  const uint64_t page = PageBytes();
  bool inside = false;
  bool exact = true;
  uint64_t page_bytes = 0;  // of the mapping whose lines are read
  std::string line = LineBuffer();
  while (std::getline(file, line)) {
    char* end = nullptr;
    const uint64_t from = std::strtoull(line.c_str(), &end, 16);
    if (end != line.c_str() && *end == '-') {  // "7f00-7f10 rw-p …": a new mapping
      const uint64_t to = std::strtoull(end + 1, nullptr, 16);
      inside = from < last && to > first;
      page_bytes = 0;
      if (inside) {
        account.found = true;
        exact = exact && from + page > first && to < last + page;
      }
      continue;
    }
    if (!inside) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name(line.data(), colon);
    const uint64_t value = std::strtoull(line.c_str() + colon + 1, nullptr, 10) * 1024;
    if (name == "KernelPageSize") page_bytes = value;
    if (name == "Rss") account.resident_bytes += value;
    if (name == "AnonHugePages" || name == "FilePmdMapped") account.transparent_bytes += value;
    // Pages from the reserve are no part of Rss.
    if (name == "Private_Hugetlb" || name == "Shared_Hugetlb") {
      account.resident_bytes += value;
      (page_bytes >= kGiantPageBytes ? account.reserved_1gib : account.reserved_2mib) += value;
    }
  }
  account.exact = account.found && exact;
  return account;
}

bool AddNodeShares(const void* begin, uint64_t bytes, std::vector<MemoryReport::NodeShare>& nodes,
                   const char* numa_maps_file) {
  std::ifstream file = OpenSystemFile(numa_maps_file);
  if (!file) return false;
  const auto first = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin));
  std::string line = LineBuffer();
  while (std::getline(file, line)) {  // "7f0000000000 bind:1 anon=3 N0=1 N1=2 kernelpagesize_kB=4"
    std::istringstream words(line);
    std::string word = LineBuffer();
    if (!(words >> word)) continue;
    const uint64_t at = std::strtoull(word.c_str(), nullptr, 16);
    if (at < first || at >= first + bytes) continue;
    uint64_t page_bytes = PageBytes();
    std::vector<MemoryReport::NodeShare> here;
    while (words >> word) {
      const size_t equal = word.find('=');
      if (equal == std::string::npos) continue;
      const uint64_t value = std::strtoull(word.c_str() + equal + 1, nullptr, 10);
      if (word.starts_with("kernelpagesize_kB=")) page_bytes = value * 1024;
      if (word[0] == 'N' && word.find_first_not_of("0123456789", 1) == equal) {
        here.push_back({std::atoi(word.c_str() + 1), value});
      }
    }
    for (const MemoryReport::NodeShare& share : here) AddShare({share.node, share.bytes * page_bytes}, nodes);
  }
  return true;
}

MemoryReport Storage::Report() const {
  MemoryReport report;
  report.bytes = bytes_;
  report.copies = static_cast<int>(copies_.size());
  report.placement = placement_;
  report.note = note_;
  MappingAccount all;
  all.found = all.exact = true;
  bool resident_known = true;
  uint64_t elsewhere = 0;
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Mapping& copy = copies_[i];
    MappingAccount account = ReadMappingAccount(copy.data(), bytes_);
    if (!account.exact) {
      // Merged with a neighbour (memory below 2 MiB only, which has no huge pages), or no /proc.
      const bool found = account.found;
      account = {};
      account.found = found;
      resident_known = resident_known && ResidentByMincore(copy.data(), bytes_, &account.resident_bytes);
    }
    account.resident_bytes = std::min(bytes_, account.resident_bytes);  // the rest of the last page is not the filter's
    Add(all, account);
    // Smaller memory may be part of a mapping that it shares.
    if (!writable_ || bytes_ < kHugePageBytes) continue;
    std::vector<MemoryReport::NodeShare> shares;
    AddNodeShares(copy.data(), bytes_, shares);
    for (const MemoryReport::NodeShare& share : shares) {
      AddShare(share, report.nodes);
      if (!wished_nodes_.empty() && share.node != wished_nodes_[i]) elsewhere += share.bytes;
    }
  }
  if (elsewhere != 0) AddNote(report.note, FormatBytes(elsewhere) + " are on other nodes than wished");
  const uint64_t total = bytes_ * copies_.size();
  report.resident_bytes = all.resident_bytes;
  report.huge_page_bytes =
      std::min(report.resident_bytes, all.transparent_bytes + all.reserved_2mib + all.reserved_1gib);

  if (!all.found || !resident_known) {
    report.granted = "unknown";
  } else if (report.resident_bytes == 0) {
    report.granted = "none yet";
  } else {
    report.pages = PageShares(all, report.resident_bytes);
    report.granted = GrantedText(report.pages, report.resident_bytes);
  }

  const uint64_t base = report.resident_bytes - report.huge_page_bytes;
  if (!all.found) {
    AddNote(report.note, "/proc/self/smaps cannot be read: how much is in huge pages is not known");
  } else if (!writable_ || policy_.pages == Pages::kDefault) {
    // Nothing was wished for.
  } else if (bytes_ < kHugePageBytes) {
    AddNote(report.note, "below 2 MiB: base pages");
  } else if (advice_errno_ != 0) {
    AddNote(report.note, std::string("the kernel refused transparent huge pages: ") + std::strerror(advice_errno_));
  } else if (report.resident_bytes == 0) {
    AddNote(report.note, "no page has been written yet");
  } else if (base >= kHugePageBytes * copies_.size() || (report.huge_page_bytes == 0 && total >= kHugePageBytes)) {
    // Less than one huge page's worth in base pages is the tail that no huge page fits.
    const std::string mode = ThpMode();
    AddNote(report.note, "the kernel put " + FormatBytes(base) + " into base pages; " + kThpDirectory + "enabled " +
                             (mode.empty() ? std::string("is not there") : "says " + mode));
  }
  return report;
}

}  // namespace bloomline::detail
