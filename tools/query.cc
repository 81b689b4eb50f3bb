// bloomline query: which of these keys may be in a filter?
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_output.h"
#include "tools/key_reader.h"
#include "tools/key_work.h"
#include "tools/memory_option.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

// Joins the bitmaps of batches of any length to one.
class BitmapWriter {
 public:
  explicit BitmapWriter(ByteSink& sink) : sink_(sink) {}
  void Append(std::span<const uint64_t> words, size_t bits) {
    for (size_t done = 0; done < bits; done += 64) {
      const uint64_t word = words[done / 64];
      const size_t count = bits - done < 64 ? bits - done : 64;
      pending_ |= word << used_;
      if (used_ + count >= 64) {
        PutWord(sink_, pending_);
        pending_ = used_ == 0 ? 0 : word >> (64 - used_);
        used_ = used_ + count - 64;
      } else {
        used_ += count;
      }
    }
  }
  void Finish() {
    if (used_ > 0) PutWord(sink_, pending_);
  }

 private:
  ByteSink& sink_;
  uint64_t pending_ = 0;
  size_t used_ = 0;  // bits of pending_, below 64
};

class QueryCommand final : public Command {
 public:
  const char* name() const override { return "query"; }
  const char* summary() const override { return "Ask which keys may be in a filter"; }
  const char* epilogue() const override {
    return "A key is either certainly absent or maybe present; foreign keys are \"maybe\" at the filter's FPR.\n"
           "count: one line with both numbers. maybe, absent: the keys themselves, as they came (lines end with LF,\n"
           "u64le keys are 8 bytes). bitmap: little-endian 64-bit words, bit i % 64 of word i / 64 is set where key i\n"
           "may be present. With --json the keys or the bitmap go to --lines-to only. ns_per_key is time in the "
           "filter\n"
           "only. Whatever the answers are, the exit code is 0.\n"
           "\n"
           "Examples:\n"
           "  bloomline query words.bloom --keys text.txt\n"
           "  bloomline query words.bloom --keys - --output absent < text.txt > new-words.txt\n"
           "  bloomline query ids.bloom --keys ids.bin --output bitmap --lines-to hits.bits --json";
  }

  void Declare(CLI::App& app) override {
    app.add_option("FILTER", file_, "The filter, a file made by bloomline build")->required()->type_name("FILE");
    keys_.Declare(app, "lines or u64le [as the filter was built]");
    output_.Declare(app, "Write keys or bitmap to FILE instead of standard output");
    threads_.Declare(app);
  }

  void Run(const CommonOptions& common) override {
    const Stopwatch watch;
    keys_.Format();  // an unknown name is told before anything is read
    output_.Read(file_, keys_.path);
    const int threads = threads_.Read();
    const FilterView filter = Must(FilterView::TryMap(file_));
    const StoredKeys stored = ReadStoredKeys(keys_, filter.key_kind(), file_);
    const bool bitmap = output_.Is("bitmap");
    std::optional<ByteSink> sink =
        output_.Open(common.json, file_, keys_.path, bitmap || stored.format == KeyFormat::kU64le);
    KeyReader reader(keys_.path, stored.format, filter.seed(), sink && !bitmap);
    if (threads != 1 && reader.TotalBytes().value_or(0) >= kWorthThreads) {
      pool_ = Must(ThreadPool::Create(threads));
      reader.TakeLargeBatches();
    }
    Ask(reader, filter, stored.hashed, sink ? &*sink : nullptr);
    if (sink) sink->Finish();
    const double seconds = watch.Seconds();
    if (common.json) {
      PrintJson(Report(filter, seconds));
    } else if (!output_.PerKey() || output_.ToFile()) {
      PrintText("maybe " + FormatCount(maybe_) + ", absent " + FormatCount(tally_.keys() - maybe_) + " of " +
                tally_.KeysText() + tally_.TimeText() + "\n");
    }
  }

 private:
  void Ask(KeyReader& reader, const FilterView& filter, bool hashed, ByteSink* sink) {
    std::optional<BitmapWriter> bitmap;
    if (sink != nullptr && output_.Is("bitmap")) bitmap.emplace(*sink);
    std::vector<uint64_t> words;
    const auto ask = [&](const KeyBatch& batch) {
      words.assign((batch.size() + 63) / 64, 0);
      if (pool_ != nullptr) {
        Visit(
            batch, hashed, [&](const auto& keys) { filter.MayContainBatch(keys, words, *pool_); },
            [&](const auto& hashes) { filter.MayContainHashBatch(hashes, words, *pool_); });
        return;
      }
      Visit(
          batch, hashed, [&](const auto& keys) { filter.MayContainBatch(keys, words); },
          [&](const auto& hashes) { filter.MayContainHashBatch(hashes, words); });
    };
    tally_.Run(reader, "querying", ask, [&](const KeyBatch& batch) {
      for (const uint64_t word : words) maybe_ += static_cast<uint64_t>(std::popcount(word));
      if (bitmap) {
        bitmap->Append(words, batch.size());
      } else if (sink != nullptr) {
        PutKeys(reader, batch, words, /*inverted=*/output_.Is("absent"), *sink);
      }
      // Whoever waits at the other end of a pipe gets the answers as they are found.
      if (sink != nullptr && !reader.TotalBytes()) sink->Flush();
    });
    if (bitmap) bitmap->Finish();
  }

  Json Report(const FilterView& filter, double seconds) const {
    Json json = FilterJson(filter, /*contents=*/false);
    json["threads"] = pool_ == nullptr ? 1 : pool_->threads();
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(tally_.NsPerKey());
    json["keys"] = tally_.keys();
    json["maybe"] = maybe_;
    json["absent"] = tally_.keys() - maybe_;
    json["file"] = file_;
    json["file_bytes"] = FileBytes(file_);
    return json;
  }

  std::string file_;
  KeyOptions keys_;
  KeyOutput output_{{"count", "maybe", "absent", "bitmap"}};

  ThreadsOption threads_;
  std::unique_ptr<ThreadPool> pool_;  // empty: one thread

  KeyTally tally_;
  uint64_t maybe_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeQueryCommand() { return std::make_unique<QueryCommand>(); }

}  // namespace bloomline::cli
