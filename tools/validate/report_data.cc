// CSV, JSON and the chart of `bloomline validate`.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bloomline/fpr_model.h"
#include "tools/chart.h"
#include "tools/numbers.h"
#include "tools/validate/report.h"

namespace bloomline::cli::validate {
namespace {

const char* Verdict(const CellResult& result) { return !result.done ? "not run" : result.Passed() ? "pass" : "fail"; }

std::string Hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// One cell as the keys of JSON and the columns of CSV.
Json CellJson(const Cell& cell, const CellResult& result) {
  Json json;
  json["layout"] = LayoutName(cell.layout.layout, cell.k);
  json["k"] = cell.k;
  json["bits_per_key"] = cell.bits_per_key;
  json["keys"] = cell.keys;
  json["contents"] = cell.contents;
  json["pattern"] = cell.members->name;
  json["probe_pattern"] = cell.probe_keys->name;
  json["target"] = cell.target;
  json["seed"] = cell.seed;
  json["blocks"] = cell.blocks;
  json["predicted_fpr"] = cell.predicted;
  const bool done = result.done;
  const auto number = [done](double x) { return done ? Number(x) : Json(nullptr); };
  const auto sigmas = [done](const Deviation& d) { return done && d.judged ? Number(d.sigmas) : Json(nullptr); };
  const auto p = [done](const Deviation& d) { return done && d.judged ? Json(d.p) : Json(nullptr); };
  json["fill_fpr"] = number(result.fill_fpr);
  json["content_error"] = number(result.content_error);
  json["probes"] = result.probes;
  json["false_positives"] = result.false_positives;
  json["measured_fpr"] = number(result.measured);
  json["low"] = number(result.interval.low);
  json["high"] = number(result.interval.high);
  json["estimated"] = number(result.estimated);
  json["estimate_error"] = number(result.estimate_error);
  json["measured_sigmas"] = sigmas(result.probes_vs_fill);
  json["fill_sigmas"] = sigmas(result.fill_vs_model);
  json["count_sigmas"] = sigmas(result.count);
  json["measured_p"] = p(result.probes_vs_fill);
  json["fill_p"] = p(result.fill_vs_model);
  json["count_p"] = p(result.count);
  json["false_negatives"] = result.false_negatives;
  json["checksum"] = Hex(result.checksum);
  json["verdict"] = Verdict(result);
  json["problems"] = result.problems;
  return json;
}

std::string CsvField(const Json& value) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_array()) {
    for (const Json& element : value) text += (text.empty() ? "" : "; ") + element.get<std::string>();
  } else if (!value.is_null()) {
    text = value.dump();
  }
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

Json JsonReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
  const Totals totals = CountTotals(results);
  Json summary;
  summary["verdict"] = totals.failed != 0 ? "fail" : totals.not_run != 0 ? "incomplete" : "pass";
  summary["cells"] = totals.cells;
  summary["passed"] = totals.passed;
  summary["failed"] = totals.failed;
  summary["not_run"] = totals.not_run;
  summary["probes"] = totals.probes;
  summary["comparisons"] = info.comparisons;
  summary["family_error"] = info.family_error;
  summary["comparison_error"] = info.share;
  summary["comparison_sigmas"] = NormalQuantile(info.share / 2);
  summary["skipped_patterns"] = info.skipped;
  summary["quick"] = info.quick;
  summary["seed"] = info.seed;
  summary["threads"] = info.threads;
  summary["seconds"] = info.seconds;
  Json json;
  json["summary"] = std::move(summary);
  json["cells"] = Json::array();
  for (size_t i = 0; i < cells.size(); ++i) json["cells"].push_back(CellJson(cells[i], results[i]));
  return json;
}

void WriteCsv(ByteSink& sink, const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const Json json = CellJson(cells[i], results[i]);
    std::string header;
    std::string line;
    for (const auto& [key, value] : json.items()) {
      header += (header.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + CsvField(value);
    }
    if (i == 0) sink.Write(header + "\n");
    sink.Write(line + "\n");
  }
}

std::string SvgReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
  // The pattern "random" where it is there; one target, whose answers are those of all; per layout and bits per key the
  // cell of the lowest predicted FPR, of the most keys.
  const bool random =
      std::any_of(cells.begin(), cells.end(), [](const Cell& c) { return c.PatternText() == "random"; });
  const std::string pattern = random ? "random" : cells.front().PatternText();
  const std::string target = cells.front().target;
  uint64_t most_keys = 0;
  for (const Cell& cell : cells) {
    if (cell.PatternText() == pattern) most_keys = std::max(most_keys, std::min<uint64_t>(cell.keys, 1'000'000));
  }
  std::vector<std::string> names;
  std::map<std::string, std::set<int>> hash_counts;
  std::map<std::string, std::map<double, size_t>> points;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (!results[i].done || cell.PatternText() != pattern || cell.target != target || cell.keys != most_keys) continue;
    const std::string name = LayoutName(cell.layout.layout, cell.k);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    hash_counts[name].insert(cell.k);
    const auto [entry, is_new] = points[name].try_emplace(cell.bits_per_key, i);
    if (!is_new && cell.predicted < cells[entry->second].predicted) entry->second = i;
  }

  Chart chart;
  chart.title = "False-positive rate: measured points on predicted curves";
  chart.subtitle = FormatCount(most_keys) + " keys, pattern " + pattern + ", target " + target + ", seed " +
                   std::to_string(info.seed) + "; each layout with the best k that was run";
  chart.footer = "Bars: exact interval of the measured rate that misses the true one with probability " +
                 FormatReal(info.share, 2) + "; drawn by bloomline validate --svg";
  chart.x_label = "bits per key";
  chart.y_label = "false-positive rate";
  chart.log_y = true;
  for (size_t n = 0; n < names.size(); ++n) {
    const std::map<double, size_t>& measured = points[names[n]];
    ChartSeries curve;
    curve.label = names[n];
    curve.colour = static_cast<int>(n);
    ChartSeries dots;
    dots.line = false;
    dots.markers = true;
    dots.colour = curve.colour;
    const Layout layout = cells[measured.begin()->second].layout.layout;
    constexpr double kStep = 0.25;
    const double low = measured.begin()->first;
    const double high = measured.rbegin()->first;
    const double step = std::max(kStep, (high - low) / 400);
    for (double load = std::max(1.0, low - 1); load <= high + 1; load += step) {
      double best = 1;
      for (const int k : hash_counts[names[n]]) best = std::min(best, PredictedFprAt(layout, k, load));
      curve.points.push_back({.x = load, .y = best, .label = {}});
    }
    for (const auto& [load, i] : measured) {
      const CellResult& result = results[i];
      dots.points.push_back(
          {.x = load, .y = result.measured, .low = result.interval.low, .high = result.interval.high, .label = {}});
    }
    chart.series.push_back(std::move(curve));
    chart.series.push_back(std::move(dots));
  }
  return chart.Svg();
}

}  // namespace bloomline::cli::validate
