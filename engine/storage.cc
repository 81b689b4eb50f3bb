#include "engine/storage.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "engine/first_touch.h"
#include "engine/machine_memory.h"
#include "engine/placement.h"

namespace bloomline::detail {
namespace {

// Beyond any address space of today; below it no sum in this file overflows.
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;
// Smaller requests are not worth reading the control groups for.
constexpr uint64_t kLimitCheckBytes = uint64_t{1} << 20;

// Where parts of a filter may begin: whole pages of the kind wished for, where each node gets at least one.
uint64_t Granule(uint64_t bytes, Pages pages, size_t nodes) {
  if (pages == Pages::kHuge1GiB && bytes / nodes >= kGiantPageBytes) return kGiantPageBytes;
  return bytes / nodes >= kHugePageBytes ? kHugePageBytes : PageBytes();
}

// Before anything is mapped: pages are touched at once, and what does not fit would make the kernel end a process.
Status CheckLimit(uint64_t bytes, size_t copies) {
  if (bytes < kLimitCheckBytes) return {};
  const std::string many = copies > 1 ? "in " + std::to_string(copies) + " copies: " : std::string();
  const std::string lazily = " (lazily mapped memory is not held against that)";
  const MemoryLimit limit = ReadMemoryLimit();
  if (bytes > limit.bytes / copies) {
    return OutOfMemory(bytes, many + limit.owner + " has " + FormatBytes(limit.bytes) + " of memory" + lazily);
  }
  const uint64_t available = AvailableMemory();
  if (available != 0 && bytes > available / copies) {
    return OutOfMemory(bytes, many + "this machine has " + FormatBytes(available) + " available now" + lazily);
  }
  return {};
}

void AddNote(std::string& note, const std::string& text) {
  if (text.empty() || note.find(text) != std::string::npos) return;
  note += (note.empty() ? "" : "; ") + text;
}

// For each hardware thread the copy that is on its node.
std::vector<uint16_t> CopyOfCpu(const Topology& topology) {
  std::vector<uint16_t> copies;
  for (size_t node = 0; node < topology.nodes().size(); ++node) {
    for (const int cpu : topology.nodes()[node].cpus) {
      if (static_cast<size_t>(cpu) >= copies.size()) copies.resize(static_cast<size_t>(cpu) + 1, 0);
      copies[static_cast<size_t>(cpu)] = static_cast<uint16_t>(node);
    }
  }
  return copies;
}

}  // namespace

Result<std::unique_ptr<Storage>> Storage::Allocate(uint64_t bytes, const MemoryPolicy& policy) {
  if (bytes == 0) return Error(ErrorCode::kInvalidArgument, "bytes is 0: storage has at least 1 byte");
  if (bytes > kMaxBytes) return OutOfMemory(bytes, "no address space is that large");
  if (policy.pages > Pages::kHuge1GiB) {
    return Error(ErrorCode::kInvalidArgument, "pages = " + std::to_string(static_cast<int>(policy.pages)) +
                                                  ": must be one of the Pages values, 0 … 3");
  }
  const std::shared_ptr<const Topology> topology = policy.topology ? policy.topology : Topology::Machine();
  Result<MemoryPlan> plan =
      PlanMemory(*topology, policy, bytes, Granule(bytes, policy.pages, topology->nodes().size()));
  if (!plan.ok()) return plan.error();
  if (!policy.lazy) {
    if (Status s = CheckLimit(bytes, plan->copies.size()); !s.ok()) return s.error();
  }

  std::unique_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  storage->policy_ = policy;
  storage->placement_ = plan->placement;
  storage->note_ = plan->note;
  MapRequest request{bytes, policy.pages, policy.lazy, topology.get(), {}};
  if (policy.lazy && request.pages > Pages::kTransparentHuge) {
    request.pages = Pages::kTransparentHuge;
    AddNote(storage->note_, "lazy memory has no pages from the reserve");
  }
  std::vector<TouchRange> untouched;
  for (const std::vector<PlacedRange>& ranges : plan->copies) {
    request.ranges = ranges;
    Result<MappedCopy> copy = MapCopy(request);
    if (!copy.ok()) return copy.error();
    untouched.insert(untouched.end(), copy->untouched.begin(), copy->untouched.end());
    if (copy->advice_errno != 0) storage->advice_errno_ = copy->advice_errno;
    AddNote(storage->note_, copy->note);
    const std::vector<int>& nodes = ranges[0].nodes;
    if (ranges.size() == 1 && nodes.size() == 1) {
      storage->wished_nodes_.push_back(topology->nodes()[static_cast<size_t>(nodes[0])].number);
    }
    storage->copy_words_.push_back(reinterpret_cast<uint64_t*>(copy->mapping.data()));
    storage->copies_.push_back(std::move(copy->mapping));
  }
  if (const int error = TouchPages(*topology, untouched); error != 0) {
    return OutOfMemory(bytes, std::string("the system has no pages for it: ") + std::strerror(error));
  }
  storage->data_ = storage->copies_[0].data();
  storage->writable_ = true;
  if (plan->placement == Placement::kPartition) {
    for (const PlacedRange& range : plan->copies[0]) storage->partition_ends_.push_back(range.offset + range.bytes);
  }
  if (storage->copies_.size() > 1) {
    storage->copy_of_cpu_ = CopyOfCpu(*topology);
    Replicas& replicas = storage->replicas_;
    replicas.copies = storage->copy_words_.data();
    replicas.count = storage->copy_words_.size();
    replicas.copy_of_cpu = storage->copy_of_cpu_.data();
    replicas.cpus = storage->copy_of_cpu_.size();
  }
  return Result<std::unique_ptr<Storage>>(std::move(storage));
}

Result<std::unique_ptr<Storage>> Storage::MapFile(int fd, uint64_t offset, uint64_t length) {
  if (length == 0 || length > kMaxBytes || offset > kMaxBytes) {
    return Error(ErrorCode::kInvalidArgument, "cannot map " + std::to_string(length) + " bytes from offset " +
                                                  std::to_string(offset) + ": 1 … 2^56 bytes below 2^56 are allowed");
  }
  const uint64_t ahead = offset % PageBytes();  // mappings start at whole pages
  void* const address = MapPages(nullptr, ahead + length, PROT_READ, MAP_SHARED, fd, offset - ahead);
  if (address == nullptr) {
    const int error = errno;
    return Error(error == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
                 "cannot map " + FormatBytes(length) + " of a file: " + std::strerror(error), error);
  }
  Mapping mapping(address, ahead + length, static_cast<std::byte*>(address) + ahead);
  std::unique_ptr<Storage> storage(new Storage);
  storage->data_ = mapping.data();
  storage->bytes_ = length;
  storage->copies_.push_back(std::move(mapping));
  storage->policy_.pages = Pages::kDefault;
  return Result<std::unique_ptr<Storage>>(std::move(storage));
}

}  // namespace bloomline::detail
