// A calibration: what a lookup costs on a machine, for every layout and k at a few filter sizes; and the file it is
// kept in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bloomline/layout.h"
#include "tools/output.h"
#include "tools/tune/machine.h"

namespace bloomline::cli {

struct CalibrationRow {
  LayoutChoice choice;
  std::vector<double> ns_per_key;  // batch lookup, CPU time; one value per size
};

struct Calibration {
  MachineIdentity machine;
  std::string measured_at;           // UTC, "2026-01-31T12:00:00Z"
  std::vector<uint64_t> size_bytes;  // ascending
  std::vector<CalibrationRow> rows;

  // Linear over log2(size) between the sizes measured, the nearest size's value outside. None: not measured.
  std::optional<double> NsPerKey(LayoutChoice choice, uint64_t memory_bytes) const;
};

// Measures this machine: half of the lookups are of members; the minimum over repetitions. Takes a few seconds and up
// to 256 MiB of memory, less where that is scarce. `progress` hears the fraction done.
Calibration Calibrate(const std::function<void(double)>& progress);

Json CalibrationJson(const Calibration& calibration);
// Throws std::runtime_error that says what is wrong: no JSON, another format version, values that make no sense.
Calibration CalibrationFromJson(const std::string& text);

// Where a calibration comes from.
struct CalibrationOptions {
  std::string file;          // named by the user; empty: the user's cache
  bool recalibrate = false;  // measure even where there is one
};

// The calibration kept, or a new one, which is then kept.
// The cache (${XDG_CACHE_HOME:-$HOME/.cache}/bloomline/tune-<target>.json) must be of this machine, target and library;
// one that is not, or is damaged, is replaced, with a line on stderr. A cache that cannot be written: a line on stderr.
// A file named by the user is used whichever machine it is from; CliError(3) where it is damaged or cannot be written.
Calibration GetCalibration(const CalibrationOptions& options);

}  // namespace bloomline::cli
