// bloomline validate: holds the filters against the models, cell by cell of a grid.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bloomline/target.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/validate/cell.h"
#include "tools/validate/grid.h"
#include "tools/validate/patterns.h"
#include "tools/validate/report.h"

namespace bloomline::cli {
namespace {

using validate::Break;
using validate::Cell;
using validate::CellResult;
using validate::GridOptions;
using validate::Pattern;
using validate::RunInfo;

constexpr int kExitFailed = 1;  // a cell failed

// What is going to be done and how far it is, on stderr: a line that changes where that is a terminal, else a line
// every half minute.
class Reporter {
 public:
  Reporter(bool json, size_t cells, uint64_t probes)
      : terminal_(::isatty(STDERR_FILENO) == 1), quiet_(json && !terminal_), cells_(cells), probes_(probes) {}
  ~Reporter() { Clear(); }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void Start(unsigned threads) {
    Print("bloomline validate: " + FormatCount(cells_) + " cells, " + FormatCount(probes_) + " probes, threads " +
          std::to_string(threads) + "\n");
  }

  void Update(size_t cells, uint64_t probes) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30'000));
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::string line =
        FormatCount(cells) + " of " + FormatCount(cells_) + " cells, " +
        std::to_string(static_cast<int>(100.0 * static_cast<double>(probes) / static_cast<double>(probes_))) +
        " % of the probes, " + FormatReal(seconds, 3) + " s";
    drawn_ = terminal_;
    Print(terminal_ ? "\r" + line + "\033[K" : "bloomline validate: " + line + "\n");
  }

  void Clear() {
    if (drawn_) Print("\r\033[K");
    drawn_ = false;
  }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  void Print(const std::string& text) const {
    if (!quiet_) std::fwrite(text.data(), 1, text.size(), stderr);
  }

  bool terminal_;
  bool quiet_;
  bool drawn_ = false;
  size_t cells_;
  uint64_t probes_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::milliseconds(terminal_ ? 200 : 30'000);
};

class ValidateCommand final : public Command {
 public:
  const char* name() const override { return "validate"; }
  const char* summary() const override { return "Hold measured false-positive rates against the models"; }
  const char* epilogue() const override {
    return "Each cell of a grid builds a filter, looks up every member (one that is not found ends the run) and\n"
           "many foreign keys, and is judged three times: the measured FPR against the exact rate of the filter's\n"
           "content, that rate against the predicted FPR, the estimated count against the number of keys. Fewer than\n"
           "100,000 keys are averaged over many sets of keys. --family-error is the error of all comparisons\n"
           "together. Targets must agree to the bit. The same options and seed give the same numbers, whatever the\n"
           "number of threads.\n"
           "\n"
           "Lists are separated by commas. What is not given is that of the default grid: every layout with its good\n"
           "k at 6 to 24 bits per key, every pattern, filters from 1 to 10,000,000 keys, every target; 10^8 probes\n"
           "where the predicted FPR is below 1e-4, else 10^7. --quick runs every layout and pattern on one target and\n"
           "a few on the others, in less than a minute. MEMBERS:PROBES is a pattern of members and another of probes.\n"
           "\n"
           "Exit codes: 0 every cell passed; 1 a cell failed (all output is written); 2, 3, 4 as for every command.\n"
           "\n"
           "Examples:\n"
           "  bloomline validate --quick\n"
           "  bloomline validate --csv cells.csv --svg fpr.svg\n"
           "  bloomline validate --layouts split512,word64k5 --bits-per-key 8,10 --patterns random,decimal:hex\n"
           "  bloomline validate --quick --json | jq .summary";
  }

  void Declare(CLI::App& app) override {
    app.add_option("--layouts", layouts_, "Layouts, with or without a k behind the name [all]")->type_name("LIST");
    app.add_option("--k", k_, "Bits set per key, 1 to 16, or all; for layouts that have it [the good ones]")
        ->type_name("LIST");
    app.add_option("--bits-per-key", bits_per_key_,
                   "Filter sizes; of counting4 and counting8 counters per key [6,8,10,12,16,20,24]")
        ->type_name("LIST");
    app.add_option("--keys", keys_, "Numbers of keys [1 to 10M]")->type_name("LIST");
    app.add_option("--patterns", patterns_, PatternHelp())->type_name("LIST");
    app.add_option("--targets", targets_, "SIMD targets, see bloomline targets [all]")->type_name("LIST");
    app.add_option("--probes", probes_, "Foreign keys per cell [10M; 100M for low rates]")->type_name("N");
    app.add_option("--seed", seed_, "Chooses keys and hash functions [1]")->type_name("N");
    app.add_option("--words", words_, "Word list for the pattern words [the system's]")->type_name("FILE");
    app.add_option("--family-error", family_error_, "Chance that a run without faults fails [0.001]")->type_name("P");
    app.add_option("--threads", threads_, "Threads; memory may allow fewer [one per CPU]")->type_name("N");
    app.add_flag("--quick", quick_, "A small grid, less than a minute");
    app.add_option("--csv", csv_, "Write every cell to FILE")->type_name("FILE");
    app.add_option("--svg", svg_, "Draw measured points on predicted curves to FILE")->type_name("FILE");
    // For the tests: damage that must be found.
    app.add_option("--break", break_)->group("")->type_name("KIND");
  }

  void Run(const CommonOptions& common) override {
    RunInfo info;
    const GridOptions options = ReadOptions(common, info);
    // A long list takes a moment: not without need.
    const bool all_patterns = !patterns_ || *patterns_ == "all";
    const bool wants_words = all_patterns || words_ || patterns_->find("words") != std::string::npos;
    std::vector<std::string> words;
    if (wants_words) words = validate::ReadWords(words_.value_or(""), info.seed);
    const bool has_words = words.size() >= 2;
    const std::vector<Pattern> patterns = validate::MakePatterns(info.seed, std::move(words));
    GridOptions grid = options;
    if (patterns_) grid.patterns = validate::ParsePatterns(*patterns_, patterns);
    if (!has_words && all_patterns) {
      info.skipped.emplace_back("words");
      Warn("validate", "no word list is installed: the pattern words is SKIPPED; --words FILE names one");
    }
    const std::vector<Cell> cells = validate::MakeGrid(grid, patterns);
    info.threads = validate::LimitThreads(cells, info.threads);
    info.comparisons = validate::CountComparisons(cells);
    info.share = info.family_error / static_cast<double>(info.comparisons);
    std::optional<ByteSink> csv = OpenOutput("--csv", csv_);
    std::optional<ByteSink> svg = OpenOutput("--svg", svg_);

    Reporter reporter(common.json, cells.size(), validate::CountProbes(cells));
    reporter.Start(info.threads);
    std::vector<CellResult> results =
        validate::RunCells(cells, info.broken, info.share, info.threads,
                           [&](size_t done, uint64_t probes) { reporter.Update(done, probes); });
    validate::CompareTargets(cells, results);
    info.seconds = reporter.Seconds();
    reporter.Clear();

    if (csv) {
      validate::WriteCsv(*csv, cells, results);
      csv->Finish();
    }
    if (svg) {
      svg->Write(validate::SvgReport(info, cells, results));
      svg->Finish();
    }
    if (common.json) {
      PrintJson(validate::JsonReport(info, cells, results));
    } else {
      PrintText(validate::TextReport(info, cells, results));
    }
    ThrowIfFailed(cells, results);
  }

 private:
  static std::string PatternHelp() {
    std::string help = "Key patterns, or pairs MEMBERS:PROBES, or all:";
    bool strides = false;
    for (const std::string& pattern : validate::PatternNames()) {
      if (!pattern.starts_with("stride")) {
        help += " " + pattern;
      } else if (!std::exchange(strides, true)) {
        help += " stride1 … stride60 (2^1 … 2^60)";
      }
    }
    return help;
  }

  GridOptions ReadOptions(const CommonOptions& common, RunInfo& info) const {
    GridOptions options;
    options.quick = info.quick = quick_;
    if (layouts_) options.layouts = validate::ParseLayouts(*layouts_);
    if (k_) options.k = validate::ParseHashCounts(*k_);
    if (bits_per_key_) options.bits_per_key = validate::ParseBitsPerKey(*bits_per_key_);
    if (keys_) options.keys = validate::ParseKeyCounts(*keys_);
    if (targets_ && !common.target.empty()) throw CliError(kExitUsage, "--target and --targets exclude each other");
    if (targets_) options.targets = validate::ParseTargets(*targets_);
    if (!common.target.empty()) options.targets = {Must(TryChosenTarget())};
    if (probes_) options.probes = ParseCount("--probes", *probes_, 1, 1'000'000'000'000);
    info.seed = seed_ ? ParseU64("--seed", *seed_) : 1;
    options.seed = info.seed;
    info.family_error = family_error_ ? ParseProbability("--family-error", *family_error_) : 0.001;
    info.threads = threads_ ? static_cast<unsigned>(ParseCount("--threads", *threads_, 1, 1024))
                            : std::max(1U, std::thread::hardware_concurrency());
    if (break_ == "hash") {
      info.broken = Break::kHash;
    } else if (break_ == "reuse") {
      info.broken = Break::kReuse;
    } else if (break_ == "lose") {
      info.broken = Break::kLose;
    } else if (break_ == "target") {
      info.broken = Break::kTarget;
    } else if (break_) {
      ThrowUsage("--break", *break_, "must be hash, reuse, lose or target");
    }
    return options;
  }

  std::optional<ByteSink> OpenOutput(const char* option, const std::optional<std::string>& path) const {
    if (!path) return std::nullopt;
    if (*path == "-") ThrowUsage(option, *path, "must be the name of a file");
    if (words_) CheckOutputIsNot(option, *path, "--words", *words_);
    if (option == std::string_view("--svg") && csv_) CheckOutputsDiffer(option, *path, "--csv", *csv_);
    CheckOutputIsNotStandard(option, *path);
    return ByteSink::File(option, *path);
  }

  static void ThrowIfFailed(const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
    const validate::Totals totals = validate::CountTotals(results);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (results[i].false_negatives == 0) continue;
      throw CliError(kExitFailed, results[i].problems.front() + ": " + cells[i].Text() + "; the run was ended, " +
                                      FormatCount(totals.not_run) + " cells were not run");
    }
    if (totals.failed != 0) {
      throw CliError(kExitFailed, FormatCount(totals.failed) + " of " + FormatCount(totals.cells) + " cells failed");
    }
  }

  std::optional<std::string> layouts_, k_, bits_per_key_, keys_, patterns_, targets_;
  std::optional<std::string> probes_, seed_, words_, family_error_, threads_, csv_, svg_, break_;
  bool quick_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeValidateCommand() { return std::make_unique<ValidateCommand>(); }

}  // namespace bloomline::cli
