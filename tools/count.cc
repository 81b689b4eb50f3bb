// bloomline count: how often may these keys have been added to a counting filter?
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_output.h"
#include "tools/key_reader.h"
#include "tools/key_work.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

// How many keys have which count: 0 … 15 one by one, then doubling ranges.
class CountHistogram {
 public:
  // `open_from`: counts from here on mean "or more".
  explicit CountHistogram(std::optional<uint32_t> open_from) : open_from_(open_from) {}

  void Add(uint32_t count) {
    ++keys_[Index(count)];
    largest_ = std::max(largest_, count);
  }
  uint32_t largest() const { return largest_; }
  uint64_t absent() const { return keys_[0]; }
  bool IsOpen(uint32_t last) const { return open_from_ && last >= *open_from_; }

  // Ranges that hold keys, ascending: visit(first, last, keys).
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == 0) continue;
      const uint32_t first = i < kSingle ? static_cast<uint32_t>(i) : uint32_t{kSingle} << (i - kSingle);
      visit(first, i < kSingle ? first : first - 1 + first, keys_[i]);
    }
  }

 private:
  static constexpr size_t kSingle = 16;  // a power of two
  static size_t Index(uint32_t count) {
    return count < kSingle ? count : kSingle + static_cast<size_t>(std::bit_width(count)) - std::bit_width(kSingle);
  }

  std::array<uint64_t, kSingle + 28> keys_{};  // the last range ends at 2^32 − 1
  uint32_t largest_ = 0;
  std::optional<uint32_t> open_from_;
};

class CountCommand final : public Command {
 public:
  const char* name() const override { return "count"; }
  const char* summary() const override { return "Ask how often keys may be in a counting filter"; }
  const char* epilogue() const override {
    return "The count of a key is the smallest of its counters: it is in the filter at most that often; 0 is "
           "certainly\n"
           "absent. Under saturate a full counter, 15 or 255, stands for \"or more\"; under spill counts go on "
           "beyond.\n"
           "summary: how many keys have which count. lines: \"count<TAB>key\" for every key, in their order; lines as\n"
           "they came, u64le keys as decimal numbers; with --json they go to --lines-to only. In JSON the histogram\n"
           "has from, to (null: or more) and keys. ns_per_key is time in the filter only.\n"
           "\n"
           "Examples:\n"
           "  bloomline count live.bloom --keys words.txt\n"
           "  bloomline count live.bloom --keys words.txt --output lines | sort -rn | head";
  }

  void Declare(CLI::App& app) override {
    app.add_option("FILTER", file_, "The filter, a file made by bloomline build --layout counting4 or counting8")
        ->required()
        ->type_name("FILE");
    keys_.Declare(app, "lines or u64le [as the filter was built]");
    output_.Declare(app, "Write lines to FILE instead of standard output");
  }

  void Run(const CommonOptions& common) override {
    const Stopwatch watch;
    keys_.Format();  // an unknown name is told before anything is read
    output_.Read(file_, keys_.path);
    const CountingFilter filter = LoadCounting(file_);
    const StoredKeys stored = ReadStoredKeys(keys_, filter.key_kind(), file_);
    std::optional<ByteSink> sink = output_.Open(common.json, file_, keys_.path, /*binary=*/false);
    KeyReader reader(keys_.path, stored.format, filter.seed(), /*keep_long_lines=*/sink.has_value());
    CountHistogram histogram(OpenFrom(filter));
    Count(reader, filter, stored.hashed, sink ? &*sink : nullptr, histogram);
    if (sink) sink->Finish();
    const double seconds = watch.Seconds();
    if (common.json) {
      PrintJson(Report(filter, histogram, seconds));
    } else if (!output_.PerKey() || output_.ToFile()) {
      PrintText(Text(histogram));
    }
  }

 private:
  static std::optional<uint32_t> OpenFrom(const CountingFilter& filter) {
    if (filter.overflow_policy() != OverflowPolicy::kSaturate) return std::nullopt;
    return filter.layout() == Layout::kCounting4 ? 15 : 255;
  }

  void Count(KeyReader& reader, const CountingFilter& filter, bool hashed, ByteSink* sink, CountHistogram& histogram) {
    std::vector<uint32_t> counts;
    const auto count = [&](const KeyBatch& batch) {
      counts.resize(batch.size());
      Visit(
          batch, hashed, [&](const auto& keys) { filter.CountBatch(keys, counts); },
          [&](const auto& hashes) { filter.CountHashBatch(hashes, counts); });
    };
    tally_.Run(reader, "counting", count, [&](const KeyBatch& batch) {
      for (const uint32_t value : counts) histogram.Add(value);
      if (sink == nullptr) return;
      for (size_t i = 0; i < batch.size(); ++i) {
        sink->Write(std::to_string(counts[i]));
        sink->Put('\t');
        if (batch.integers.empty()) {
          PutLine(reader, batch, i, *sink);
        } else {
          sink->Write(std::to_string(batch.integers[i]));
        }
        sink->Put('\n');
      }
      // Whoever waits at the other end of a pipe gets the answers as they are found.
      if (!reader.TotalBytes()) sink->Flush();
    });
  }

  Json Report(const CountingFilter& filter, const CountHistogram& histogram, double seconds) const {
    Json json = FilterJson(filter, /*contents=*/false);
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(tally_.NsPerKey());
    json["keys"] = tally_.keys();
    json["maybe"] = tally_.keys() - histogram.absent();
    json["absent"] = histogram.absent();
    json["largest"] = histogram.largest();
    Json ranges = Json::array();
    histogram.ForEach([&](uint32_t first, uint32_t last, uint64_t keys) {
      Json range;
      range["from"] = first;
      range["to"] = histogram.IsOpen(last) ? Json(nullptr) : Json(last);
      range["keys"] = keys;
      ranges.push_back(std::move(range));
    });
    json["histogram"] = std::move(ranges);
    json["file"] = file_;
    json["file_bytes"] = FileBytes(file_);
    return json;
  }

  std::string Text(const CountHistogram& histogram) const {
    std::string text = "maybe " + FormatCount(tally_.keys() - histogram.absent()) + ", absent " +
                       FormatCount(histogram.absent()) + " of " + tally_.KeysText() + tally_.TimeText() + "\n";
    if (tally_.keys() == 0) return text;
    text += "largest " + FormatCount(histogram.largest()) + (histogram.IsOpen(histogram.largest()) ? " or more" : "") +
            "\n";
    // Columns: count, keys, share.
    std::vector<std::array<std::string, 3>> rows = {{"count", "keys", "share"}};
    histogram.ForEach([&](uint32_t first, uint32_t last, uint64_t keys) {
      std::string range = FormatCount(first);
      if (histogram.IsOpen(last)) {
        range += " or more";
      } else if (last > first) {
        range += " to " + FormatCount(last);
      }
      rows.push_back(
          {range, FormatCount(keys), FormatPercent(static_cast<double>(keys) / static_cast<double>(tally_.keys()))});
    });
    std::array<size_t, 3> widths{};
    for (const auto& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows) {
      text += row[0] + std::string(widths[0] - row[0].size(), ' ');
      for (size_t i = 1; i < row.size(); ++i) text += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
      text += "\n";
    }
    return text;
  }

  std::string file_;
  KeyOptions keys_;
  KeyOutput output_{{"summary", "lines"}};

  KeyTally tally_;
};

}  // namespace

std::unique_ptr<Command> MakeCountCommand() { return std::make_unique<CountCommand>(); }

}  // namespace bloomline::cli
