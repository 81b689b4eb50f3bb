// What `bloomline validate` prints: the table, CSV, JSON, the chart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/output.h"
#include "tools/validate/cell.h"

namespace bloomline::cli::validate {

// A run as a whole.
struct RunInfo {
  uint64_t seed = 0;
  unsigned threads = 1;
  double seconds = 0;
  double family_error = 0;   // the chance that any comparison of a run without faults fails
  uint64_t comparisons = 0;  // among which it is divided
  double share = 0;          // the two-sided error of one comparison
  bool quick = false;
  Break broken = Break::kNone;
  std::vector<std::string> skipped;  // patterns that could not be run
};

struct Totals {
  size_t cells = 0;
  size_t passed = 0;
  size_t failed = 0;
  size_t not_run = 0;  // after a false negative
  uint64_t probes = 0;
};
Totals CountTotals(const std::vector<CellResult>& results);

std::string TextReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results);
Json JsonReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results);
void WriteCsv(ByteSink& sink, const std::vector<Cell>& cells, const std::vector<CellResult>& results);
// FPR against bits per key of the cells of one pattern ("random" where it was run) and one target.
std::string SvgReport(const RunInfo& info, const std::vector<Cell>& cells, const std::vector<CellResult>& results);

}  // namespace bloomline::cli::validate
