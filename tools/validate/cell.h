// A cell of the grid of `bloomline validate`, and what came out of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/validate/patterns.h"
#include "tools/validate/statistics.h"
#include "tools/validate/subject.h"

namespace bloomline::cli::validate {

struct Cell {
  LayoutSpec layout;
  int k = 8;
  double bits_per_key = 10;
  uint64_t keys = 1;      // n, of one content
  uint64_t probes = 1;    // over all contents
  uint64_t contents = 1;  // sets of n keys, one after the other in the filter, that are averaged where n is small
  const Pattern* members = nullptr;
  const Pattern* probe_keys = nullptr;
  std::string target;
  uint64_t seed = 0;  // the same on every target
  uint64_t blocks = 1;
  double predicted = 0;

  bool Mixed() const { return members != probe_keys; }
  std::string LayoutText() const;   // "word64k5", "split512"
  std::string PatternText() const;  // "sequential", "sequential:random"
  std::string Text() const;         // all of it, for messages
};

struct CellResult {
  bool done = false;
  uint64_t probes = 0;
  uint64_t false_positives = 0;
  uint64_t false_negatives = 0;
  uint64_t checksum = 0;  // of the filters' words
  double measured = 0;
  double fill_fpr = 0;        // mean over the contents
  double content_error = 0;   // standard deviation of fill_fpr around the prediction
  double estimated = 0;       // keys, from the mean fill; infinite where every bit is set
  double estimate_error = 0;  // its standard error
  Interval interval;          // of the measured rate, at the comparison's share of the error
  Deviation probes_vs_fill;
  Deviation fill_vs_model;
  Deviation count;
  std::vector<std::string> problems;  // empty: passed

  bool Passed() const { return done && problems.empty(); }
  double WorstSigmas() const;  // the largest of the three, without its sign
};

// Builds the cell's filters, looks up every member and the probes, and judges each of the three comparisons at the
// two-sided error `share`. Throws the library's errors (memory).
CellResult RunCell(const Cell& cell, Break broken, double share);

// Runs the cells in `threads` threads; results in the order of the cells. Ends early at the first false negative.
// `progress` is told the numbers of cells and of probes done, under a lock.
std::vector<CellResult> RunCells(const std::vector<Cell>& cells, Break broken, double share, unsigned threads,
                                 const std::function<void(size_t cells, uint64_t probes)>& progress);

// Cells that differ in their target only must have the same words and the same answers.
void CompareTargets(const std::vector<Cell>& cells, std::vector<CellResult>& results);

}  // namespace bloomline::cli::validate
