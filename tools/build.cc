// bloomline build: keys in, a filter in a file out.
#include <chrono>
#include <optional>
#include <string>

#include "bloomline/config.h"
#include "bloomline/filter.h"
#include "bloomline/layout.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_reader.h"
#include "tools/layout_option.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kMaxExpected = uint64_t{1} << 40;

class BuildCommand final : public Command {
 public:
  const char* name() const override { return "build"; }
  const char* summary() const override { return "Build a filter from keys and save it to a file"; }
  const char* epilogue() const override {
    return "Keys. lines: the bytes of each line are a key, whatever they are and however many; LF ends a line, a CR\n"
           "before it belongs to the key, the last line needs no LF, an empty line is the key \"\". u64le: 8 bytes "
           "per\n"
           "key, little-endian. Repeated keys do no harm but count. The filter is sized for --expected keys; without\n"
           "it the keys of a file are counted first. More keys than expected: a warning with the FPR that results.\n"
           "FILE appears when it is complete; an error leaves what was there. ns_per_key is time in the filter only.\n"
           "\n"
           "Examples:\n"
           "  bloomline build --keys words.txt --fpr 0.01 --out words.bloom\n"
           "  bloomline build --keys ids.bin --format u64le --bits-per-key 12 --layout word64 --k 5 --out ids.bloom\n"
           "  zcat urls.gz | bloomline build --keys - --expected 10M --fpr 1e-3 --out urls.bloom";
  }

  void Declare(CLI::App& app) override {
    keys_.Declare(app, "lines: one key per line; u64le: 8-byte integers [lines]");
    app.add_option("--fpr", fpr_, "Target false-positive rate, above 0 and below 1; 1% is 0.01")->type_name("P");
    app.add_option("--bits-per-key", bits_per_key_, "Instead of --fpr: bits of filter per key, 1 to 1024")
        ->type_name("B");
    app.add_option("--expected", expected_, "Number of keys, 1 to 2^40; also 1e7, 10M [a file's are counted]")
        ->type_name("N");
    layout_.Declare(app, "auto, word64, sector512z2|z4|z8, split512, line512, split256; or word64k5 [auto]",
                    "Bits set per key, 1 to 16, a multiple of the layout's zones [best]");
    app.add_option("--seed", seed_, "Hash seed, any 64-bit number, decimal or 0x… [0]")->type_name("S");
    app.add_option("--out", out_, "The file to write")->required()->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    const auto start = Clock::now();
    ReadArguments();
    KeyReader reader(keys_.path, format_, seed_value_, /*keep_long_lines=*/false);
    const FilterConfig config = Config(ExpectedKeys(reader));
    Filter filter = Must(Filter::Create(config));
    const double filter_seconds = InsertAll(reader, filter);
    Must(filter.TrySave(out_));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    WarnIfOverfull(filter, config);
    if (common.json) {
      PrintJson(Report(filter, seconds, filter_seconds));
    } else {
      PrintText(Text(filter, config, seconds, filter_seconds));
    }
  }

 private:
  void ReadArguments() {
    format_ = keys_.Format().value_or(KeyFormat::kLines);
    if (fpr_.has_value() == bits_per_key_.has_value()) {
      throw CliError(kExitUsage, fpr_ ? "--fpr and --bits-per-key exclude each other: give one of them"
                                      : "one of --fpr and --bits-per-key is required");
    }
    if (fpr_) fpr_value_ = ParseProbability("--fpr", *fpr_);
    if (bits_per_key_) bits_per_key_value_ = ParseReal("--bits-per-key", *bits_per_key_, 1, 1024);
    if (expected_) expected_value_ = ParseCount("--expected", *expected_, 1, kMaxExpected);
    if (seed_) seed_value_ = ParseU64("--seed", *seed_);
    choice_ = layout_.Read();
    if (IsCounting(choice_.layout)) ThrowUsage("--layout", *layout_.layout(), "holds counters, not bits");
    CheckOutput(out_);
    CheckOutputIsNot("--out", out_, "--keys", keys_.path);
  }

  uint64_t ExpectedKeys(KeyReader& reader) const {
    if (expected_value_) return *expected_value_;
    if (!reader.TotalBytes()) {
      throw CliError(kExitUsage, reader.name() + ": is not a regular file, so its keys cannot be counted beforehand: " +
                                     "give --expected N, about as many keys as will come");
    }
    const uint64_t keys = reader.CountKeys();
    if (keys > kMaxExpected) {
      throw CliError(kExitInput, reader.name() + ": " + FormatCount(keys) + " keys: a filter holds at most 2^40");
    }
    return keys;
  }

  FilterConfig Config(uint64_t keys) const {
    const uint64_t n = keys == 0 ? 1 : keys;  // no keys make a valid, empty filter
    return Must(fpr_ ? FilterConfig::TryForFpr(n, fpr_value_, choice_.layout, choice_.k)
                     : FilterConfig::TryForBitsPerKey(n, bits_per_key_value_, choice_.layout, choice_.k),
                fpr_ ? "--fpr " + *fpr_ : "--bits-per-key " + *bits_per_key_)
        .WithSeed(seed_value_)
        .WithKeyKind(format_ == KeyFormat::kLines ? KeyKind::kBytes : KeyKind::kU64);
  }

  // The seconds spent in the filter: hashing and setting bits.
  static double InsertAll(KeyReader& reader, Filter& filter) {
    Progress progress("building", reader.TotalBytes());
    Clock::duration in_filter{0};
    uint64_t keys = 0;
    KeyBatch batch;
    while (reader.Next(batch)) {
      const auto start = Clock::now();
      if (!batch.lines.empty()) filter.InsertBatch(batch.lines);
      if (!batch.integers.empty()) filter.InsertBatch(batch.integers);
      if (batch.long_line_hash) filter.InsertHash(*batch.long_line_hash);
      in_filter += Clock::now() - start;
      keys += batch.size();
      progress.Update(keys, reader.bytes_read());
    }
    return std::chrono::duration<double>(in_filter).count();
  }

  void WarnIfOverfull(const Filter& filter, const FilterConfig& config) const {
    if (filter.InsertedCount() <= config.expected_keys()) return;
    Warn(name(), FormatCount(filter.InsertedCount()) + " keys came, " + FormatCount(config.expected_keys()) +
                     " were expected: the predicted FPR is " + FormatPercent(filter.PredictedFpr()) + " instead of " +
                     FormatPercent(config.PredictedFpr()));
  }

  static double NsPerKey(const Filter& filter, double filter_seconds) {
    return filter_seconds * 1e9 / static_cast<double>(filter.InsertedCount());
  }

  Json Report(const Filter& filter, double seconds, double filter_seconds) const {
    Json json = FilterJson(filter, /*contents=*/true);
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(NsPerKey(filter, filter_seconds));
    json["keys"] = filter.InsertedCount();
    json["granted_pages"] = filter.memory().granted;
    json["file"] = out_;
    json["file_bytes"] = FileBytes(out_);
    return json;
  }

  std::string Text(const Filter& filter, const FilterConfig& config, double seconds, double filter_seconds) const {
    Table table;
    table.Add("file", out_ + ", " + FormatBytes(FileBytes(out_)));
    table.Add("keys", FormatCount(filter.InsertedCount()) + (format_ == KeyFormat::kLines ? " lines" : " integers"));
    table.Add("layout", LayoutText(filter));
    if (!config.reason().empty()) table.AddProse("why", config.reason());
    table.Add("memory", SizeText(filter));
    table.Add("FPR", FormatPercent(filter.PredictedFpr()) + " predicted" +
                         (fpr_ ? ", target " + FormatPercent(fpr_value_) : ""));
    if (filter.InsertedCount() > 0) {
      table.Add("time", FormatMeasure(seconds, 3) + " s in all, " + FormatMeasure(NsPerKey(filter, filter_seconds), 3) +
                            " ns per key in the filter, target " + std::string(filter.target()));
    }
    return table.Text();
  }

  KeyOptions keys_;
  LayoutOption layout_;
  std::optional<std::string> fpr_, bits_per_key_, expected_, seed_;
  std::string out_;

  KeyFormat format_ = KeyFormat::kLines;
  double fpr_value_ = 0;
  double bits_per_key_value_ = 0;
  std::optional<uint64_t> expected_value_;
  uint64_t seed_value_ = 0;
  LayoutChoice choice_;
};

}  // namespace

std::unique_ptr<Command> MakeBuildCommand() { return std::make_unique<BuildCommand>(); }

}  // namespace bloomline::cli
