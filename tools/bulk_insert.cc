#include "tools/bulk_insert.h"

#include <span>

#include "tools/cli_error.h"
#include "tools/key_work.h"

namespace bloomline::cli {

void BulkInsert::Add(const KeyBatch& batch) {
  if (threads_ == 1) {
    Visit(
        batch, /*hashed=*/false, [&](const auto& keys) { filter_.InsertBatch(keys); },
        [&](const auto& hashes) { filter_.InsertHashBatch(hashes); });
    return;
  }
  if (batch.size() >= kDirect) {
    Flush();
    if (batch.lines.empty()) return Insert(batch.integers);
    if (pool_ == nullptr) pool_ = Must(ThreadPool::Create(threads_));
    Must(filter_.TryInsertBulk(batch.lines, *pool_));
    return;
  }
  if (pending_.capacity() == 0) pending_.reserve(kGather);
  if (pending_.size() + batch.size() > kGather) Flush();
  pending_hashes_ = batch.integers.empty();
  pending_.insert(pending_.end(), batch.integers.begin(), batch.integers.end());
  for (const std::string_view line : batch.lines) pending_.push_back(HashBytes(line, filter_.seed()));
  if (batch.long_line_hash) pending_.push_back(*batch.long_line_hash);
}

void BulkInsert::Finish() {
  if (pending_.empty()) return;
  if (pool_ != nullptr) return Flush();
  // Too few to start threads for.
  if (pending_hashes_) {
    filter_.InsertHashBatch(pending_);
  } else {
    filter_.InsertBatch(pending_);
  }
  pending_.clear();
}

void BulkInsert::Flush() {
  if (pending_.empty()) return;
  if (pending_hashes_) {
    if (pool_ == nullptr) pool_ = Must(ThreadPool::Create(threads_));
    Must(filter_.TryInsertHashBulk(pending_, *pool_));
  } else {
    Insert(pending_);
  }
  pending_.clear();
}

void BulkInsert::Insert(std::span<const uint64_t> integers) {
  if (pool_ == nullptr) pool_ = Must(ThreadPool::Create(threads_));
  Must(filter_.TryInsertBulk(integers, *pool_));
}

}  // namespace bloomline::cli
