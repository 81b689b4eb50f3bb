// The table of `bloomline validate`: worst deviations by pattern and layout, totals by layout and by target, every
// failed cell.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/numbers.h"
#include "tools/validate/report.h"

namespace bloomline::cli::validate {
namespace {

std::string Left(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}
std::string Right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 1, ' ') + text;
}
std::string OneDecimal(double x) {
  if (!std::isfinite(x)) return "inf";
  if (x >= 1000) return FormatReal(x, 2);
  const auto tenths = static_cast<uint64_t>(std::llround(std::abs(x) * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

// The layout's row or column: its name without k.
std::string NameOf(const Cell& cell) { return LayoutName(cell.layout.layout, cell.k); }

template <class Name>
std::vector<std::string> NamesInOrder(const std::vector<Cell>& cells, Name name) {
  std::vector<std::string> names;
  for (const Cell& cell : cells) {
    const std::string text = name(cell);
    if (std::find(names.begin(), names.end(), text) == names.end()) names.push_back(text);
  }
  return names;
}

// The layouts in their order, each with its k ascending.
std::vector<std::string> LayoutsByHashCount(std::vector<Cell> cells) {
  const std::vector<std::string> names = NamesInOrder(cells, NameOf);
  const auto place = [&](const Cell& cell) {
    return std::pair(std::find(names.begin(), names.end(), NameOf(cell)) - names.begin(), cell.k);
  };
  std::stable_sort(cells.begin(), cells.end(), [&](const Cell& a, const Cell& b) { return place(a) < place(b); });
  return NamesInOrder(cells, [](const Cell& cell) { return cell.LayoutText(); });
}

// What a group of cells comes to.
struct Group {
  size_t cells = 0;
  size_t failed = 0;
  size_t not_run = 0;
  uint64_t probes = 0;
  double probes_vs_fill = 0;
  double fill_vs_model = 0;
  double count = 0;

  void Add(const CellResult& result) {
    ++cells;
    not_run += !result.done;
    failed += result.done && !result.Passed();
    probes += result.probes;
    probes_vs_fill = std::max(probes_vs_fill, std::abs(result.probes_vs_fill.sigmas));
    fill_vs_model = std::max(fill_vs_model, std::abs(result.fill_vs_model.sigmas));
    count = std::max(count, std::abs(result.count.sigmas));
  }
  std::string Worst() const {
    if (failed != 0) return "FAIL";
    if (cells == not_run) return "-";
    return OneDecimal(std::max({probes_vs_fill, fill_vs_model, count}));
  }
  std::string Verdict() const {
    if (failed != 0) return FormatCount(failed) + " FAILED";
    return not_run != 0 ? FormatCount(not_run) + " not run" : "pass";
  }
};

template <class Name>
std::map<std::string, Group> Grouped(const std::vector<Cell>& cells, const std::vector<CellResult>& results,
                                     Name name) {
  std::map<std::string, Group> groups;
  for (size_t i = 0; i < cells.size(); ++i) groups[name(cells[i])].Add(results[i]);
  return groups;
}

std::string PatternMatrix(const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
  const auto pattern_of = [](const Cell& cell) { return cell.PatternText(); };
  const std::vector<std::string> patterns = NamesInOrder(cells, pattern_of);
  const std::vector<std::string> layouts = NamesInOrder(cells, NameOf);
  const auto groups =
      Grouped(cells, results, [](const Cell& cell) { return cell.PatternText() + "\n" + NameOf(cell); });
  size_t width = 8;
  for (const std::string& pattern : patterns) width = std::max(width, pattern.size() + 1);
  std::string text = "Largest deviation in sigmas, by pattern and layout\n" + Left("pattern", width);
  for (const std::string& layout : layouts) text += Right(layout, 12);
  text += "\n";
  for (const std::string& pattern : patterns) {
    text += Left(pattern, width);
    for (const std::string& layout : layouts) {
      const auto group = groups.find(pattern + "\n" + layout);
      text += Right(group == groups.end() ? "-" : group->second.Worst(), 12);
    }
    text += "\n";
  }
  return text;
}

template <class Name>
std::string GroupTable(const std::string& title, const std::vector<std::string>& rows, const std::vector<Cell>& cells,
                       const std::vector<CellResult>& results, Name name) {
  const auto groups = Grouped(cells, results, name);
  std::string text = Left(title, 18) + Right("cells", 7) + Right("probes", 17) + Right("measured/fill", 15) +
                     Right("fill/predicted", 16) + Right("count", 7) + "  verdict\n";
  for (const std::string& row : rows) {
    const Group& group = groups.at(row);
    text += Left(row, 18) + Right(FormatCount(group.cells), 7) + Right(FormatCount(group.probes), 17) +
            Right(OneDecimal(group.probes_vs_fill), 15) + Right(OneDecimal(group.fill_vs_model), 16) +
            Right(OneDecimal(group.count), 7) + "  " + group.Verdict() + "\n";
  }
  return text;
}

std::string FailedCell(const Cell& cell, const CellResult& result) {
  std::string text = "FAIL " + cell.Text() + "\n";
  text += "     measured " + FormatReal(result.measured, 5) + " (" + FormatCount(result.false_positives) + " of " +
          FormatCount(result.probes) + "; " + FormatReal(result.interval.low, 5) + " to " +
          FormatReal(result.interval.high, 5) + "), fill-exact " + FormatReal(result.fill_fpr, 5) + ", predicted " +
          FormatReal(cell.predicted, 5) + " ± " + FormatReal(result.content_error, 2) + "\n";
  for (const std::string& problem : result.problems) text += "     " + problem + "\n";
  return text;
}

}  // namespace

Totals CountTotals(const std::vector<CellResult>& results) {
  Totals totals;
  totals.cells = results.size();
  for (const CellResult& result : results) {
    totals.not_run += !result.done;
    totals.passed += result.Passed();
    totals.probes += result.probes;
  }
  totals.failed = totals.cells - totals.not_run - totals.passed;
  return totals;
}

std::string TextReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results) {
  const Totals totals = CountTotals(results);
  std::string text = PatternMatrix(cells, results) + "\n";
  const auto layout_of = [](const Cell& cell) { return cell.LayoutText(); };
  const auto target_of = [](const Cell& cell) { return cell.target; };
  text += GroupTable("layout", LayoutsByHashCount(cells), cells, results, layout_of) + "\n";
  text += GroupTable("target", NamesInOrder(cells, target_of), cells, results, target_of) + "\n";
  size_t shown = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!results[i].done || results[i].Passed()) continue;
    text += FailedCell(cells[i], results[i]);
    ++shown;
  }
  if (shown != 0) text += "\n";
  for (const std::string& pattern : info.skipped) {
    text += "SKIPPED: pattern " + pattern + ", no word list is installed (--words FILE names one)\n";
  }
  text +=
      "Three comparisons per cell: measured FPR with the fill-exact one (binomial), fill-exact with predicted (the\n"
      "content's spread; upper tail widened for its skewness), estimated with inserted count. " +
      FormatCount(info.comparisons) + " of them\n" +
      "(a cell counts once on all its targets, which must agree to the bit); each fails by chance with probability\n" +
      FormatReal(info.share, 2) + " (" + FormatReal(NormalQuantile(info.share / 2), 3) +
      " sigmas), any in the whole run with " + FormatReal(info.family_error, 3) + " at most (Bonferroni).\n";
  text += std::string(totals.failed != 0    ? "FAIL"
                      : totals.not_run != 0 ? "INCOMPLETE"
                                            : "PASS") +
          ": " + FormatCount(totals.passed) + " of " + FormatCount(totals.cells) + " cells passed, " +
          FormatCount(totals.failed) + " failed, " + FormatCount(totals.not_run) + " not run; " +
          FormatCount(totals.probes) + " probes, " + FormatReal(info.seconds, 3) + " s, threads " +
          std::to_string(info.threads) + ", seed " + std::to_string(info.seed) + "\n";
  return text;
}

}  // namespace bloomline::cli::validate
