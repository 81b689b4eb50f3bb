#include "bloomline/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/binding.h"
#include "engine/control_group.h"
#include "engine/out_of_memory.h"
#include "engine/pool_scratch.h"

namespace bloomline {
namespace {

// Where a thread is to run.
struct Seat {
  int cpu = 0;
  int node = 0;  // index into the topology's nodes
};

// The usable hardware threads in the order in which threads are given them: nodes in turn, and of a node its cores
// before their second hardware threads.
std::vector<Seat> Seats(const Topology& topology) {
  const std::vector<int> usable = detail::UsableCpus(topology);
  std::vector<std::vector<Seat>> by_node(topology.nodes().size());
  for (size_t sibling = 0, left = usable.size(); left != 0 && sibling < 1024; ++sibling) {
    for (const CpuCore& core : topology.cores()) {
      if (sibling >= core.cpus.size()) continue;
      const int cpu = core.cpus[sibling];
      if (!std::binary_search(usable.begin(), usable.end(), cpu)) continue;
      by_node[static_cast<size_t>(core.node)].push_back({cpu, core.node});
      --left;
    }
  }
  std::vector<Seat> seats;
  for (size_t i = 0; seats.size() < usable.size(); ++i) {
    const size_t before = seats.size();
    for (const std::vector<Seat>& node : by_node) {
      if (i < node.size()) seats.push_back(node[i]);
    }
    if (seats.size() == before) break;
  }
  if (seats.empty()) seats.push_back({});
  return seats;
}

// One per usable hardware thread, or as many as the control group gives time for.
int AutoThreads(const Topology& topology, size_t seats) {
  int threads = static_cast<int>(std::min<size_t>(seats, ThreadPool::kMaxThreads));
  if (topology.synthetic()) return threads;
  if (const auto cpus = detail::ControlGroupCpus()) {
    threads = std::clamp(static_cast<int>(std::ceil(std::min(*cpus, 1e6))), 1, threads);
  }
  return threads;
}

}  // namespace

struct ThreadPool::Impl {
  std::shared_ptr<const Topology> topology;
  std::vector<int> nodes;  // of each thread
  std::vector<std::thread> workers;
  bool pinned = false;
  std::string note;

  std::mutex one_run;  // held by the caller whose turn it is
  std::mutex scratch_in_use;
  std::unique_ptr<detail::Storage> scratch;  // guarded by scratch_in_use
  const std::function<void(int)>* body = nullptr;
  std::atomic<uint32_t> round{0};    // counts the runs; workers wait for the next
  std::atomic<uint32_t> working{0};  // those that have not finished this run
  std::atomic<bool> stopping{false};
  std::atomic<int> pin_failures{0};
  std::atomic<size_t> ready{0};  // workers that have tried to pin themselves

  ~Impl() {
    stopping = true;
    round.fetch_add(1);
    round.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void Work(int thread) noexcept {
    for (uint32_t seen = 0;;) {
      round.wait(seen);
      ++seen;
      if (stopping) return;
      (*body)(thread);
      if (working.fetch_sub(1) == 1) working.notify_one();
    }
  }

  void AddNote(const std::string& text) { note += (note.empty() ? "" : "; ") + text; }

  void Start(int wanted) {
    const std::vector<Seat> seats = Seats(*topology);
    if (wanted == kAuto) wanted = AutoThreads(*topology, seats.size());
    const auto count = static_cast<size_t>(wanted);
    for (size_t i = 0; i < count; ++i) nodes.push_back(seats[i % seats.size()].node);
    if (wanted == 1) return;

    // More threads than seats: each may use all seats of its node.
    std::vector<std::vector<int>> cpus(count);
    for (size_t i = 0; i < count; ++i) {
      if (count <= seats.size()) {
        cpus[i] = {seats[i].cpu};
        continue;
      }
      for (const Seat& seat : seats) {
        if (seat.node == nodes[i]) cpus[i].push_back(seat.cpu);
      }
    }
    std::vector<std::string> refusals(count);
    workers.reserve(count);
    // Until all that were started are ready nothing may throw: they use this call's variables.
    std::exception_ptr no_memory;
    std::error_code refused_start;
    try {
      for (size_t i = 0; i < count; ++i) {
        workers.emplace_back([this, i, &cpus, &refusals] {
          try {
            refusals[i] = detail::PinThread(*topology, cpus[i]);
          } catch (const std::bad_alloc&) {
            pin_failures.fetch_add(1);
          }
          ready.fetch_add(1);
          ready.notify_one();
          Work(static_cast<int>(i));
        });
      }
    } catch (const std::system_error& error) {
      refused_start = error.code();
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
    }
    for (size_t seen = ready; seen < workers.size(); seen = ready) ready.wait(seen);
    if (no_memory) std::rethrow_exception(no_memory);
    if (refused_start) {
      AddNote(std::to_string(workers.size()) + " of " + std::to_string(count) +
              " threads could be started: " + refused_start.message());
    }
    nodes.resize(std::max<size_t>(workers.size(), 1));
    const auto refused = std::find_if(refusals.begin(), refusals.end(), [](const auto& why) { return !why.empty(); });
    pinned = !workers.empty() && refused == refusals.end() && pin_failures == 0;
    if (refused != refusals.end()) AddNote("threads are not pinned: " + *refused);
  }
};

ThreadPool::ThreadPool(int threads, std::shared_ptr<const Topology> topology) {
  try {
    if (threads != kAuto && (threads < 1 || threads > kMaxThreads)) {
      throw Error(ErrorCode::kInvalidArgument, "threads = " + std::to_string(threads) + ": must be 1 … " +
                                                   std::to_string(kMaxThreads) + ", or 0 to choose");
    }
    impl_ = std::make_unique<Impl>();
    impl_->topology = topology ? std::move(topology) : Topology::Machine();
    impl_->Start(threads);
  } catch (...) {
    detail::ThrowError(detail::CaughtError());
  }
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads, std::shared_ptr<const Topology> topology) try {
  return std::make_unique<ThreadPool>(threads, std::move(topology));
} catch (...) {
  return detail::CaughtError();
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const noexcept { return static_cast<int>(impl_->nodes.size()); }
int ThreadPool::NodeOf(int thread) const noexcept { return impl_->nodes[static_cast<size_t>(thread)]; }
bool ThreadPool::pinned() const noexcept { return impl_->pinned; }
const std::string& ThreadPool::note() const noexcept { return impl_->note; }
const Topology& ThreadPool::topology() const noexcept { return *impl_->topology; }

void ThreadPool::Run(const std::function<void(int thread)>& body) noexcept {
  const std::lock_guard<std::mutex> turn(impl_->one_run);
  if (impl_->workers.empty()) return body(0);
  impl_->body = &body;
  impl_->working.store(static_cast<uint32_t>(impl_->workers.size()));
  impl_->round.fetch_add(1);
  impl_->round.notify_all();
  for (uint32_t left = impl_->working; left != 0; left = impl_->working) impl_->working.wait(left);
}

Result<detail::PoolScratch> detail::PoolScratch::Take(ThreadPool& pool, uint64_t bytes) {
  PoolScratch scratch;
  ThreadPool::Impl& impl = *pool.impl_;
  if (bytes <= kMostKept) scratch.in_use_ = std::unique_lock<std::mutex>(impl.scratch_in_use, std::try_to_lock);
  if (!scratch.in_use_.owns_lock()) {
    Result<std::unique_ptr<Storage>> own = Storage::Allocate(bytes, MemoryPolicy());
    if (!own.ok()) return own.error();
    scratch.own_ = std::move(own).value();
    return Result<PoolScratch>(std::move(scratch));
  }
  if (impl.scratch == nullptr || impl.scratch->bytes() < bytes) {
    impl.scratch.reset();  // before there is more
    Result<std::unique_ptr<Storage>> kept = Storage::Allocate(bytes, MemoryPolicy());
    if (!kept.ok()) return kept.error();
    impl.scratch = std::move(kept).value();
  }
  scratch.kept_ = impl.scratch->words();
  return Result<PoolScratch>(std::move(scratch));
}

}  // namespace bloomline
