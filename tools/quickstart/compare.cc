// The measuring half of tools/quickstart.sh: a saved filter of a word list beside std::unordered_set of the same words.
//
//   quickstart_compare WORDS FILTER
//
// Ends with 1 where the filter misses a word or its false-positive rate is not the predicted one.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "bloomline/bloomline.h"

namespace {

using Words = std::vector<std::string_view>;

// Lets the set be asked with a string_view, without a string made for each question.
struct ViewHash {
  using is_transparent = void;
  size_t operator()(std::string_view word) const noexcept { return std::hash<std::string_view>{}(word); }
};
using Set = std::unordered_set<std::string, ViewHash, std::equal_to<>>;

// Strings one after the other in memory, so that reading the questions costs both sides little.
class Column {
 public:
  void Add(std::string_view word, std::string_view suffix = {}) {
    text_.append(word).append(suffix);
    ends_.push_back(text_.size());
  }
  // Views of all strings, valid until the next Add.
  Words Views() const {
    Words views;
    views.reserve(ends_.size());
    size_t begin = 0;
    for (const size_t end : ends_) {
      views.push_back(std::string_view(text_).substr(begin, end - begin));
      begin = end;
    }
    return views;
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

Words SplitLines(std::string_view text) {
  Words lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Nanoseconds per key of `work`, the best of `rounds`: what the machine can do when nothing else disturbs.
template <class Work>
double BestNsPerKey(size_t keys, int rounds, Work work) {
  double best = INFINITY;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / static_cast<double>(keys));
  }
  return best;
}

size_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// 1234567 → "1,234,567"
std::string Grouped(size_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void Row(const char* label, const std::string& ours, const std::string& theirs) {
  std::printf(theirs.empty() ? "  %-28s%s%s\n" : "  %-28s%-26s%s\n", label, ours.c_str(), theirs.c_str());
}

// What one side of the table measured.
struct Side {
  double memory_mib = 0;
  double build_ns = 0;
  double batch_ns = 0;
  double one_ns = 0;
  size_t found = 0;            // of the words
  size_t false_positives = 0;  // of the foreign strings
};

struct Questions {
  const Words& words;    // in random order
  const Words& mixed;    // half words, half foreign, in random order
  const Words& foreign;  // none of them is a word
};

// Keeps results from being optimised away.
volatile size_t sink;

Side MeasureFilter(const bloomline::Filter& filter, const Questions& questions) {
  Side side;
  side.memory_mib = static_cast<double>(filter.memory_bytes()) / 1048576;
  auto built = filter.Clone();
  side.build_ns = BestNsPerKey(questions.words.size(), 7, [&] {
    built.Clear();
    built.InsertBatch(questions.words);
  });
  std::vector<uint32_t> positions(questions.foreign.size());
  side.batch_ns =
      BestNsPerKey(questions.mixed.size(), 7, [&] { sink = filter.SelectBatch(questions.mixed, positions); });
  side.one_ns = BestNsPerKey(questions.mixed.size(), 7, [&] {
    size_t hits = 0;
    for (const auto word : questions.mixed) hits += filter.MayContain(word);
    sink = hits;
  });
  side.found = filter.SelectBatch(questions.words, positions);
  side.false_positives = filter.SelectBatch(questions.foreign, positions);
  return side;
}

Side MeasureSet(const Questions& questions) {
  Side side;
  const size_t before = AllocatedBytes();
  Set set;
  side.build_ns = BestNsPerKey(questions.words.size(), 3, [&] {
    set = Set();
    set.reserve(questions.words.size());
    for (const auto word : questions.words) set.emplace(word);
  });
  side.memory_mib = static_cast<double>(AllocatedBytes() - before) / 1048576;
  side.one_ns = BestNsPerKey(questions.mixed.size(), 3, [&] {
    size_t hits = 0;
    for (const auto word : questions.mixed) hits += set.contains(word);
    sink = hits;
  });
  for (const auto word : questions.words) side.found += set.contains(word);
  for (const auto word : questions.foreign) side.false_positives += set.contains(word);
  return side;
}

int Compare(const std::string& words_file, const std::string& filter_file) {
  std::ifstream stream(words_file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Words lines = SplitLines(text);
  if (lines.empty()) {
    std::fprintf(stderr, "%s: no words to read\n", words_file.c_str());
    return 3;
  }
  if (text.find('~') != std::string::npos) {
    std::fprintf(stderr, "%s: holds a '~', which this program makes foreign strings with\n", words_file.c_str());
    return 3;
  }
  const auto filter = bloomline::Filter::Load(filter_file);

  std::mt19937_64 random(1);
  std::shuffle(lines.begin(), lines.end(), random);
  Column words;
  Column foreign;
  for (const auto line : lines) words.Add(line);
  for (char digit = '0'; digit <= '9'; ++digit) {
    const char suffix[] = {'~', digit};
    for (const auto line : lines) foreign.Add(line, {suffix, 2});
  }
  const Words word_views = words.Views();
  const Words foreign_views = foreign.Views();
  Words sample = word_views;
  std::sample(foreign_views.begin(), foreign_views.end(), std::back_inserter(sample), word_views.size(), random);
  std::shuffle(sample.begin(), sample.end(), random);
  Column mixed;
  for (const auto word : sample) mixed.Add(word);
  const Words mixed_views = mixed.Views();

  const Questions questions{word_views, mixed_views, foreign_views};
  const Side ours = MeasureFilter(filter, questions);
  const Side theirs = MeasureSet(questions);

  // Two sources of chance: which foreign strings were asked, and which bits these very words happened to set.
  const double asked = static_cast<double>(foreign_views.size());
  const double measured = static_cast<double>(ours.false_positives) / asked;
  const double predicted = filter.PredictedFpr();
  const double content = predicted * bloomline::ContentRelativeDeviation(filter.layout(), filter.k(), filter.blocks(),
                                                                         filter.InsertedCount());
  const double tolerance = 5 * std::sqrt(predicted * (1 - predicted) / asked + content * content);

  const std::string total = " of " + Grouped(lines.size());
  Row("", "bloomline " + bloomline::LayoutName(filter.layout(), filter.k()), "std::unordered_set<std::string>");
  Row("memory", Format("%.2f MiB", ours.memory_mib),
      Format("%.1f MiB", theirs.memory_mib) + Format("  (%.0f times)", theirs.memory_mib / ours.memory_mib));
  Row("bits per word", Format("%.1f", 8 * 1048576 * ours.memory_mib / static_cast<double>(lines.size())),
      Format("%.0f", 8 * 1048576 * theirs.memory_mib / static_cast<double>(lines.size())));
  Row("build, ns per word", Format("%.1f", ours.build_ns), Format("%.1f", theirs.build_ns));
  Row("look up, ns per word", Format("%.1f in a batch", ours.batch_ns), "");
  Row("", Format("%.1f one at a time", ours.one_ns), Format("%.1f", theirs.one_ns));
  Row("words found", Grouped(ours.found) + total, Grouped(theirs.found) + total);
  Row("false positives, measured", Format("%.4f %%", 100 * measured),
      theirs.false_positives == 0 ? "none, ever" : Grouped(theirs.false_positives));
  Row("false positives, predicted", Format("%.4f %%", 100 * predicted) + Format(" ± %.4f", 100 * tolerance), "");
  std::printf("  (%s foreign strings; one thread, %s; look-ups: half words, half foreign)\n",
              Grouped(foreign_views.size()).c_str(), std::string(filter.target()).c_str());

  int status = 0;
  if (ours.found != lines.size()) {
    std::fprintf(stderr, "FAILED: the filter misses %s words of the list it was built from\n",
                 Grouped(lines.size() - ours.found).c_str());
    status = 1;
  }
  if (!(std::abs(measured - predicted) <= tolerance)) {
    std::fprintf(stderr, "FAILED: the measured false-positive rate is not the predicted one\n");
    status = 1;
  }
  if (theirs.found != lines.size() || theirs.false_positives != 0) {
    std::fprintf(stderr, "FAILED: the comparison itself is wrong: std::unordered_set disagrees with the list\n");
    status = 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: quickstart_compare WORDS FILTER\n");
    return 2;
  }
  try {
    return Compare(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart_compare: %s\n", error.what());
    return 3;
  }
}
