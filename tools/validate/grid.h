// Which cells `bloomline validate` runs: the default grids, and what the options make of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/validate/cell.h"
#include "tools/validate/patterns.h"
#include "tools/validate/subject.h"

namespace bloomline::cli::validate {

struct PatternChoice {
  const Pattern* members = nullptr;
  const Pattern* probes = nullptr;
};

// What the options say; what they leave open is the default grid's.
struct GridOptions {
  std::vector<LayoutSpec> layouts;
  std::vector<int> k;
  std::vector<double> bits_per_key;
  std::vector<uint64_t> keys;
  std::vector<PatternChoice> patterns;
  std::vector<std::string> targets;  // if not empty: exactly these, for every cell
  uint64_t probes = 0;
  uint64_t seed = 1;
  bool quick = false;
};

// Each reads a comma list. Errors: CliError(2) naming the option, the element and what is allowed.
std::vector<std::string> SplitList(std::string_view option, std::string_view text);
std::vector<LayoutSpec> ParseLayouts(std::string_view text);
std::vector<int> ParseHashCounts(std::string_view text);
std::vector<double> ParseBitsPerKey(std::string_view text);
std::vector<uint64_t> ParseKeyCounts(std::string_view text);
std::vector<std::string> ParseTargets(std::string_view text);
// Names and pairs "members:probes". A missing word list: CliError(3) if it is named, left out of "all".
std::vector<PatternChoice> ParsePatterns(std::string_view text, const std::vector<Pattern>& patterns);

// The cells in the order of the output, no two alike. CliError(2) where nothing is left, e.g. no layout has the k.
std::vector<Cell> MakeGrid(const GridOptions& options, const std::vector<Pattern>& patterns);

// Comparisons that are judged: cells on several targets count once, since they must agree exactly.
uint64_t CountComparisons(const std::vector<Cell>& cells);
uint64_t CountProbes(const std::vector<Cell>& cells);

// At most `threads`, fewer where the largest cells together would take more than 1 GiB. CliError(4) where one alone
// does.
unsigned LimitThreads(const std::vector<Cell>& cells, unsigned threads);

}  // namespace bloomline::cli::validate
