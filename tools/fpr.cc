// bloomline fpr: what the models predict, for one filter, as a table or as a chart.
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "tools/chart.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/layout_option.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

constexpr uint64_t kMaxKeys = uint64_t{1} << 40;
constexpr std::array kTableBits = {4.0, 6.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 32.0};

// A curve of the chart and a column of the table: a layout at its best k.
struct Curve {
  const char* name;
  Layout layout;
  bool any_k;  // else k = 8
};
constexpr Curve kCurves[] = {
    {"word64", Layout::kWord64, true},           {"sector512z2", Layout::kSector512z2, true},
    {"sector512z4", Layout::kSector512z4, true}, {"split512", Layout::kSplit512, false},
    {"split256", Layout::kSplit256, false},      {"line512", Layout::kLine512, true},
};

int BestK(const Curve& curve, double bits) { return curve.any_k ? BestHashCount(curve.layout, bits) : 8; }

// The unblocked filter at its best whole k: what the blocked ones are held against.
double BestClassic(double bits) { return ClassicFpr(1.0, bits, ClassicHashCount(1.0, bits)); }

// 12 significant digits, as the JSON has them.
double Rounded(double value) { return std::stod(FormatReal(value, 12)); }

class FprCommand final : public Command {
 public:
  const char* name() const override { return "fpr"; }
  const char* summary() const override { return "Predict the false-positive rate of a filter, or chart all layouts"; }
  const char* epilogue() const override {
    return "--bits-per-key is the limit of many blocks; for counting4 and counting8 it counts counters. --keys with\n"
           "--memory is that filter itself, however few its blocks. Without --k: the k with the lowest FPR. classic "
           "is\n"
           "the unblocked filter of the textbooks, which no cache-line-blocked one can beat.\n"
           "--table and --svg show every layout at its best k against bits per key.\n"
           "\n"
           "Examples:\n"
           "  bloomline fpr --layout split512 --bits-per-key 10\n"
           "  bloomline fpr --layout line512 --k 7 --keys 1M --memory 1.25MB --json\n"
           "  bloomline fpr --table --svg fpr.svg";
  }

  void Declare(CLI::App& app) override {
    layout_.Declare(app, "word64, sector512z2|z4|z8, split512, line512, split256, counting4|8, classic",
                    "Bits set per key, 1 to 16 (classic: 1 to 255) [best]");
    app.add_option("--bits-per-key", bits_per_key_, "Bits (counters) per key, above 0, up to 1048576")->type_name("B");
    app.add_option("--keys", keys_, "Number of keys, 0 to 2^40, with --memory")->type_name("N");
    app.add_option("--memory", memory_, "The filter's own memory, rounded up to whole blocks: 64MiB, 2GB")
        ->type_name("BYTES");
    app.add_flag("--table", table_, "A Markdown table of FPR by bits per key, all layouts");
    app.add_option("--svg", svg_, "Draw FPR against bits per key, all layouts")->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    if (table_ || svg_) return RunOverview(common);
    const bool finite = keys_ || memory_;
    if (finite == bits_per_key_.has_value() || (finite && !(keys_ && memory_))) {
      throw CliError(kExitUsage, "give --bits-per-key B, or both of --keys N and --memory BYTES");
    }
    if (!layout_.layout()) throw CliError(kExitUsage, "--layout is required; see bloomline fpr --help");
    const Json json = *layout_.layout() == "classic" ? Classic() : Blocked();
    if (common.json) return PrintJson(json);
    PrintText(Text(json));
  }

 private:
  Json Blocked() const {
    const LayoutChoice choice = layout_.Read();
    if (choice.layout == Layout::kAuto) {
      ThrowUsage("--layout", *layout_.layout(), "must name a layout; bloomline tune compares them");
    }
    const auto cells = static_cast<double>(CellsPerBlock(choice.layout));
    double per_key = 0;
    uint64_t n = 0;
    uint64_t blocks = 0;
    if (bits_per_key_) {
      per_key = PerKey();
    } else {
      n = ParseCount("--keys", *keys_, 0, kMaxKeys);
      const uint64_t block_bytes = static_cast<uint64_t>(BlockBits(choice.layout)) / 8;
      const uint64_t bytes = ParseBytes("--memory", *memory_);
      blocks = (bytes + block_bytes - 1) / block_bytes;
      const uint64_t most = choice.layout == Layout::kSplit256 ? uint64_t{1} << 26 : (uint64_t{1} << 32) - 1;
      if (blocks > most) ThrowUsage("--memory", *memory_, "must be at most " + FormatBytes(most * block_bytes));
      per_key = static_cast<double>(blocks) * cells / static_cast<double>(n);
    }
    const int k = choice.k != 0 ? choice.k : BestHashCount(choice.layout, std::isfinite(per_key) ? per_key : 1e6);
    Json json;
    json["layout"] = LayoutName(choice.layout, k);
    json["k"] = k;
    json["zones"] = ZonesOf(choice.layout);
    json["bits_per_key"] = Number(per_key * BlockBits(choice.layout) / cells);
    if (IsCounting(choice.layout)) json["counters_per_key"] = Number(per_key);
    if (blocks != 0) {
      json["keys"] = n;
      json["blocks"] = blocks;
      json["memory_bytes"] = blocks * static_cast<uint64_t>(BlockBits(choice.layout)) / 8;
      json["content_deviation"] = Number(ContentRelativeDeviation(choice.layout, k, blocks, n));
    }
    json["predicted_fpr"] =
        Rounded(blocks != 0 ? PredictedFpr(choice.layout, k, blocks, n) : PredictedFprAt(choice.layout, k, per_key));
    return json;
  }

  Json Classic() const {
    double per_key = 0;
    Json json;
    json["layout"] = "classic";
    std::optional<int> k;
    if (layout_.k()) k = static_cast<int>(ParseCount("--k", *layout_.k(), 1, 255));
    if (bits_per_key_) {
      per_key = PerKey();
      json["k"] = k.value_or(ClassicHashCount(1.0, per_key));
      json["bits_per_key"] = per_key;
      json["predicted_fpr"] = Rounded(ClassicFpr(1.0, per_key, json["k"].get<int>()));
      return json;
    }
    const uint64_t n = ParseCount("--keys", *keys_, 0, kMaxKeys);
    const uint64_t m = ParseBytes("--memory", *memory_) * 8;
    per_key = static_cast<double>(m) / static_cast<double>(n);
    json["k"] =
        k.value_or(n == 0 ? 1 : std::min(255, ClassicHashCount(static_cast<double>(n), static_cast<double>(m))));
    json["bits_per_key"] = Number(per_key);
    json["keys"] = n;
    json["memory_bytes"] = m / 8;
    // Beyond, the two differ by less than 1e-5, and the exact one takes its time.
    constexpr uint64_t kExactBits = uint64_t{1} << 20;
    json["predicted_fpr"] =
        Rounded(m <= kExactBits ? ClassicFprExact(n, m, json["k"].get<int>())
                                : ClassicFpr(static_cast<double>(n), static_cast<double>(m), json["k"].get<int>()));
    return json;
  }

  double PerKey() const {
    const char* const allowed = "must be a number above 0, up to 1048576";
    double value = 0;
    try {
      value = ParseReal("--bits-per-key", *bits_per_key_, 0, 1048576);
    } catch (const CliError&) {
      ThrowUsage("--bits-per-key", *bits_per_key_, allowed);
    }
    if (value == 0) ThrowUsage("--bits-per-key", *bits_per_key_, allowed);
    return value;
  }

  static std::string Text(const Json& json) {
    Table table;
    table.Add("layout", json["layout"].get<std::string>() + ", k = " + std::to_string(json["k"].get<int>()));
    std::string size;
    if (json.contains("keys")) {
      size = FormatCount(json["keys"].get<uint64_t>()) + " keys in " +
             FormatBytes(json["memory_bytes"].get<uint64_t>()) + ", ";
    }
    size += json["bits_per_key"].is_null() ? "no keys"
                                           : FormatMeasure(json["bits_per_key"].get<double>(), 4) + " bits per key";
    if (json.contains("counters_per_key") && !json["counters_per_key"].is_null()) {
      size += " (" + FormatMeasure(json["counters_per_key"].get<double>(), 4) + " counters)";
    }
    table.Add("size", size + (json.contains("keys") ? "" : ", many blocks"));
    std::string fpr = FormatPercent(json["predicted_fpr"].get<double>()) + " predicted";
    if (json.contains("content_deviation") && !json["content_deviation"].is_null()) {
      fpr += ", +- " + FormatMeasure(json["content_deviation"].get<double>() * 100, 2) +
             " % of it from one set of keys to another";
    }
    table.Add("FPR", fpr);
    return table.Text();
  }

  // ---- All layouts.

  void RunOverview(const CommonOptions& common) const {
    if (layout_.layout() || layout_.k() || bits_per_key_ || keys_ || memory_) {
      throw CliError(kExitUsage, "--table and --svg show all layouts: no other option goes with them");
    }
    if (svg_) {
      CheckOutput(*svg_, "--svg");
      ByteSink file = ByteSink::File("--svg", *svg_);
      file.Write(OverviewChart().Svg());
      file.Finish();
    }
    if (common.json) return PrintJson(OverviewJson());
    if (table_) PrintText(MarkdownTable());
  }

  static Json OverviewJson() {
    Json rows = Json::array();
    for (const double bits : kTableBits) {
      Json row;
      row["bits_per_key"] = bits;
      for (const Curve& curve : kCurves) {
        const int k = BestK(curve, bits);
        row[curve.name] = {{"k", k}, {"predicted_fpr", Rounded(PredictedFprAt(curve.layout, k, bits))}};
      }
      row["classic"] = {{"k", ClassicHashCount(1.0, bits)}, {"predicted_fpr", Rounded(BestClassic(bits))}};
      rows.push_back(row);
    }
    return Json{{"rows", rows}};
  }

  static std::string MarkdownTable() {
    std::string text = "| bits per key |";
    std::string rule = "|---:|";
    for (const Curve& curve : kCurves) {
      text += std::string(" ") + curve.name + " |";
      rule += "---:|";
    }
    text += " classic |\n" + rule + "---:|\n";
    const auto cell = [](double fpr, int k) { return " " + FormatPercent(fpr) + " (" + std::to_string(k) + ") |"; };
    for (const double bits : kTableBits) {
      text += "| " + FormatReal(bits, 4) + " |";
      for (const Curve& curve : kCurves) {
        const int k = BestK(curve, bits);
        text += cell(PredictedFprAt(curve.layout, k, bits), k);
      }
      text += cell(BestClassic(bits), ClassicHashCount(1.0, bits)) + "\n";
    }
    return text;
  }

  static Chart OverviewChart() {
    Chart chart;
    chart.title = "False-positive rate against bits per key";
    chart.subtitle = "Predicted, many blocks, each layout at its best k (split512, split256: k = 8)";
    chart.footer =
        "Drawn by bloomline fpr --svg. Models: Putze, Sanders, Singler 2007 over exact occupancies; see fpr_model.h.";
    chart.x_label = "bits per key";
    chart.y_label = "false-positive rate (logarithmic)";
    chart.log_y = true;
    const auto add = [&](const char* name, bool dashed, const auto& fpr_at) {
      ChartSeries series;
      series.label = name;
      series.dashed = dashed;
      for (double bits = 2; bits <= 32; bits += 0.25) series.points.push_back({bits, fpr_at(bits), NAN, NAN, {}});
      chart.series.push_back(std::move(series));
    };
    for (const Curve& curve : kCurves) {
      add(curve.name, false, [&](double bits) { return PredictedFprAt(curve.layout, BestK(curve, bits), bits); });
    }
    add("classic (unblocked)", true, BestClassic);
    return chart;
  }

  LayoutOption layout_;
  std::optional<std::string> bits_per_key_, keys_, memory_, svg_;
  bool table_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeFprCommand() { return std::make_unique<FprCommand>(); }

}  // namespace bloomline::cli
