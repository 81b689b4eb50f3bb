// bloomline merge: the filter of the keys of two.
#include <chrono>
#include <string>

#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

using Clock = std::chrono::steady_clock;

class MergeCommand final : public Command {
 public:
  const char* name() const override { return "merge"; }
  const char* summary() const override { return "Merge two filters of the same shape into one"; }
  const char* epilogue() const override {
    return "The result holds the keys of both. Both need the same layout, k, number of blocks, seed and key kind: "
           "build\n"
           "them with the same --expected, --fpr or --bits-per-key, --layout and --seed. Counts are re-estimated from\n"
           "the merged bits. FILE may be A or B.\n"
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
    const auto start = Clock::now();
    CheckOutput(out_);
    Filter merged = Must(Filter::TryLoad(a_));
    {
      const FilterView other = Must(FilterView::TryMap(b_));
      Must(merged.TryMerge(other), Printable(a_) + " and " + Printable(b_) + " cannot be merged");
    }
    Must(merged.TrySave(out_));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (common.json) {
      Json json = FilterJson(merged, /*contents=*/true);
      json["seconds"] = seconds;
      json["granted_pages"] = merged.memory().granted;
      json["file"] = out_;
      json["file_bytes"] = FileBytes(out_);
      PrintJson(json);
      return;
    }
    Table table;
    table.Add("file", out_ + ", " + FormatBytes(FileBytes(out_)));
    table.Add("layout", LayoutText(merged));
    table.Add("memory", SizeText(merged));
    table.Add("keys", merged.Saturated() ? "no estimate: every bit is set"
                                         : FormatCount(merged.InsertedCount()) + " (estimated)");
    table.Add("FPR", FormatPercent(merged.PredictedFpr()) + " predicted");
    PrintText(table.Text());
  }

 private:
  std::string a_, b_, out_;
};

}  // namespace

std::unique_ptr<Command> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace bloomline::cli
