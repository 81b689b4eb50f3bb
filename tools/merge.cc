// bloomline merge: the filter of the keys of two.
#include <string>
#include <type_traits>
#include <utility>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_work.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

class MergeCommand final : public Command {
 public:
  const char* name() const override { return "merge"; }
  const char* summary() const override { return "Merge two filters of the same shape into one"; }
  const char* epilogue() const override {
    return "The result holds the keys of both. Both need the same layout, k, number of blocks, seed and key kind: "
           "build\n"
           "them with the same --expected, --fpr or --bits-per-key, --layout and --seed. Counts are re-estimated from\n"
           "the merged bits. FILE may be A or B; it appears when it is complete, an error leaves what was there.\n"
           "Counting filters add up, counters and counts, and need the same --overflow too: saturate stops at 15 or\n"
           "255, spill counts on in its table, reject refuses the merge where any counter would go beyond.\n"
           "\n"
           "Examples:\n"
           "  bloomline merge monday.bloom tuesday.bloom --out both.bloom\n"
           "  bloomline merge all.bloom today.bloom --out all.bloom";
  }

  void Declare(CLI::App& app) override {
    app.add_option("A", a_, "A filter file")->required()->type_name("FILE");
    app.add_option("B", b_, "Another of the same shape")->required()->type_name("FILE");
    app.add_option("--out", out_, "The file to write; may be A or B")->required()->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    const Stopwatch watch;
    CheckOutput(out_);
    if (HoldsCounters(a_)) {
      if (!HoldsCounters(b_)) {
        throw CliError(kExitInput, Both() + " cannot be merged: only the first has counters");
      }
      CountingFilter merged = Must(CountingFilter::TryLoad(a_));
      Finish(merged, Must(CountingFilter::TryLoad(b_)), watch, common.json);
    } else {
      Filter merged = Must(Filter::TryLoad(a_));
      Finish(merged, Must(FilterView::TryMap(b_)), watch, common.json);
    }
  }

 private:
  std::string Both() const { return Printable(a_) + " and " + Printable(b_); }

  template <class AnyFilter, class Other>
  void Finish(AnyFilter& merged, Other other, const Stopwatch& watch, bool as_json) const {
    Must(merged.TryMerge(other), Both());
    Must(merged.TrySave(out_));
    const double seconds = watch.Seconds();
    if (as_json) {
      Json json = FilterJson(merged, /*contents=*/true);
      json["seconds"] = seconds;
      json["granted_pages"] = merged.memory().granted;
      json["file"] = out_;
      json["file_bytes"] = FileBytes(out_);
      PrintJson(json);
      return;
    }
    constexpr bool kCounting = std::is_same_v<AnyFilter, CountingFilter>;
    Table table;
    table.Add("file", out_ + ", " + FormatBytes(FileBytes(out_)));
    table.Add("layout", LayoutText(merged));
    table.Add("memory", SizeText(merged));
    if constexpr (kCounting) AddCounters(table, merged);
    table.Add("keys", kCounting            ? FormatCount(merged.InsertedCount()) + " added"
                      : merged.Saturated() ? "no estimate: every bit is set"
                                           : FormatCount(merged.InsertedCount()) + " (estimated)");
    table.Add("FPR", FormatPercent(merged.PredictedFpr()) + " predicted");
    PrintText(table.Text());
  }

  std::string a_, b_, out_;
};

}  // namespace

std::unique_ptr<Command> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace bloomline::cli
