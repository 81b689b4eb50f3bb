#include "tools/tune/tune_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "tools/numbers.h"
#include "tools/report.h"
#include "tools/tune/layouts.h"

namespace bloomline::cli {
namespace {

constexpr double kMinBuildBits = 1;  // what build's --bits-per-key takes
constexpr double kMaxBuildBits = 1024;

// The shortest text that reads back as the same number.
std::string Shortest(double value) {
  std::array<char, 32> buffer{};
  return std::string(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

// 10'000'000
std::string Literal(uint64_t n) {
  std::string text = FormatCount(n);
  std::replace(text.begin(), text.end(), ',', '\'');
  return text;
}

// Two decimals up to 100 ns: what a measurement is good for.
std::string NsCell(double ns) {
  if (ns >= 100) return FormatMeasure(ns, 3);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", ns);
  return text.data();
}

std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i <= 1 ? row[i] + pad : pad + row[i]);  // words left, numbers right
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string CandidateTable(const TuneQuestion& question, const TuneAnswer& answer, bool all) {
  std::vector<std::vector<std::string>> rows = {{"", "layout", "k", "bits/key", "memory", "FPR", "ns/lookup"}};
  if (question.saved_ns) rows[0].push_back("cost, ns");
  for (size_t i = 0; i < answer.candidates.size(); ++i) {
    const Candidate& candidate = answer.candidates[i];
    if (!all && !candidate.skyline && i != answer.recommended) continue;
    const std::string mark = i == answer.recommended ? ">" : "";
    rows.push_back({mark + (candidate.skyline ? "*" : ""), LayoutName(candidate.choice.layout, candidate.choice.k),
                    std::to_string(candidate.choice.k), FormatMeasure(candidate.bits_per_key, 4),
                    FormatBytes(candidate.memory_bytes), FormatPercent(candidate.predicted_fpr),
                    NsCell(candidate.ns_per_key)});
    if (question.saved_ns) rows.back().push_back(NsCell(candidate.cost_ns));
  }
  return Columns(rows);
}

std::string QuestionText(const TuneQuestion& question) {
  std::string text = FormatCount(question.keys) + (question.keys == 1 ? " key, " : " keys, ");
  text +=
      question.fpr ? "FPR at most " + FormatPercent(*question.fpr) : FormatBytes(*question.memory_bytes) + " of memory";
  if (question.saved_ns) text += ", a true negative saves " + FormatMeasure(*question.saved_ns, 4) + " ns";
  return text;
}

// "word64 k=1, k=2, line512 k=16: cannot reach the FPR at any size; …"
std::string LeftOutText(const std::vector<LeftOut>& left_out) {
  std::string text;
  for (size_t i = 0; i < left_out.size(); ++i) {
    const LeftOut& one = left_out[i];
    const bool same_reason = i > 0 && left_out[i - 1].why == one.why;
    const bool same_layout = same_reason && left_out[i - 1].choice.layout == one.choice.layout;
    text += i == 0 ? "" : same_reason ? ", " : ": " + left_out[i - 1].why + "; ";
    text += same_layout ? "k=" + std::to_string(one.choice.k) : ChoiceText(one.choice);
  }
  return text + ": " + left_out.back().why;
}

}  // namespace

std::string BuildCommandLine(const TuneQuestion& question, const Candidate& candidate) {
  std::string line = "bloomline build --keys KEYS --expected " + std::to_string(question.keys);
  if (question.fpr) {
    line += " --fpr " + Shortest(*question.fpr);
  } else {
    // build rounds up to whole blocks: a hair less than the whole number of blocks stays there.
    const double bits = candidate.bits_per_key * (1 - 1e-12);
    if (bits < kMinBuildBits || bits > kMaxBuildBits) return {};
    line += " --bits-per-key " + FormatReal(bits, 15);
  }
  line += " --layout " + LayoutName(candidate.choice.layout, candidate.choice.k);
  return line + " --k " + std::to_string(candidate.choice.k) + " --out FILTER";
}

std::string ConfigExpression(const TuneQuestion& question, const Candidate& candidate) {
  const std::string layout = std::string("bloomline::Layout::") + LayoutConstant(candidate.choice);
  const std::string k = std::to_string(candidate.choice.k);
  if (question.fpr) {
    return "bloomline::FilterConfig::ForFpr(" + Literal(question.keys) + ", " + Shortest(*question.fpr) + ", " +
           layout + ", " + k + ")";
  }
  return "bloomline::FilterConfig::ForBits(" + Literal(candidate.memory_bytes * 8) + ", " + k + ", " + layout + ")";
}

std::string TuneText(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration, bool all) {
  const Candidate& recommended = answer.candidates[answer.recommended];
  std::string text = QuestionText(question) + "\n\n" + CandidateTable(question, answer, all) + "\n";
  Table table;
  table.Add("marks", std::string("> recommended; * no other is better in ") + (question.fpr ? "memory" : "FPR") +
                         " and time" + (all ? "" : "; --all shows every candidate"));
  table.AddProse("why", answer.reason);
  if (!answer.left_out.empty()) table.AddProse("left out", LeftOutText(answer.left_out));
  table.AddProse("measured", calibration.measured_at + " on " + calibration.machine.cpu + ", target " +
                                 calibration.machine.target +
                                 ": batch lookups, half of them members, CPU time; filters of " +
                                 FormatBytes(calibration.size_bytes.front()) + " to " +
                                 FormatBytes(calibration.size_bytes.back()) + ", interpolated between");
  if (recommended.memory_bytes > calibration.size_bytes.back()) {
    table.AddProse("note", "larger than the largest filter measured, whose time is shown: expect some more");
  }
  const std::string build = BuildCommandLine(question, recommended);
  if (!build.empty()) table.Add("build", build);
  table.Add("C++", ConfigExpression(question, recommended));
  return text + table.Text();
}

Json TuneJson(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration) {
  const auto candidate_json = [&](size_t i) {
    const Candidate& candidate = answer.candidates[i];
    Json json;
    json["layout"] = LayoutName(candidate.choice.layout, candidate.choice.k);
    json["k"] = candidate.choice.k;
    json["zones"] = ZonesOf(candidate.choice.layout);
    json["blocks"] = candidate.blocks;
    json["bits"] = candidate.memory_bytes * 8;
    json["memory_bytes"] = candidate.memory_bytes;
    json["bits_per_key"] = candidate.bits_per_key;
    json["predicted_fpr"] = Number(candidate.predicted_fpr);
    json["ns_per_key"] = candidate.ns_per_key;
    json["cost_ns"] = Number(candidate.cost_ns);
    json["skyline"] = candidate.skyline;
    json["recommended"] = i == answer.recommended;
    return json;
  };
  Json json;
  json["design_keys"] = question.keys;
  json["design_fpr"] = question.fpr ? Json(*question.fpr) : Json(nullptr);
  json["design_memory_bytes"] = question.memory_bytes ? Json(*question.memory_bytes) : Json(nullptr);
  json["saved_ns"] = question.saved_ns ? Json(*question.saved_ns) : Json(nullptr);
  json["target"] = calibration.machine.target;
  json["threads"] = 1;
  json["calibration"] = {{"measured_at", calibration.measured_at}, {"cpu", calibration.machine.cpu},
                         {"caches", calibration.machine.caches},   {"target", calibration.machine.target},
                         {"version", calibration.machine.version}, {"size_bytes", calibration.size_bytes}};
  json["candidates"] = Json::array();
  for (size_t i = 0; i < answer.candidates.size(); ++i) json["candidates"].push_back(candidate_json(i));
  json["left_out"] = Json::array();
  for (const LeftOut& one : answer.left_out) {
    json["left_out"].push_back(
        {{"layout", LayoutName(one.choice.layout, one.choice.k)}, {"k", one.choice.k}, {"why", one.why}});
  }
  json["recommended"] = candidate_json(answer.recommended);
  json["reason"] = answer.reason;
  const std::string build = BuildCommandLine(question, answer.candidates[answer.recommended]);
  json["build"] = build.empty() ? Json(nullptr) : Json(build);
  json["config"] = ConfigExpression(question, answer.candidates[answer.recommended]);
  return json;
}

Chart TuneChart(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration) {
  constexpr double kMiB = 1048576;
  constexpr double kLinearRange = 5;  // a logarithmic axis would have hardly a tick
  constexpr int kDark = 7;            // grey in the palette
  constexpr double kShownRange = 2;   // what lies further out is beaten by far
  const auto point = [&](const Candidate& candidate) {
    ChartPoint p;
    p.x = question.fpr ? static_cast<double>(candidate.memory_bytes) / kMiB : candidate.predicted_fpr;
    p.y = candidate.ns_per_key;
    return p;
  };
  const auto [fastest, slowest] =
      std::minmax_element(answer.candidates.begin(), answer.candidates.end(),
                          [](const Candidate& a, const Candidate& b) { return a.ns_per_key < b.ns_per_key; });
  double widest = 0;  // on the skyline
  for (const Candidate& candidate : answer.candidates) {
    if (candidate.skyline) widest = std::max(widest, point(candidate).x);
  }
  Chart chart;
  chart.title = "Layouts for " + QuestionText(question);
  chart.subtitle = calibration.machine.cpu + ", target " + calibration.machine.target + ", " + calibration.measured_at;
  chart.footer =
      "Each dot is a layout with a k; the line joins those that no other beats. Not drawn: beyond twice its width.";
  chart.log_x = kShownRange * widest > kLinearRange * point(answer.candidates.front()).x;
  chart.log_y = slowest->ns_per_key > kLinearRange * fastest->ns_per_key;
  chart.x_label = question.fpr ? "memory, MiB" : "predicted false-positive rate";
  chart.y_label = "ns per lookup";
  if (chart.log_x) chart.x_label += " (logarithmic)";
  if (chart.log_y) chart.y_label += " (logarithmic)";
  ChartSeries skyline;
  skyline.label = "skyline";
  skyline.dashed = true;
  skyline.colour = kDark;
  for (const Candidate& candidate : answer.candidates) {
    if (candidate.skyline) skyline.points.push_back(point(candidate));
  }
  chart.series.push_back(std::move(skyline));
  int colour = 0;
  for (const LayoutChoice choice : TunedLayouts()) {
    if (IsCounting(choice.layout) != question.removable) continue;
    const std::string name =
        choice.layout == Layout::kSplit512 ? "split512, sector512z8" : LayoutName(choice.layout, 0);
    if (chart.series.back().label == name) continue;
    ChartSeries series;
    series.label = name;
    series.line = false;
    series.markers = true;
    series.colour = colour++;
    for (const Candidate& candidate : answer.candidates) {
      const ChartPoint p = point(candidate);
      if (candidate.choice.layout == choice.layout && p.x <= kShownRange * widest) series.points.push_back(p);
    }
    chart.series.push_back(std::move(series));
  }
  const Candidate& best = answer.candidates[answer.recommended];
  ChartSeries recommended;
  recommended.label = "recommended";
  recommended.line = false;
  recommended.markers = true;
  recommended.colour = kDark;
  recommended.points.push_back(point(best));
  recommended.points.back().label = ChoiceText(best.choice);
  chart.series.push_back(std::move(recommended));
  return chart;
}

}  // namespace bloomline::cli
