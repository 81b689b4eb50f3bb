// The choice: every layout with every k, sized for the caller's keys, and which of them is worth taking.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bloomline/layout.h"
#include "tools/tune/calibration.h"

namespace bloomline::cli {

struct TuneQuestion {
  uint64_t keys = 0;  // 1 … 2^40
  // One of the two: the FPR to meet, or the memory that there is.
  std::optional<double> fpr;
  std::optional<uint64_t> memory_bytes;
  // What a true negative saves the caller, ns.
  std::optional<double> saved_ns;
  bool removable = false;  // layouts of counters, from which keys can be removed, in place of layouts of bits
};

struct Candidate {
  LayoutChoice choice;
  uint64_t blocks = 0;
  uint64_t memory_bytes = 0;
  double bits_per_key = 0;
  double predicted_fpr = 0;  // at the question's keys
  double ns_per_key = 0;     // batch lookup at this size
  double cost_ns = NAN;      // ns_per_key + predicted_fpr · saved_ns; NaN without saved_ns
  bool skyline = false;      // no other is at least as good in both respects and better in one
};

struct LeftOut {
  LayoutChoice choice;
  std::string why;  // "cannot reach the FPR"
};

struct TuneAnswer {
  std::vector<Candidate> candidates;  // ascending in memory (--fpr) or FPR (--memory), then in time
  std::vector<LeftOut> left_out;
  size_t recommended = 0;  // index into candidates
  std::string reason;      // one sentence with the figures
};

// The two respects of the skyline are time and memory where the FPR is given, time and FPR where memory is.
double Space(const TuneQuestion& question, const Candidate& candidate);

// CliError(2) where the library refuses the question: an FPR that no filter reaches.
void CheckQuestion(const TuneQuestion& question);

// For a question that was checked. CliError(2) where no candidate is left.
TuneAnswer Answer(const TuneQuestion& question, const Calibration& calibration);

}  // namespace bloomline::cli
