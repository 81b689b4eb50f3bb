#include "tools/validate/grid.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "bloomline/target.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli::validate {
namespace {

constexpr uint64_t kMemoryLimit = uint64_t{1} << 30;
// A mean over this many keys is about normal, and so are the count and the fill-exact rate of smaller filters that hold
// as many together.
constexpr uint64_t kContentKeys = 100'000;
constexpr uint64_t kMostContents = 10'000;
constexpr double kRare = 1e-4;  // below this predicted FPR there are ten times as many probes

enum class HashCounts : uint8_t {
  kDefault,     // the layout's own
  kBest,        // the best for the bits per key, and the layout's own
  kNeighbours,  // those, and the next below and above the best
};

// A part of a default grid: all combinations of its axes.
struct Part {
  HashCounts hash_counts = HashCounts::kDefault;
  std::vector<double> bits_per_key;
  std::vector<uint64_t> keys;
  std::vector<PatternChoice> patterns;
  std::vector<std::string> targets;
  uint64_t probes = 0;
  uint64_t rare_probes = 0;
};

std::vector<Part> DefaultParts(bool quick, const std::vector<Pattern>& patterns) {
  const std::vector<double> loads = {6, 8, 10, 12, 16, 20, 24};
  const std::vector<PatternChoice> random = ParsePatterns("random", patterns);
  const std::vector<PatternChoice> every = ParsePatterns("all", patterns);
  const std::string chosen = Must(TryChosenTarget());
  const std::vector<std::string> best = {chosen};
  std::vector<std::string> all = {chosen};
  for (const std::string& target : SupportedTargets()) {
    if (target != chosen) all.push_back(target);
  }
  if (quick) {
    return {
        {HashCounts::kBest, loads, {1'000'000}, random, best, 5'000'000, 10'000'000},
        {HashCounts::kDefault, {10}, {200'000}, every, best, 2'000'000, 10'000'000},
        {HashCounts::kDefault, {10}, {1, 100, 10'001}, random, best, 1'000'000, 10'000'000},
        {HashCounts::kDefault,
         {10},
         {200'000},
         ParsePatterns("random,sequential,ipv4,decimal", patterns),
         all,
         2'000'000,
         10'000'000},
    };
  }
  return {
      {HashCounts::kNeighbours, loads, {1'000'000}, random, all, 10'000'000, 100'000'000},
      {HashCounts::kDefault, {10, 20}, {1'000'000}, every, all, 10'000'000, 100'000'000},
      {HashCounts::kBest, {10, 16}, {100'003, 10'000'000}, random, all, 10'000'000, 100'000'000},
      {HashCounts::kBest, {8, 12, 16}, {1, 2, 7, 100, 500, 10'001}, random, best, 10'000'000, 100'000'000},
  };
}

int Neighbour(Layout layout, int k, int step) {
  do k += step;
  while (k >= kMinHashes && k <= kMaxHashes && !IsValidHashCount(layout, k));
  return k;
}

std::vector<int> HashCountsOf(const LayoutSpec& spec, const Part& part, const std::vector<int>& wanted, double load) {
  std::vector<int> counts;
  const auto add = [&](int k) {
    const bool known = std::find(counts.begin(), counts.end(), k) != counts.end();
    if (IsValidHashCount(spec.layout, k) && !known) counts.push_back(k);
  };
  if (!wanted.empty()) {
    for (const int k : wanted) {
      if (spec.fixed_k == 0 || spec.fixed_k == k) add(k);
    }
  } else if (spec.fixed_k != 0) {
    add(spec.fixed_k);
  } else {
    add(spec.default_k);
    const int best = BestHashCount(spec.layout, load);
    if (part.hash_counts != HashCounts::kDefault) add(best);
    if (part.hash_counts == HashCounts::kNeighbours) {
      add(Neighbour(spec.layout, best, -1));
      add(Neighbour(spec.layout, best, 1));
    }
    std::sort(counts.begin(), counts.end());
  }
  return counts;
}

// Cuts keys, contents and probes to what the patterns have.
void FitPatterns(Cell& cell) {
  const uint64_t limit = std::min(cell.members->limit, cell.probe_keys->limit);
  cell.keys = std::min(cell.keys, limit / 2);
  cell.contents = std::clamp<uint64_t>(kContentKeys / cell.keys, 1, std::min(kMostContents, cell.probes));
  cell.contents = std::clamp<uint64_t>(limit / 2 / cell.keys, 1, cell.contents);
  cell.probes = std::min(cell.probes, limit - cell.contents * cell.keys);
}

class GridMaker {
 public:
  explicit GridMaker(const GridOptions& options) : options_(options) {}

  void AddPart(const Part& part) {
    const std::vector<LayoutSpec>& layouts = options_.layouts.empty() ? Layouts() : options_.layouts;
    const std::vector<double>& loads = options_.bits_per_key.empty() ? part.bits_per_key : options_.bits_per_key;
    const std::vector<uint64_t>& keys = options_.keys.empty() ? part.keys : options_.keys;
    const std::vector<PatternChoice>& patterns = options_.patterns.empty() ? part.patterns : options_.patterns;
    for (const LayoutSpec& spec : layouts) {
      for (const double load : loads) {
        for (const int k : HashCountsOf(spec, part, options_.k, load)) {
          for (const uint64_t n : keys) {
            for (const PatternChoice& pattern : patterns) AddCell(part, spec, load, k, n, pattern);
          }
        }
      }
    }
  }

  std::vector<Cell> Take() { return std::move(cells_); }

 private:
  void AddCell(const Part& part, const LayoutSpec& spec, double load, int k, uint64_t n, const PatternChoice& pattern) {
    Cell cell;
    cell.layout = spec;
    cell.k = k;
    cell.bits_per_key = load;
    cell.keys = std::min({n, pattern.members->limit / 2, pattern.probes->limit / 2});
    cell.members = pattern.members;
    cell.probe_keys = pattern.probes;
    cell.blocks = BlocksFor(spec.layout, k, cell.keys, load);
    cell.predicted = PredictedFpr(spec.layout, k, cell.blocks, cell.keys);
    cell.probes = options_.probes != 0 ? options_.probes : cell.predicted < kRare ? part.rare_probes : part.probes;
    FitPatterns(cell);
    const std::string name =
        cell.LayoutText() + "/" + FormatReal(load, 17) + "/" + std::to_string(cell.keys) + "/" + cell.PatternText();
    cell.seed = HashBytes(name, options_.seed);
    for (const std::string& target : options_.targets.empty() ? part.targets : options_.targets) {
      if (!known_.insert(name + "/" + target).second) continue;
      cell.target = target;
      cells_.push_back(cell);
    }
  }

  const GridOptions& options_;
  std::vector<Cell> cells_;
  std::set<std::string> known_;
};

uint64_t MemoryOf(const Cell& cell) {
  const uint64_t filter = cell.blocks * static_cast<uint64_t>(BlockBits(cell.layout.layout)) / 8;
  return filter + (cell.Mixed() ? 8 * cell.keys : 0) + (2 << 20);
}

}  // namespace

std::vector<Cell> MakeGrid(const GridOptions& options, const std::vector<Pattern>& patterns) {
  GridMaker maker(options);
  for (const Part& part : DefaultParts(options.quick, patterns)) maker.AddPart(part);
  std::vector<Cell> cells = maker.Take();
  if (cells.empty()) {
    std::string list;
    for (const int k : options.k) list += (list.empty() ? "" : ",") + std::to_string(k);
    ThrowUsage("--k", list, "none of the layouts has such a k");
  }
  return cells;
}

uint64_t CountComparisons(const std::vector<Cell>& cells) {
  std::set<std::string> distinct;
  for (const Cell& cell : cells) {
    distinct.insert(cell.LayoutText() + "/" + FormatReal(cell.bits_per_key, 17) + "/" + std::to_string(cell.keys) +
                    "/" + cell.PatternText());
  }
  return 3 * static_cast<uint64_t>(distinct.size());
}

uint64_t CountProbes(const std::vector<Cell>& cells) {
  uint64_t probes = 0;
  for (const Cell& cell : cells) probes += cell.probes;
  return probes;
}

unsigned LimitThreads(const std::vector<Cell>& cells, unsigned threads) {
  uint64_t largest = 1;
  const Cell* where = nullptr;
  for (const Cell& cell : cells) {
    if (MemoryOf(cell) <= largest) continue;
    largest = MemoryOf(cell);
    where = &cell;
  }
  if (largest > kMemoryLimit) {
    throw CliError(kExitResources, "--keys " + FormatCount(where->keys) + ": at " + FormatReal(where->bits_per_key, 6) +
                                       " bits per key a filter takes " + FormatBytes(largest) +
                                       ", validate uses at most 1 GiB");
  }
  return static_cast<unsigned>(std::clamp<uint64_t>(kMemoryLimit / largest, 1, threads));
}

}  // namespace bloomline::cli::validate
