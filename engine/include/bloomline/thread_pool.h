// ThreadPool: threads that stay, each pinned to a hardware thread, for calls that work on many keys at once
// (Filter::InsertBulk, FilterReader::MayContainBatch with a pool). A pool keeps up to 64 MiB that such calls sort keys
// in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bloomline/error.h"
#include "bloomline/export.h"
#include "bloomline/topology.h"

namespace bloomline {

namespace detail {
class PoolScratch;
}

class BLOOMLINE_API ThreadPool {
 public:
  static constexpr int kAuto = 0;
  static constexpr int kMaxThreads = 4096;

  // threads  1 … 4096, or kAuto: one per hardware thread that the calling thread may run on (its affinity, the control
  //          group's cpuset and CPU quota). Threads are spread over the nodes in turn and pinned by hwloc; where that
  //          is refused they run unpinned and note() says so. With one thread nothing is started: the caller works.
  // topology empty: this machine's.
  // Throws Error(kInvalidArgument), kOutOfMemory where no thread can be started.
  explicit ThreadPool(int threads = kAuto, std::shared_ptr<const Topology> topology = nullptr);
  static Result<std::unique_ptr<ThreadPool>> Create(int threads = kAuto,
                                                    std::shared_ptr<const Topology> topology = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept;
  int NodeOf(int thread) const noexcept;     // index into topology().nodes() of the node that a thread is meant for
  bool pinned() const noexcept;              // all threads are
  const std::string& note() const noexcept;  // why not, or why there are fewer threads than asked for; else empty
  const Topology& topology() const noexcept;

  // Calls body(thread) once for each thread, 0 … threads() − 1, on that thread, and returns when all have returned.
  // `body` must not throw and must not call Run. Several callers: one after the other. Allocates nothing.
  void Run(const std::function<void(int thread)>& body) noexcept;

 private:
  friend class detail::PoolScratch;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bloomline
