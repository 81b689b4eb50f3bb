// What `bloomline tune` prints and draws.
#pragma once

#include <string>

#include "tools/chart.h"
#include "tools/output.h"
#include "tools/tune/calibration.h"
#include "tools/tune/candidates.h"

namespace bloomline::cli {

// `all`: every candidate, not the skyline and the recommendation alone.
std::string TuneText(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration, bool all);

// Always every candidate.
Json TuneJson(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration);

// Time against memory (--fpr) or FPR (--memory), both logarithmic.
Chart TuneChart(const TuneQuestion& question, const TuneAnswer& answer, const Calibration& calibration);

// The options of `bloomline build` that make the candidate; empty where build cannot (bits per key outside its range).
std::string BuildCommandLine(const TuneQuestion& question, const Candidate& candidate);
// The C++ expression that makes its FilterConfig.
std::string ConfigExpression(const TuneQuestion& question, const Candidate& candidate);

}  // namespace bloomline::cli
