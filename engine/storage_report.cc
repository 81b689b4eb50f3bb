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
#include <string>
#include <string_view>
#include <vector>

#include "engine/machine_memory.h"
#include "engine/storage.h"

namespace bloomline::detail {
namespace {

constexpr const char* kThpDirectory = "/sys/kernel/mm/transparent_hugepage/";

uint64_t PageBytes() {
  const auto bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

// "4KiB", "2MiB": page sizes are powers of two.
std::string PageName(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return std::to_string(bytes >> 30) + "GiB";
  if (bytes >= uint64_t{1} << 20) return std::to_string(bytes >> 20) + "MiB";
  return std::to_string(bytes >> 10) + "KiB";
}

uint64_t HugePageBytesOfKernel() {
  std::ifstream file(std::string(kThpDirectory) + "hpage_pmd_size");
  uint64_t bytes = 0;
  return file >> bytes && bytes != 0 ? bytes : kHugePageBytes;
}

// The word in brackets of "always [madvise] never"; empty where the file is not there.
std::string ThpMode() {
  std::ifstream file(std::string(kThpDirectory) + "enabled");
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

std::string GrantedText(uint64_t resident, uint64_t huge) {
  std::string base_name = PageName(PageBytes());
  if (huge == 0) return base_name;
  std::string huge_name = PageName(HugePageBytesOfKernel()) + " (transparent)";
  if (huge >= resident) return huge_name;
  return huge_name + " " + Percent(huge, resident) + ", " + base_name + " " + Percent(resident - huge, resident);
}

}  // namespace

MappingAccount ReadMappingAccount(const void* begin, uint64_t bytes, const char* smaps_file) {
  MappingAccount account;
  std::ifstream file(smaps_file);
  const auto first = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin));
  const uint64_t last = first + bytes;
  const uint64_t page = PageBytes();
  bool inside = false;
  bool exact = true;
  std::string line;
  while (std::getline(file, line)) {
    char* end = nullptr;
    const uint64_t from = std::strtoull(line.c_str(), &end, 16);
    if (end != line.c_str() && *end == '-') {  // "7f00-7f10 rw-p …": a new mapping
      const uint64_t to = std::strtoull(end + 1, nullptr, 16);
      inside = from < last && to > first;
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
    if (name == "Rss") account.resident_bytes += value;
    if (name == "AnonHugePages" || name == "FilePmdMapped") account.huge_page_bytes += value;
  }
  account.exact = account.found && exact;
  return account;
}

MemoryReport Storage::Report() const {
  MemoryReport report;
  report.bytes = bytes_;
  const MappingAccount account = ReadMappingAccount(data_, bytes_);
  bool resident_known = account.exact;
  if (account.exact) {
    report.resident_bytes = std::min(bytes_, account.resident_bytes);
  } else {
    // Merged with a neighbour (memory below 2 MiB only, which has no huge pages), or no /proc.
    resident_known = ResidentByMincore(data_, bytes_, &report.resident_bytes);
  }
  if (account.found && bytes_ >= kHugePageBytes) {
    report.huge_page_bytes = std::min(report.resident_bytes, account.huge_page_bytes);
  }

  if (!resident_known) {
    report.granted = "unknown";
  } else if (report.resident_bytes == 0) {
    report.granted = "none yet";
  } else {
    report.granted = GrantedText(report.resident_bytes, report.huge_page_bytes);
  }

  if (!account.found) {
    report.note = "/proc/self/smaps cannot be read: how much is in huge pages is not known";
    report.granted = "unknown";
  } else if (!writable_ || policy_.pages != Pages::kTransparentHuge) {
    // Nothing was wished for.
  } else if (bytes_ < kHugePageBytes) {
    report.note = "below 2 MiB: base pages";
  } else if (advice_errno_ != 0) {
    report.note = std::string("the kernel refused transparent huge pages: ") + std::strerror(advice_errno_);
  } else if (report.resident_bytes == 0) {
    report.note = "no page has been written yet";
  } else if (report.resident_bytes - report.huge_page_bytes >= kHugePageBytes || report.huge_page_bytes == 0) {
    // Less than one huge page's worth in base pages is the tail that no huge page fits.
    const std::string mode = ThpMode();
    report.note = "the kernel put " + FormatBytes(report.resident_bytes - report.huge_page_bytes) +
                  " into base pages; " + kThpDirectory + "enabled " +
                  (mode.empty() ? std::string("is not there") : "says " + mode);
  }
  return report;
}

}  // namespace bloomline::detail
