// Memory that a pool of threads keeps between calls that sort keys.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "bloomline/error.h"
#include "bloomline/thread_pool.h"
#include "engine/storage.h"

namespace bloomline::detail {

// Up to 64 MiB stay with the pool: to map and touch them anew for each batch of a million keys takes 1 to 2 ns per key.
// More, or what another call has in use, is memory of this call's own.
class PoolScratch {
 public:
  // At least `bytes`, of any content. Error(kOutOfMemory).
  static Result<PoolScratch> Take(ThreadPool& pool, uint64_t bytes);
  uint64_t* words() const { return own_ != nullptr ? own_->words() : kept_; }

 private:
  static constexpr uint64_t kMostKept = uint64_t{64} << 20;
  std::unique_lock<std::mutex> in_use_;
  uint64_t* kept_ = nullptr;
  std::unique_ptr<Storage> own_;
};

}  // namespace bloomline::detail
