// bloomline build: keys in, a filter in a file out.
#include <optional>
#include <string>
#include <type_traits>

#include "bloomline/config.h"
#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "bloomline/layout.h"
#include "bloomline/overflow_policy.h"
#include "tools/bulk_insert.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_reader.h"
#include "tools/key_work.h"
#include "tools/layout_option.h"
#include "tools/memory_option.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

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
           "The file is the same whatever --threads, --pages and --placement say (counting layouts: one thread); what\n"
           "the system granted of the latter two is in the report.\n"
           "\n"
           "Counting layouts have 4 or 8 bits per counter in place of bits, so that bloomline remove can take keys "
           "out\n"
           "again; --bits-per-key means bits of memory for them too: 40 are 10 counters of 4 bits. A counter that is\n"
           "full, at 15 or 255: saturate leaves it there for good, reject refuses the key, spill counts on in a table\n"
           "beside. Refused keys are counted and warned of; the exit code is 0.\n"
           "\n"
           "Examples:\n"
           "  bloomline build --keys words.txt --fpr 0.01 --out words.bloom\n"
           "  bloomline build --keys ids.bin --format u64le --bits-per-key 12 --layout word64 --k 5 --out ids.bloom\n"
           "  zcat urls.gz | bloomline build --keys - --expected 10M --fpr 1e-3 --out urls.bloom\n"
           "  bloomline build --keys live.txt --fpr 0.01 --layout counting4 --overflow spill --out live.bloom";
  }

  void Declare(CLI::App& app) override {
    keys_.Declare(app, "lines: one key per line; u64le: 8-byte integers [lines]");
    app.add_option("--fpr", fpr_, "Target false-positive rate, above 0 and below 1; 1% is 0.01")->type_name("P");
    app.add_option("--bits-per-key", bits_per_key_, "Instead of --fpr: bits of memory per key, 1 to 1024")
        ->type_name("B");
    app.add_option("--expected", expected_, "Number of keys, 1 to 2^40; also 1e7, 10M [a file's are counted]")
        ->type_name("N");
    layout_.Declare(app,
                    "auto, word64, sector512z2|z4|z8, split512, line512, split256,\n"
                    "counting4, counting8; or word64k5 [auto]",
                    "Bits set per key, 1 to 16, a multiple of the layout's zones [best]");
    app.add_option("--overflow", overflow_, "Counting layouts: saturate, reject or spill [saturate]")
        ->type_name("WHAT");
    app.add_option("--seed", seed_, "Hash seed, any 64-bit number, decimal or 0x… [0]")->type_name("S");
    threads_.Declare(app);
    memory_.Declare(app);
    app.add_option("--out", out_, "The file to write")->required()->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    const Stopwatch watch;
    ReadArguments();
    KeyReader reader(keys_.path, format_, seed_value_, /*keep_long_lines=*/false);
    const FilterConfig config = Config(ExpectedKeys(reader));
    if (IsCounting(config.layout())) {
      Build(Must(CountingFilter::Create(config, policy_)), config, reader, watch, common.json);
    } else {
      Build(Must(Filter::Create(config)), config, reader, watch, common.json);
    }
  }

 private:
  template <class AnyFilter>
  void Build(AnyFilter filter, const FilterConfig& config, KeyReader& reader, const Stopwatch& watch, bool json) {
    InsertAll(reader, filter);
    Must(filter.TrySave(out_));
    const double seconds = watch.Seconds();
    if (refused_ > 0) {
      Warn(name(), FormatCount(refused_) + " of " + tally_.KeysText() + " refused: a counter of theirs was full");
    }
    WarnIfOverfull(name(), filter, refused_ > 0 ? "are in the filter" : "came");
    if (json) {
      PrintJson(Report(filter, seconds));
    } else {
      PrintText(Text(filter, config, seconds));
    }
  }

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
    thread_count_ = threads_.Read();
    policy_of_memory_ = memory_.Read();
    if (overflow_) policy_ = ParseOverflow();
    CheckOutput(out_);
    CheckOutputIsNot("--out", out_, "--keys", keys_.path);
  }

  OverflowPolicy ParseOverflow() const {
    if (!IsCounting(choice_.layout)) {
      ThrowUsage("--overflow", *overflow_, "needs --layout counting4 or counting8: other layouts have no counters");
    }
    for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
      if (*overflow_ == OverflowPolicyName(policy)) return policy;
    }
    ThrowUsage("--overflow", *overflow_, "must be saturate, reject or spill");
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
        .WithMemory(policy_of_memory_)
        .WithKeyKind(format_ == KeyFormat::kLines ? KeyKind::kBytes : KeyKind::kU64);
  }

  void InsertAll(KeyReader& reader, Filter& filter) {
    // A small file is done before threads are awake; of a pipe nobody knows what will come.
    const int threads = reader.TotalBytes().value_or(kWorthThreads) < kWorthThreads ? 1 : thread_count_;
    BulkInsert insert(filter, threads);
    if (threads != 1 && reader.TotalBytes()) reader.TakeLargeBatches();
    tally_.Run(
        reader, "building", [&](const KeyBatch& batch) { insert.Add(batch); }, [](const KeyBatch&) {});
    tally_.Time([&] { insert.Finish(); });
    threads_used_ = insert.threads();
  }

  void InsertAll(KeyReader& reader, CountingFilter& filter) {
    const auto add = [&](const KeyBatch& batch) {
      Visit(
          batch, /*hashed=*/false, [&](const auto& keys) { refused_ += filter.AddBatch(keys); },
          [&](const auto& hashes) { refused_ += filter.AddHashBatch(hashes); });
    };
    tally_.Run(reader, "building", add, [&](const KeyBatch&) { CheckSpill(filter, refused_); });
  }

  template <class AnyFilter>
  Json Report(const AnyFilter& filter, double seconds) const {
    Json json = FilterJson(filter, /*contents=*/true);
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(tally_.NsPerKey());
    json["keys"] = tally_.keys();
    if (IsCounting(filter.layout())) json["refused"] = refused_;
    json["threads"] = threads_used_;
    const MemoryReport memory = filter.memory();
    json["granted_pages"] = memory.granted;
    json["placement"] = PlacementName(memory.placement);
    json["copies"] = memory.copies;
    json["memory_note"] = memory.note;
    json["file"] = out_;
    json["file_bytes"] = FileBytes(out_);
    return json;
  }

  template <class AnyFilter>
  std::string Text(const AnyFilter& filter, const FilterConfig& config, double seconds) const {
    Table table;
    table.Add("file", out_ + ", " + FormatBytes(FileBytes(out_)));
    table.Add("keys", FormatCount(tally_.keys()) + (format_ == KeyFormat::kLines ? " lines" : " integers") +
                          (refused_ > 0 ? ", refused: " + FormatCount(refused_) : ""));
    table.Add("layout", LayoutText(filter));
    if (!config.reason().empty()) table.AddProse("why", config.reason());
    table.Add("memory", SizeText(filter));
    const MemoryReport memory = filter.memory();
    table.Add("pages", memory.granted + (memory.copies > 1 ? ", " + std::to_string(memory.copies) + " copies" : "") +
                           (memory.placement == Placement::kLocal
                                ? std::string()
                                : std::string(", placement ") + PlacementName(memory.placement)));
    if (memory_.Given() && !memory.note.empty()) table.AddProse("", memory.note);
    if constexpr (std::is_same_v<AnyFilter, CountingFilter>) AddCounters(table, filter);
    table.Add("FPR", FormatPercent(filter.PredictedFpr()) + " predicted" +
                         (fpr_ ? ", target " + FormatPercent(fpr_value_) : ""));
    if (tally_.keys() > 0) {
      table.Add("time", FormatMeasure(seconds, 3) + " s in all, " + FormatMeasure(tally_.NsPerKey(), 3) +
                            " ns per key in the filter, target " + std::string(filter.target()) +
                            (threads_used_ == 1 ? ", 1 thread" : ", " + std::to_string(threads_used_) + " threads"));
    }
    return table.Text();
  }

  KeyOptions keys_;
  LayoutOption layout_;
  ThreadsOption threads_;
  MemoryOption memory_;
  std::optional<std::string> fpr_, bits_per_key_, expected_, seed_, overflow_;
  std::string out_;

  KeyFormat format_ = KeyFormat::kLines;
  double fpr_value_ = 0;
  double bits_per_key_value_ = 0;
  std::optional<uint64_t> expected_value_;
  uint64_t seed_value_ = 0;
  LayoutChoice choice_;
  int thread_count_ = 0;
  MemoryPolicy policy_of_memory_;
  OverflowPolicy policy_ = OverflowPolicy::kSaturate;

  KeyTally tally_;
  uint64_t refused_ = 0;
  int threads_used_ = 1;
};

}  // namespace

std::unique_ptr<Command> MakeBuildCommand() { return std::make_unique<BuildCommand>(); }

}  // namespace bloomline::cli
