#include "tools/validate/cell.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "tools/numbers.h"

namespace bloomline::cli::validate {
namespace {

constexpr size_t kChunk = 8192;  // keys per batch: their strings and bitmap stay in the L2 cache

uint64_t Checksum(std::span<const uint64_t> words, uint64_t sum) {
  for (const uint64_t word : words) sum = std::rotl((sum ^ word) * 0xd1b54a32d192ed03, 29);
  return sum;
}

// Calls `use(chunk)` for keys first … first + count of a pattern.
template <class Use>
void ForKeys(const Pattern& pattern, uint64_t first, uint64_t count, KeyChunk& chunk, Use use) {
  for (uint64_t i = 0; i < count; i += kChunk) {
    pattern.fill(first + i, static_cast<size_t>(std::min<uint64_t>(kChunk, count - i)), chunk);
    use();
  }
}

// One cell at work.
class Runner {
 public:
  Runner(const Cell& cell, Break broken) : cell_(cell), broken_(broken), bitmap_(kChunk / 64) {}

  CellResult Run() {
    CellResult result;
    const uint64_t probes = std::max<uint64_t>(1, cell_.probes / cell_.contents);
    const std::unique_ptr<Subject> subject = MakeSubject();
    double fill = 0;
    for (uint64_t content = 0; content < cell_.contents; ++content) {
      const uint64_t first = content * (cell_.keys + probes);
      if (content != 0) subject->Clear();
      ForKeys(*cell_.members, first, cell_.keys, chunk_, [&] { subject->Insert(chunk_); });
      result.checksum = Checksum(subject->Words(), result.checksum);
      uint64_t found = 0;
      ForKeys(*cell_.members, first, cell_.keys, chunk_, [&] { found += CountMaybe(*subject); });
      result.false_negatives += cell_.keys - found;
      result.fill_fpr += subject->FillFpr();
      fill += subject->FillFraction();
      if (result.false_negatives != 0) break;
      if (cell_.Mixed()) CollectMembers(first);
      ForKeys(*cell_.probe_keys, first + cell_.keys, probes, chunk_, [&] {
        const uint64_t maybe = CountMaybe(*subject);
        const uint64_t members = cell_.Mixed() && maybe != 0 ? CountMembers() : 0;
        result.probes += chunk_.size() - members;
        result.false_positives += maybe - members;
      });
    }
    const auto contents = static_cast<double>(cell_.contents);
    result.fill_fpr /= contents;
    result.estimated = EstimateCount(cell_.layout.layout, cell_.k, cell_.blocks, fill / contents);
    result.done = true;
    return result;
  }

 private:
  std::unique_ptr<Subject> MakeSubject() const {
    SubjectOptions options;
    options.layout = cell_.layout.layout;
    options.k = cell_.k;
    options.keys = cell_.keys;
    options.bits_per_key = cell_.bits_per_key;
    options.seed = cell_.seed;
    options.target = cell_.target;
    options.broken = broken_;
    return cell_.layout.make(options);
  }

  uint64_t CountMaybe(Subject& subject) {
    const size_t words = (chunk_.size() + 63) / 64;
    subject.Lookup(chunk_, {bitmap_.data(), words});
    uint64_t count = 0;
    for (size_t i = 0; i < words; ++i) count += static_cast<uint64_t>(std::popcount(bitmap_[i]));
    return count;
  }

  // Keys of two patterns may be the same. A member is always found, so only what was found is looked at.
  void CollectMembers(uint64_t first) {
    members_.clear();
    members_.reserve(static_cast<size_t>(cell_.keys));
    ForKeys(*cell_.members, first, cell_.keys, chunk_, [&] {
      for (size_t i = 0; i < chunk_.size(); ++i) members_.push_back(chunk_.Fingerprint(i));
    });
    std::sort(members_.begin(), members_.end());
  }
  uint64_t CountMembers() const {
    uint64_t count = 0;
    for (size_t i = 0; i < chunk_.size(); ++i) {
      if ((bitmap_[i / 64] >> (i % 64) & 1) == 0) continue;
      count += std::binary_search(members_.begin(), members_.end(), chunk_.Fingerprint(i));
    }
    return count;
  }

  const Cell& cell_;
  Break broken_;
  KeyChunk chunk_;
  std::vector<uint64_t> bitmap_;
  std::vector<uint64_t> members_;  // sorted fingerprints
};

std::string Sigmas(double sigmas) { return FormatReal(sigmas, 3) + " sigmas"; }

void Judge(const Cell& cell, double share, CellResult& result) {
  const auto trials = static_cast<double>(result.probes);
  const auto contents = static_cast<double>(cell.contents);
  const auto keys = static_cast<double>(cell.keys);
  result.measured = result.probes == 0 ? 0 : static_cast<double>(result.false_positives) / trials;
  result.interval = ExactInterval(result.false_positives, result.probes, share);
  // Every content has a rate of its own; a sum over unequal rates scatters less than over their mean (Hoeffding 1956),
  // so that the binomial law errs on the side of passing.
  result.probes_vs_fill = CompareBinomial(result.false_positives, result.probes, std::min(1.0, result.fill_fpr));

  // The fill-exact rate is a mean over blocks, whose own rates are about log-normal: of relative deviation c, skewness
  // c³ + 3c. A mean over B blocks has c / √B and the skewness / √B.
  const double one = ContentRelativeDeviation(cell.layout.layout, cell.k, cell.blocks, cell.keys);
  const double spread = one / std::sqrt(contents);
  const double block_spread = one * std::sqrt(static_cast<double>(cell.blocks));
  const double skewness = (block_spread * block_spread + 3) * spread;
  result.content_error = spread * cell.predicted;
  result.fill_vs_model = CompareNormal(result.fill_fpr, cell.predicted, result.content_error, skewness);

  result.estimate_error = EstimateCountError(cell.layout.layout, cell.k, cell.blocks, keys) / std::sqrt(contents);
  result.count = CompareNormal(result.estimated, keys, result.estimate_error, 0);

  if (result.false_negatives != 0) {
    result.problems.push_back("FALSE NEGATIVES: " + FormatCount(result.false_negatives) + " of " +
                              FormatCount(cell.keys) + " members not found");
  }
  const auto check = [&](const Deviation& deviation, const std::string& text) {
    if (deviation.judged && deviation.p < share) result.problems.push_back(text + " by " + Sigmas(deviation.sigmas));
  };
  check(result.probes_vs_fill, "measured FPR differs from the fill-exact one");
  check(result.fill_vs_model, "fill-exact FPR differs from the predicted one");
  check(result.count,
        "estimated count " + FormatReal(result.estimated, 8) + " differs from " + FormatCount(cell.keys) + " keys");
}

}  // namespace

std::string Cell::LayoutText() const { return LayoutNameWithK(layout.layout, k); }

std::string Cell::PatternText() const { return Mixed() ? members->name + ":" + probe_keys->name : members->name; }

std::string Cell::Text() const {
  return LayoutText() + ", " + FormatReal(bits_per_key, 6) + " bits per key, " + FormatCount(keys) + " keys, pattern " +
         PatternText() + ", target " + target + ", filter seed " + std::to_string(seed);
}

double CellResult::WorstSigmas() const {
  return std::max({std::abs(probes_vs_fill.sigmas), std::abs(fill_vs_model.sigmas), std::abs(count.sigmas)});
}

CellResult RunCell(const Cell& cell, Break broken, double share) {
  CellResult result = Runner(cell, broken).Run();
  Judge(cell, share, result);
  return result;
}

std::vector<CellResult> RunCells(const std::vector<Cell>& cells, Break broken, double share, unsigned threads,
                                 const std::function<void(size_t cells, uint64_t probes)>& progress) {
  std::vector<CellResult> results(cells.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards what follows
  size_t done = 0;
  uint64_t probes = 0;
  std::exception_ptr failure;

  const auto work = [&] {
    for (;;) {
      const size_t i = next.fetch_add(1);
      if (i >= cells.size() || stop) return;
      try {
        results[i] = RunCell(cells[i], broken, share);
        if (results[i].false_negatives != 0) stop = true;
        const std::lock_guard lock(mutex);
        progress(++done, probes += results[i].probes);
      } catch (...) {
        stop = true;
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < threads; ++i) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return results;
}

void CompareTargets(const std::vector<Cell>& cells, std::vector<CellResult>& results) {
  using Key = std::tuple<std::string, double, uint64_t, uint64_t, std::string>;
  std::map<Key, size_t> first;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!results[i].done || results[i].false_negatives != 0) continue;
    const Cell& cell = cells[i];
    const Key key{cell.LayoutText(), cell.bits_per_key, cell.keys, cell.probes, cell.PatternText()};
    const auto [entry, is_first] = first.try_emplace(key, i);
    if (is_first) continue;
    const CellResult& other = results[entry->second];
    const std::string& name = cells[entry->second].target;
    if (results[i].checksum != other.checksum) {
      results[i].problems.push_back("the filter's bits differ from those of target " + name);
    }
    if (results[i].false_positives != other.false_positives) {
      results[i].problems.push_back("the answers differ from those of target " + name + ": " +
                                    FormatCount(results[i].false_positives) + " and " +
                                    FormatCount(other.false_positives) + " false positives");
    }
  }
}

}  // namespace bloomline::cli::validate
