#include "engine/first_touch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/binding.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace bloomline::detail {
namespace {

// What one thread takes at a time. Trades evenness at the end against system calls; also the least that is worth a
// thread of its own, which costs about 50 us where touching 16 MiB takes 2 to 6 ms.
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;

struct Piece {
  std::byte* data;
  uint64_t bytes;
};

// The pieces of one node, handed out to whoever asks.
struct NodeWork {
  std::vector<Piece> pieces;
  std::atomic<size_t> next{0};
};

// For kernels before 5.14: a store to each page. The pages are new and hold zeros.
void WriteEachPage(const Piece& piece) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t offset = 0; offset < piece.bytes; offset += page) {
    *static_cast<volatile unsigned char*>(static_cast<void*>(piece.data + offset)) = 0;
  }
}

int Touch(const Piece& piece) {
  for (;;) {
    if (madvise(piece.data, static_cast<size_t>(piece.bytes), MADV_POPULATE_WRITE) == 0) return 0;
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return errno;
    WriteEachPage(piece);
    return 0;
  }
}

void Work(NodeWork& work, std::atomic<int>& error) {
  for (;;) {
    const size_t i = work.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= work.pieces.size() || error.load(std::memory_order_relaxed) != 0) return;
    const int failed = Touch(work.pieces[i]);
    if (failed != 0) error.store(failed, std::memory_order_relaxed);
  }
}

std::vector<int> UsableCpusOf(const Topology& topology, const std::vector<int>& usable, size_t node) {
  std::vector<int> cpus;
  for (const int cpu : usable) {
    if (topology.NodeOfCpu(cpu) == static_cast<int>(node)) cpus.push_back(cpu);
  }
  return cpus;
}

// Where it is refused, the pages only come slower or from elsewhere.
void Pin(const Topology& topology, const std::vector<int>& cpus) noexcept {
  try {
    (void)PinThread(topology, cpus);
  } catch (const std::bad_alloc&) {  // for the text that says why
  }
}

}  // namespace

int TouchPages(const Topology& topology, std::span<const TouchRange> ranges) {
  const auto here = static_cast<size_t>(topology.CurrentNode());
  std::vector<NodeWork> work(topology.nodes().size());
  uint64_t total = 0;
  for (const TouchRange& range : ranges) {
    NodeWork& node = work[range.node < 0 ? here : static_cast<size_t>(range.node)];
    for (uint64_t done = 0; done < range.bytes; done += kPieceBytes) {
      node.pieces.push_back({range.data + done, std::min(kPieceBytes, range.bytes - done)});
    }
    total += range.bytes;
  }

  std::atomic<int> error{0};
  std::vector<std::vector<int>> cpus_of(work.size());  // of each node
  std::vector<size_t> helpers_of(work.size(), 0);
  std::vector<std::thread> threads;
  if (total >= 2 * kPieceBytes) {
    const std::vector<int> usable = UsableCpus(topology);
    for (size_t node = 0; node < work.size(); ++node) {
      // Where none of a node's threads may be used, the kernel still puts bound memory there, whoever touches it.
      cpus_of[node] = UsableCpusOf(topology, usable, node);
      helpers_of[node] = std::min(cpus_of[node].size(), work[node].pieces.size());
      if (node == here && helpers_of[node] != 0) --helpers_of[node];  // the calling thread is one
    }
    threads.reserve(std::accumulate(helpers_of.begin(), helpers_of.end(), size_t{0}));
  }
  // From here on nothing may throw past running threads.
  try {
    for (size_t node = 0; node < work.size(); ++node) {
      for (size_t i = 0; i < helpers_of[node]; ++i) {
        threads.emplace_back([&topology, &cpus = cpus_of[node], &node_work = work[node], &error] {
          Pin(topology, cpus);
          Work(node_work, error);
        });
      }
    }
  } catch (const std::system_error&) {  // no more threads to be had: the calling one does the rest
  } catch (const std::bad_alloc&) {
  }
  Work(work[here], error);
  for (std::thread& thread : threads) thread.join();
  for (NodeWork& node : work) Work(node, error);  // what no thread was there for
  return error;
}

}  // namespace bloomline::detail
