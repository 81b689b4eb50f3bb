// Pieces of work that belong to NUMA nodes, handed to threads of these nodes first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bloomline/thread_pool.h"

namespace bloomline::detail {

// The node, an index into the topology, whose range of partitioned memory holds a byte; 0 where it is not partitioned.
inline size_t NodeOfByte(std::span<const uint64_t> partition_ends, uint64_t byte) {
  const auto end = std::upper_bound(partition_ends.begin(), partition_ends.end(), byte);
  return end == partition_ends.end() ? 0 : static_cast<size_t>(end - partition_ends.begin());
}

class NodeQueues {
 public:
  // `nodes` queues; 0 counts as one, for work that belongs nowhere.
  NodeQueues(const ThreadPool& pool, size_t nodes) : count_(std::max<size_t>(nodes, 1)), queues_(new Queue[count_]) {
    for (int thread = 0; thread < pool.threads(); ++thread) {
      first_.push_back(static_cast<size_t>(pool.NodeOf(thread)) % count_);
      ++queues_[first_.back()].threads;
    }
  }

  void Add(size_t node, uint32_t piece) { queues_[node].pieces.push_back(piece); }
  void Restart() {
    for (size_t i = 0; i < count_; ++i) queues_[i].next.store(0, std::memory_order_relaxed);
  }

  // Takes pieces until none is left: those of the thread's node, then those of nodes that have no thread.
  template <class Body>
  void Work(int thread, const Body& body) {
    Drain(queues_[first_[static_cast<size_t>(thread)]], body);
    for (size_t i = 0; i < count_; ++i) {
      if (queues_[i].threads == 0) Drain(queues_[i], body);
    }
  }

 private:
  struct alignas(64) Queue {
    std::atomic<size_t> next{0};
    int threads = 0;
    std::vector<uint32_t> pieces;
  };
  template <class Body>
  static void Drain(Queue& queue, const Body& body) {
    for (;;) {
      const size_t i = queue.next.fetch_add(1, std::memory_order_relaxed);
      if (i >= queue.pieces.size()) return;
      body(queue.pieces[i]);
    }
  }

  size_t count_;
  std::unique_ptr<Queue[]> queues_;
  std::vector<size_t> first_;  // of each thread the queue of its node
};

}  // namespace bloomline::detail
