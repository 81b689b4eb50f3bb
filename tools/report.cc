#include "tools/report.h"

#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <system_error>

#include <algorithm>
#include <cerrno>

#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {
namespace {

bool IsStdin(std::string_view option, const std::string& path) { return option == "--keys" && path == "-"; }

bool StatInput(std::string_view option, const std::string& path, struct stat& info) {
  return (IsStdin(option, path) ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) == 0;
}

// Whether what is written to one can be read from the other. A terminal or /dev/null is no such thing, and a socket's
// two directions have nothing to do with each other.
bool SameStorage(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         (S_ISREG(a.st_mode) || S_ISBLK(a.st_mode) || S_ISFIFO(a.st_mode));
}

uint64_t CountersOf(const FilterReader& filter) {
  return filter.blocks() * static_cast<uint64_t>(CellsPerBlock(filter.layout()));
}

}  // namespace

const char* HashName(KeyKind kind) {
  switch (kind) {
    case KeyKind::kU64:
      return "mix64";
    case KeyKind::kBytes:
      return "xxh3-64";
    case KeyKind::kHashed:
      return "caller";
    case KeyKind::kUnspecified:
      break;
  }
  return "mix64|xxh3-64";
}

Json FilterJson(const FilterReader& filter, bool contents) {
  const double inserted = static_cast<double>(filter.InsertedCount());
  const bool saturated = filter.Saturated();
  Json json;
  json["layout"] = LayoutName(filter.layout(), filter.k());
  json["k"] = filter.k();
  json["zones"] = ZonesOf(filter.layout());
  json["blocks"] = filter.blocks();
  json["bits"] = filter.bits();
  json["memory_bytes"] = filter.memory_bytes();
  // Every bit of a saturated filter is set: how many keys share them is not known.
  json["bits_per_key"] = saturated ? Json(nullptr) : Number(static_cast<double>(filter.bits()) / inserted);
  if (IsCounting(filter.layout())) {
    json["overflow"] = OverflowPolicyName(filter.overflow_policy());
    json["counters"] = CountersOf(filter);
    json["counters_per_key"] = saturated ? Json(nullptr) : Number(static_cast<double>(CountersOf(filter)) / inserted);
  }
  json["hash"] = HashName(filter.key_kind());
  json["key_kind"] = KeyKindName(filter.key_kind());
  json["seed"] = filter.seed();
  json["design_keys"] = filter.expected_keys() != 0 ? Json(filter.expected_keys()) : Json(nullptr);
  json["design_fpr"] = filter.target_fpr() != 0 ? Json(filter.target_fpr()) : Json(nullptr);
  json["inserted"] = filter.InsertedCount();
  json["predicted_fpr"] = Number(filter.PredictedFpr());
  if (contents) {
    const double fill = filter.FillFraction();
    json["estimated"] = Number(EstimateCount(filter.layout(), filter.k(), filter.blocks(), fill));
    json["fill"] = Number(fill);
    json["fill_fpr"] = Number(filter.MeasuredFillFpr());
    json["saturated"] = saturated;
  }
  json["target"] = filter.target();
  json["threads"] = 1;
  return json;
}

Json FilterJson(const CountingFilter& filter, bool contents) {
  Json json = FilterJson(static_cast<const FilterReader&>(filter), contents);
  if (!contents) return json;
  const OverflowReport report = filter.Overflow();
  json["full_counters"] = report.full_counters;
  json["spilled_counters"] = report.spilled_counters;
  json["spilled_keys"] = report.spilled_keys;
  json["spill_bytes"] = report.spill_bytes;
  json["overflow_chance"] = Number(report.predicted_any);
  return json;
}

void Table::AddProse(const std::string& label, const std::string& text) {
  constexpr size_t kColumns = 84;  // beside the label
  std::string line;
  std::string shown = label;  // once
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      Add(std::exchange(shown, {}), std::exchange(line, {}));
    }
    line += (line.empty() ? "" : " ") + word;
  }
  Add(shown, line);
}

std::string Table::Text() const {
  size_t width = 0;
  for (const auto& [label, text] : rows_) width = std::max(width, label.size());
  std::string out;
  for (const auto& [label, text] : rows_) out += label + std::string(width + 2 - label.size(), ' ') + text + "\n";
  return out;
}

std::string LayoutText(const FilterReader& filter) {
  return LayoutName(filter.layout(), filter.k()) + ", k = " + std::to_string(filter.k());
}

std::string SizeText(const FilterReader& filter) {
  std::string text = FormatBytes(filter.memory_bytes()) + " in " + FormatCount(filter.blocks()) +
                     (filter.blocks() == 1 ? " block" : " blocks") + " of " +
                     std::to_string(BlockBits(filter.layout()) / 8) + " bytes";
  const bool counting = IsCounting(filter.layout());
  const auto keys = static_cast<double>(filter.InsertedCount());
  if (filter.Saturated()) {
    text += counting ? ", counters per key: -" : ", bits per key: -";
  } else if (keys > 0) {
    text += ", " + FormatMeasure(static_cast<double>(filter.bits()) / keys, 4) + " bits";
    if (counting) text += " = " + FormatMeasure(static_cast<double>(CountersOf(filter)) / keys, 4) + " counters";
    text += " per key";
  }
  return text;
}

void AddCounters(Table& table, const CountingFilter& filter) {
  const OverflowReport report = filter.Overflow();
  const int counter_bits = BlockBits(filter.layout()) / CellsPerBlock(filter.layout());
  std::string full = "none full";
  if (report.full_counters > 0) {
    static constexpr const char* kMeaning[] = {"", ", where they stay", ", adds that meet them are refused", ""};
    full = FormatCount(report.full_counters) + " full: at " + std::to_string((1 << counter_bits) - 1) +
           kMeaning[static_cast<size_t>(report.policy)];
  }
  table.Add("counters", FormatCount(report.counters) + " of " + std::to_string(counter_bits) + " bits, " + full);
  std::string text = OverflowPolicyName(report.policy);
  if (report.policy == OverflowPolicy::kSpill) {
    text += ", beside the counters: " + FormatCount(report.spilled_keys) + " in " +
            FormatCount(report.spilled_counters) + (report.spilled_counters == 1 ? " entry, " : " entries, ") +
            FormatBytes(report.spill_bytes);
  }
  table.Add("overflow", text + "; predicted chance of any: " + FormatPercent(report.predicted_any));
}

bool HoldsCounters(const std::string& file) {
  return IsCounting(Must(FilterView::TryMap(file, Verify::kHeaderOnly)).layout());
}

CountingFilter LoadCounting(const std::string& file) {
  {
    const FilterView view = Must(FilterView::TryMap(file, Verify::kHeaderOnly));
    if (!IsCounting(view.layout())) {
      throw CliError(kExitInput, Printable(file) + ": its layout, " + LayoutNameWithK(view.layout(), view.k()) +
                                     ", has no counters: build it with --layout counting4 or counting8");
    }
  }
  return Must(CountingFilter::TryLoad(file));
}

void WarnIfOverfull(std::string_view command, const FilterReader& filter, const std::string& came) {
  const uint64_t expected = filter.expected_keys();
  if (expected == 0 || filter.InsertedCount() <= expected) return;
  Warn(command, FormatCount(filter.InsertedCount()) + " keys " + came + ", " + FormatCount(expected) +
                    " were expected: the predicted FPR is " + FormatPercent(filter.PredictedFpr()) + " instead of " +
                    FormatPercent(filter.PredictedFpr(expected)));
}

void CheckOutput(const std::string& out, std::string_view option) {
  const std::string name = std::string(option) + " " + Printable(out);
  if (out.empty() || out == "-") ThrowUsage(option, out, "must be the name of a file");
  struct stat info {};
  if (::stat(out.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) ThrowSystem(name, EISDIR);
    if (!S_ISREG(info.st_mode)) throw CliError(kExitInput, name + ": not a regular file");
  }
  const std::string directory = DirectoryOf(ResolveLinks(name, out));
  if (::stat(directory.c_str(), &info) != 0) ThrowSystem(name + ": directory " + Printable(directory), errno);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) ThrowSystem(name + ": directory " + Printable(directory), errno);
  CheckOutputIsNotStandard(option, out);
}

void CheckOutputIsNot(std::string_view output_option, const std::string& output, std::string_view option,
                      const std::string& input) {
  struct stat out {
  }, in{};
  if (::stat(output.c_str(), &out) != 0 || !StatInput(option, input, in) || !SameStorage(out, in)) return;
  ThrowUsage(output_option, output,
             "is the same file as " + std::string(option == "FILTER" ? "the filter" : option) +
                 (IsStdin(option, input) ? " - (standard input)" : ""));
}

void CheckOutputsDiffer(std::string_view option, const std::string& output, std::string_view other_option,
                        const std::string& other) {
  CheckOutputIsNot(option, output, other_option, other);
  const auto place = [](std::string_view name, const std::string& path) {
    std::error_code error;
    const std::string target = ResolveLinks(std::string(name), path);
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(target, error);
    return error ? target : canonical.lexically_normal().string();
  };
  if (place(option, output) == place(other_option, other)) {
    ThrowUsage(option, output, "is the same file as " + std::string(other_option));
  }
}

void CheckOutputIsNotStandard(std::string_view output_option, const std::string& output) {
  struct stat out {
  }, standard{};
  if (::stat(output.c_str(), &out) != 0 || !S_ISREG(out.st_mode)) return;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(fd, &standard) != 0 || !SameStorage(out, standard)) continue;
    ThrowUsage(output_option, output,
               std::string("is where standard ") + (fd == STDOUT_FILENO ? "output" : "error") +
                   " goes: give a file of its own");
  }
}

void CheckStdoutIsNot(std::string_view option, const std::string& input) {
  struct stat out {
  }, in{};
  if (::fstat(STDOUT_FILENO, &out) != 0 || !StatInput(option, input, in) || !SameStorage(out, in)) return;
  ThrowUsage(option, input, "input file is output file: standard output goes to it");
}

uint64_t FileBytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace bloomline::cli
