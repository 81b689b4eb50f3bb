// Takes the keys of a reader to a filter: one batch after the other on one thread, or gathered and inserted by a pool.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "tools/key_reader.h"

namespace bloomline::cli {

// Memory beside the filter: 8 MiB of keys or hashes, and 12 MiB to sort them in, whatever comes.
class BulkInsert {
 public:
  // `threads` as ThreadPool takes them. Threads are started when there are keys enough to share out.
  BulkInsert(Filter& filter, int threads) : filter_(filter), threads_(threads) {}

  void Add(const KeyBatch& batch);
  void Finish();  // after the last batch
  // How many threads have inserted.
  int threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }

 private:
  static constexpr size_t kGather = size_t{1} << 20;    // keys
  static constexpr size_t kDirect = size_t{128} << 10;  // keys that need no gathering
  void Flush();
  void Insert(std::span<const uint64_t> integers);

  Filter& filter_;
  int threads_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<uint64_t> pending_;
  bool pending_hashes_ = false;  // of lines; otherwise integers
};

}  // namespace bloomline::cli
