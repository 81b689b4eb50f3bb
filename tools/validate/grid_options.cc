// The lists of `bloomline validate`.
#include <algorithm>
#include <cctype>

#include "bloomline/layout.h"
#include "bloomline/target.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"
#include "tools/validate/grid.h"

namespace bloomline::cli::validate {
namespace {

std::string Joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

const Pattern* FindPattern(std::string_view element, std::string_view name, const std::vector<Pattern>& patterns) {
  for (const Pattern& pattern : patterns) {
    if (pattern.name == name) return &pattern;
  }
  const std::vector<std::string> names = PatternNames();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    throw CliError(kExitInput,
                   "--patterns " + Printable(element) + ": no word list is installed; --words FILE names one");
  }
  ThrowUsage("--patterns", element, "must be all or MEMBERS or MEMBERS:PROBES, of these: " + Joined(names));
}

PatternChoice ReadPattern(std::string_view element, const std::vector<Pattern>& patterns) {
  const size_t colon = element.find(':');
  const Pattern* members = FindPattern(element, element.substr(0, colon), patterns);
  if (colon == std::string_view::npos) return {members, members};
  const Pattern* probes = FindPattern(element, element.substr(colon + 1), patterns);
  if ((members->type == KeyType::kString) != (probes->type == KeyType::kString)) {
    ThrowUsage("--patterns", element, "members and probes must both be integers or both be strings");
  }
  return {members, probes};
}

LayoutSpec ReadLayout(const std::string& element) {
  std::string names;
  for (const LayoutSpec& spec : Layouts()) {
    if (spec.name == element) return spec;
    names += (names.empty() ? "" : ", ") + spec.name;
  }
  const Result<LayoutChoice> choice = TryParseLayout(element);
  if (choice.ok()) {
    for (LayoutSpec spec : Layouts()) {
      if (spec.layout != choice->layout || (spec.fixed_k != 0 && choice->k != 0 && spec.fixed_k != choice->k)) continue;
      if (choice->k != 0) spec.fixed_k = choice->k;
      return spec;
    }
  }
  ThrowUsage("--layouts", element, "must be all or of " + names + ", with or without a k behind it (word64k5)");
}

}  // namespace

std::vector<std::string> SplitList(std::string_view option, std::string_view text) {
  std::vector<std::string> elements;
  for (size_t begin = 0;;) {
    const size_t comma = text.find(',', begin);
    const std::string element(text.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    if (element.empty()) ThrowUsage(option, text, "must be a list of values with one comma between two of them");
    if (std::find(elements.begin(), elements.end(), element) == elements.end()) elements.push_back(element);
    if (comma == std::string_view::npos) return elements;
    begin = comma + 1;
  }
}

std::vector<LayoutSpec> ParseLayouts(std::string_view text) {
  if (text == "all") return Layouts();
  std::vector<LayoutSpec> layouts;
  for (const std::string& element : SplitList("--layouts", text)) layouts.push_back(ReadLayout(element));
  return layouts;
}

std::vector<int> ParseHashCounts(std::string_view text) {
  std::vector<int> counts;
  if (text == "all") {
    for (int k = kMinHashes; k <= kMaxHashes; ++k) counts.push_back(k);
    return counts;
  }
  for (const std::string& element : SplitList("--k", text)) {
    counts.push_back(static_cast<int>(ParseCount("--k", element, kMinHashes, kMaxHashes)));
  }
  return counts;
}

std::vector<double> ParseBitsPerKey(std::string_view text) {
  std::vector<double> values;
  for (const std::string& element : SplitList("--bits-per-key", text)) {
    values.push_back(ParseReal("--bits-per-key", element, 1, 1024));
  }
  return values;
}

std::vector<uint64_t> ParseKeyCounts(std::string_view text) {
  std::vector<uint64_t> values;
  for (const std::string& element : SplitList("--keys", text)) {
    values.push_back(ParseCount("--keys", element, 1, uint64_t{1} << 32));
  }
  return values;
}

std::vector<std::string> ParseTargets(std::string_view text) {
  const std::vector<std::string> supported = SupportedTargets();
  if (text == "all") return supported;
  std::vector<std::string> targets;
  for (const std::string& element : SplitList("--targets", text)) {
    std::string name = element;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (name == "BEST") name = supported.front();
    if (name == "EMU128") name = "SCALAR";
    if (std::find(supported.begin(), supported.end(), name) == supported.end()) {
      ThrowUsage("--targets", element,
                 "must be all, best, or of what this program and this CPU have: " + Joined(supported));
    }
    if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
  }
  return targets;
}

std::vector<PatternChoice> ParsePatterns(std::string_view text, const std::vector<Pattern>& patterns) {
  std::vector<PatternChoice> choices;
  if (text != "all") {
    for (const std::string& element : SplitList("--patterns", text)) choices.push_back(ReadPattern(element, patterns));
    return choices;
  }
  for (const Pattern& pattern : patterns) choices.push_back({&pattern, &pattern});
  for (const PatternPair& pair : MixedPairs()) {
    choices.push_back(ReadPattern(std::string(pair.members) + ":" + pair.probes, patterns));
  }
  return choices;
}

}  // namespace bloomline::cli::validate
