#include "tools/tune/candidates.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "bloomline/config.h"
#include "bloomline/fpr_model.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"
#include "tools/tune/layouts.h"

namespace bloomline::cli {
namespace {

uint64_t BlockBytes(Layout layout) { return static_cast<uint64_t>(BlockBits(layout)) / 8; }

uint64_t MaxBlocks(Layout layout) { return layout == Layout::kSplit256 ? uint64_t{1} << 26 : (uint64_t{1} << 32) - 1; }

std::string Ns(double ns, int digits = 3) { return FormatMeasure(ns, digits) + " ns"; }

// Adds the candidate for one layout, or why there is none.
void AddCandidate(const TuneQuestion& question, const Calibration& calibration, LayoutChoice choice,
                  TuneAnswer& answer) {
  const uint64_t block_bytes = BlockBytes(choice.layout);
  const auto leave_out = [&](std::string why) { answer.left_out.push_back({choice, std::move(why)}); };
  Candidate candidate;
  candidate.choice = choice;
  if (question.fpr) {
    candidate.blocks = BlocksForFpr(choice.layout, choice.k, question.keys, *question.fpr);
    if (candidate.blocks == 0) return leave_out("cannot reach the FPR at any size");
  } else {
    candidate.blocks = *question.memory_bytes / block_bytes;
    if (candidate.blocks == 0) return leave_out("needs at least " + FormatBytes(block_bytes));
    // 2^32 lines, one more than there may be, are the round number that a caller writes.
    if (choice.layout != Layout::kSplit256) candidate.blocks = std::min(candidate.blocks, MaxBlocks(choice.layout));
    if (candidate.blocks > MaxBlocks(choice.layout)) {
      return leave_out("has at most " + FormatBytes(MaxBlocks(choice.layout) * block_bytes));
    }
  }
  candidate.memory_bytes = candidate.blocks * block_bytes;
  const std::optional<double> ns = calibration.NsPerKey(choice, candidate.memory_bytes);
  if (!ns) return leave_out("not measured in this calibration");
  candidate.ns_per_key = *ns;
  candidate.bits_per_key = static_cast<double>(candidate.memory_bytes) * 8 / static_cast<double>(question.keys);
  candidate.predicted_fpr = PredictedFpr(choice.layout, choice.k, candidate.blocks, question.keys);
  if (question.saved_ns) candidate.cost_ns = candidate.ns_per_key + candidate.predicted_fpr * *question.saved_ns;
  answer.candidates.push_back(candidate);
}

// Expects the candidates in their order: whoever is not faster than all before it is beaten by one of them.
void MarkSkyline(const TuneQuestion& question, std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (Candidate& candidate : candidates) {
    const bool equal = best != nullptr && candidate.ns_per_key == best->ns_per_key &&
                       Space(question, candidate) == Space(question, *best);
    candidate.skyline = best == nullptr || candidate.ns_per_key < best->ns_per_key || equal;
    if (candidate.skyline) best = &candidate;
  }
}

// What the library would choose by itself. None where it has no answer: bits per key out of its range.
std::optional<FilterConfig> LibraryChoice(const TuneQuestion& question) {
  if (question.removable) return std::nullopt;  // between counters the library leaves the choice to the caller
  if (question.fpr) {
    return Must(FilterConfig::TryForFpr(question.keys, *question.fpr), "--fpr " + FormatReal(*question.fpr, 6));
  }
  const double bits = static_cast<double>(*question.memory_bytes) * 8 / static_cast<double>(question.keys);
  Result<FilterConfig> config = FilterConfig::TryForBitsPerKey(question.keys, bits);
  if (!config.ok()) return std::nullopt;
  return *std::move(config);
}

// "11.9 MiB and 1.52 ns" or "FPR 1.05 % and 1.52 ns".
std::string Figures(const TuneQuestion& question, const Candidate& candidate) {
  return (question.fpr ? FormatBytes(candidate.memory_bytes) : "FPR " + FormatPercent(candidate.predicted_fpr)) +
         " and " + Ns(candidate.ns_per_key);
}

void RecommendByCost(const TuneQuestion& question, TuneAnswer& answer) {
  std::vector<size_t> order(answer.candidates.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Equal costs: the smaller one, which comes first.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return answer.candidates[a].cost_ns < answer.candidates[b].cost_ns; });
  answer.recommended = order.front();
  const Candidate& best = answer.candidates[order.front()];
  answer.reason = ChoiceText(best.choice) + " costs least per lookup: " + Ns(best.ns_per_key) + " + " +
                  FormatPercent(best.predicted_fpr) + " x " + Ns(*question.saved_ns) + " = " + Ns(best.cost_ns, 4);
  if (order.size() > 1) {
    const Candidate& next = answer.candidates[order[1]];
    answer.reason += "; the next, " + ChoiceText(next.choice) + ", costs " + Ns(next.cost_ns, 4);
  }
  const double false_positive_ns = best.predicted_fpr * *question.saved_ns;
  if (question.fpr && false_positive_ns > best.ns_per_key) {
    answer.reason += "; false positives cost more than the lookups themselves: a lower FPR may pay";
  }
}

// "; the fastest, word64 k=6, takes 13 MiB and 1.4 ns": what the skyline's two ends offer instead.
std::string Alternatives(const TuneQuestion& question, const TuneAnswer& answer) {
  const Candidate* first = nullptr;
  const Candidate* last = nullptr;
  for (const Candidate& candidate : answer.candidates) {
    if (!candidate.skyline) continue;
    if (first == nullptr) first = &candidate;
    last = &candidate;
  }
  const Candidate* chosen = &answer.candidates[answer.recommended];
  const char* verb = question.fpr ? ", takes " : ", has ";
  std::string text;
  if (first != chosen) {
    text += std::string("; the ") + (question.fpr ? "smallest" : "most selective") + ", " + ChoiceText(first->choice) +
            verb + Figures(question, *first);
  }
  if (last != chosen && last != first) {
    text += "; the fastest, " + ChoiceText(last->choice) + verb + Figures(question, *last);
  }
  return text;
}

void RecommendByLibrary(const TuneQuestion& question, TuneAnswer& answer) {
  const std::optional<FilterConfig> config = LibraryChoice(question);
  const Candidate* own = nullptr;
  for (const Candidate& candidate : answer.candidates) {
    if (config && candidate.choice == LayoutChoice{config->layout(), config->k()}) own = &candidate;
  }
  const std::string respects = question.fpr ? "memory and time" : "FPR and time";
  if (own == nullptr) {
    // The first is on the skyline: nothing is smaller, or more selective.
    answer.recommended = 0;
    const Candidate& first = answer.candidates.front();
    answer.reason =
        ChoiceText(first.choice) + (question.fpr ? " is the smallest: " : " has the lowest FPR in that memory: ") +
        Figures(question, first) + (config ? " (the library's own choice is not among the candidates)" : "");
    return;
  }
  // The fastest of those that beat it is on the skyline.
  const Candidate* chosen = own;
  for (const Candidate& candidate : answer.candidates) {
    if (!own->skyline && candidate.skyline && Space(question, candidate) <= Space(question, *own) &&
        candidate.ns_per_key <= own->ns_per_key && (chosen == own || candidate.ns_per_key < chosen->ns_per_key)) {
      chosen = &candidate;
    }
  }
  answer.recommended = static_cast<size_t>(chosen - answer.candidates.data());
  if (chosen == own) {
    answer.reason = ChoiceText(own->choice) + " is the library's own choice, and nothing measured here beats its " +
                    Figures(question, *own) + " in both" + Alternatives(question, answer);
  } else {
    answer.reason = ChoiceText(chosen->choice) + " (" + Figures(question, *chosen) +
                    ") beats the library's own choice, " + ChoiceText(own->choice) + " (" + Figures(question, *own) +
                    "), in " + respects + " on this machine" + Alternatives(question, answer);
  }
}

}  // namespace

double Space(const TuneQuestion& question, const Candidate& candidate) {
  return question.fpr ? static_cast<double>(candidate.memory_bytes) : candidate.predicted_fpr;
}

void CheckQuestion(const TuneQuestion& question) { LibraryChoice(question); }

TuneAnswer Answer(const TuneQuestion& question, const Calibration& calibration) {
  TuneAnswer answer;
  for (const LayoutChoice choice : TunedLayouts()) {
    if (IsCounting(choice.layout) == question.removable) AddCandidate(question, calibration, choice, answer);
  }
  if (answer.candidates.empty()) {
    const LeftOut& first = answer.left_out.front();
    throw CliError(kExitUsage, std::string(question.fpr ? "--fpr" : "--memory") +
                                   ": no layout is left: " + ChoiceText(first.choice) + " " + first.why);
  }
  std::stable_sort(answer.candidates.begin(), answer.candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return std::tuple(Space(question, a), a.ns_per_key) < std::tuple(Space(question, b), b.ns_per_key);
  });
  MarkSkyline(question, answer.candidates);
  if (question.saved_ns) {
    RecommendByCost(question, answer);
  } else {
    RecommendByLibrary(question, answer);
  }
  return answer;
}

}  // namespace bloomline::cli
