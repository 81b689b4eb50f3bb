// What the commands that take keys to a filter share: the format of the keys, and the loop over them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "bloomline/config.h"
#include "bloomline/counting_filter.h"
#include "tools/key_reader.h"
#include "tools/output.h"

namespace bloomline::cli {

// What the keys of a filter in a file are.
struct StoredKeys {
  KeyFormat format = KeyFormat::kLines;
  bool hashed = false;  // u64le values are hashes, not integers
};
// As `file`, a filter of `kind`, says. CliError(3) where --format contradicts it; CliError(2) where neither says it.
StoredKeys ReadStoredKeys(const KeyOptions& options, KeyKind kind, const std::string& file);

// Calls the one of the two that fits with the batch's keys: lines or integers, or hashes.
template <class OnKeys, class OnHashes>
void Visit(const KeyBatch& batch, bool hashed, const OnKeys& on_keys, const OnHashes& on_hashes) {
  if (batch.long_line_hash) {
    on_hashes(std::span<const uint64_t>(&*batch.long_line_hash, 1));
  } else if (!batch.lines.empty()) {
    on_keys(batch.lines);
  } else if (hashed) {
    on_hashes(batch.integers);
  } else {
    on_keys(batch.integers);
  }
}

// CliError(4) where a spilling filter has refused keys: its table of spilled counters found no memory.
void CheckSpill(const CountingFilter& filter, uint64_t refused);

// How many keys a loop has seen, and its time in the filter alone.
class KeyTally {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes all keys of `reader`: work(batch), which is timed, then after(batch).
  template <class Work, class After>
  void Run(KeyReader& reader, const char* label, const Work& work, const After& after) {
    Progress progress(label, reader.TotalBytes());
    KeyBatch batch;
    while (reader.Next(batch)) {
      const auto start = Clock::now();
      work(batch);
      in_filter_ += Clock::now() - start;
      keys_ += batch.size();
      after(batch);
      progress.Update(keys_, reader.bytes_read());
    }
  }

  // What is still to be done after the last batch, timed too.
  template <class Work>
  void Time(const Work& work) {
    const auto start = Clock::now();
    work();
    in_filter_ += Clock::now() - start;
  }

  uint64_t keys() const { return keys_; }
  double NsPerKey() const {  // not finite where there were no keys
    return std::chrono::duration<double, std::nano>(in_filter_).count() / static_cast<double>(keys_);
  }
  std::string KeysText() const;  // "1,000 keys", "1 key"
  std::string TimeText() const;  // ", 12.3 ns/key"; nothing where there were no keys

 private:
  uint64_t keys_ = 0;
  Clock::duration in_filter_{0};
};

// Seconds since it was made.
class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(KeyTally::Clock::now() - start_).count(); }

 private:
  KeyTally::Clock::time_point start_ = KeyTally::Clock::now();
};

}  // namespace bloomline::cli
