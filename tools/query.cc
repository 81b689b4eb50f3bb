// bloomline query: which of these keys may be in a filter?
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_reader.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

using Clock = std::chrono::steady_clock;

enum class QueryOutput : uint8_t { kCount, kMaybe, kAbsent, kBitmap };

void PutWord(ByteSink& sink, uint64_t word) {
  std::array<char, 8> bytes{};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(word >> (8 * i) & 0xff);
  sink.Write(bytes.data(), bytes.size());
}

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
    app.add_option("--output", output_, "count, maybe, absent or bitmap [count]")->type_name("WHAT");
    app.add_option("--lines-to", lines_to_, "Write keys or bitmap to FILE instead of standard output")
        ->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    const auto start = Clock::now();
    ReadArguments();
    const FilterView filter = Must(FilterView::TryMap(file_));
    format_ = Format(filter.key_kind());
    std::optional<ByteSink> sink = Sink(common.json);
    KeyReader reader(keys_.path, format_, filter.seed(), kind_ == QueryOutput::kMaybe || kind_ == QueryOutput::kAbsent);
    Ask(reader, filter, sink ? &*sink : nullptr);
    if (sink) sink->Finish();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (common.json) {
      PrintJson(Report(filter, seconds));
    } else if (kind_ == QueryOutput::kCount || lines_to_) {
      PrintText("maybe " + FormatCount(maybe_) + ", absent " + FormatCount(total_ - maybe_) + " of " +
                FormatCount(total_) + " keys" +
                (total_ > 0 ? ", " + FormatMeasure(NsPerKey(), 3) + " ns/key" : std::string()) + "\n");
    }
  }

 private:
  void ReadArguments() {
    keys_.Format();  // an unknown name is told before anything is read
    if (!output_ || *output_ == "count") {
      kind_ = QueryOutput::kCount;
    } else if (*output_ == "maybe") {
      kind_ = QueryOutput::kMaybe;
    } else if (*output_ == "absent") {
      kind_ = QueryOutput::kAbsent;
    } else if (*output_ == "bitmap") {
      kind_ = QueryOutput::kBitmap;
    } else {
      ThrowUsage("--output", *output_, "must be count, maybe, absent or bitmap");
    }
    if (!lines_to_) return;
    if (kind_ == QueryOutput::kCount) ThrowUsage("--lines-to", *lines_to_, "needs --output maybe, absent or bitmap");
    CheckOutputIsNot("--lines-to", *lines_to_, "FILTER", file_);
    CheckOutputIsNot("--lines-to", *lines_to_, "--keys", keys_.path);
    CheckOutputIsNotStandard("--lines-to", *lines_to_);
  }

  KeyFormat Format(KeyKind kind) {
    const std::optional<KeyFormat> given = keys_.Format();
    hashed_ = kind == KeyKind::kHashed;
    if (kind == KeyKind::kBytes || kind == KeyKind::kU64) {
      const KeyFormat stored = kind == KeyKind::kBytes ? KeyFormat::kLines : KeyFormat::kU64le;
      if (given && *given != stored) {
        throw CliError(kExitInput, "--format " + keys_.format + ": " + Printable(file_) +
                                       " was built from keys of kind " + KeyKindName(kind) + ": the format is " +
                                       KeyFormatName(stored));
      }
      return stored;
    }
    if (!given) {
      throw CliError(kExitUsage, "--format is required: " + Printable(file_) +
                                     " does not say what its keys are (kind " + KeyKindName(kind) +
                                     "); lines, or u64le for " + (hashed_ ? "64-bit hashes" : "integers"));
    }
    return *given;
  }

  // Where keys or bitmap go; nothing where they are not asked for.
  std::optional<ByteSink> Sink(bool json) const {
    if (kind_ == QueryOutput::kCount) return std::nullopt;
    if (lines_to_) return ByteSink::File("--lines-to", *lines_to_);
    if (json) return std::nullopt;
    // Output that is appended to its own input would never end.
    CheckStdoutIsNot("--keys", keys_.path);
    CheckStdoutIsNot("FILTER", file_);
    ByteSink sink = ByteSink::Stdout();
    if (sink.IsTerminal() && (kind_ == QueryOutput::kBitmap || format_ == KeyFormat::kU64le)) {
      throw CliError(kExitUsage,
                     "standard output is a terminal and the output is binary: redirect it or give --lines-to");
    }
    return sink;
  }

  void Ask(KeyReader& reader, const FilterView& filter, ByteSink* sink) {
    Progress progress("querying", reader.TotalBytes());
    std::optional<BitmapWriter> bitmap;
    if (sink != nullptr && kind_ == QueryOutput::kBitmap) bitmap.emplace(*sink);
    std::vector<uint64_t> words;
    KeyBatch batch;
    while (reader.Next(batch)) {
      words.assign((batch.size() + 63) / 64, 0);
      const auto start = Clock::now();
      if (!batch.lines.empty()) filter.MayContainBatch(batch.lines, words);
      if (!batch.integers.empty()) {
        if (hashed_) {
          filter.MayContainHashBatch(batch.integers, words);
        } else {
          filter.MayContainBatch(batch.integers, words);
        }
      }
      if (batch.long_line_hash) words[0] = filter.MayContainHash(*batch.long_line_hash) ? 1 : 0;
      in_filter_ += Clock::now() - start;
      for (const uint64_t word : words) maybe_ += static_cast<uint64_t>(std::popcount(word));
      total_ += batch.size();
      if (bitmap) {
        bitmap->Append(words, batch.size());
      } else if (sink != nullptr) {
        PrintKeys(reader, batch, words, *sink);
      }
      // Whoever waits at the other end of a pipe gets the answers as they are found.
      if (sink != nullptr && !reader.TotalBytes()) sink->Flush();
      progress.Update(total_, reader.bytes_read());
    }
    if (bitmap) bitmap->Finish();
  }

  void PrintKeys(KeyReader& reader, const KeyBatch& batch, std::span<const uint64_t> words, ByteSink& sink) const {
    const uint64_t flip = kind_ == QueryOutput::kAbsent ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < batch.size(); i += 64) {
      uint64_t wanted = words[i / 64] ^ flip;
      if (batch.size() - i < 64) wanted &= (uint64_t{1} << (batch.size() - i)) - 1;
      for (; wanted != 0; wanted &= wanted - 1) {
        const size_t key = i + static_cast<size_t>(std::countr_zero(wanted));
        if (!batch.integers.empty()) {
          PutWord(sink, batch.integers[key]);
          continue;
        }
        if (batch.long_line_hash) {
          reader.CopyLongLine(sink);
        } else {
          sink.Write(batch.lines[key]);
        }
        sink.Put('\n');
      }
    }
  }

  double NsPerKey() const {
    return std::chrono::duration<double, std::nano>(in_filter_).count() / static_cast<double>(total_);
  }

  Json Report(const FilterView& filter, double seconds) const {
    Json json = FilterJson(filter, /*contents=*/false);
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(NsPerKey());
    json["keys"] = total_;
    json["maybe"] = maybe_;
    json["absent"] = total_ - maybe_;
    json["file"] = file_;
    json["file_bytes"] = FileBytes(file_);
    return json;
  }

  std::string file_;
  KeyOptions keys_;
  std::optional<std::string> output_, lines_to_;

  QueryOutput kind_ = QueryOutput::kCount;
  KeyFormat format_ = KeyFormat::kLines;
  bool hashed_ = false;
  uint64_t total_ = 0;
  uint64_t maybe_ = 0;
  Clock::duration in_filter_{0};
};

}  // namespace

std::unique_ptr<Command> MakeQueryCommand() { return std::make_unique<QueryCommand>(); }

}  // namespace bloomline::cli
