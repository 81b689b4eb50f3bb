// What every command says about a filter, as JSON keys and as lines of text; and checks on file names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tools/output.h"

namespace bloomline::cli {

// layout … target of the design's list of keys. `contents`: also what needs a pass over all of the filter
// (estimated, fill, fill_fpr, saturated). Numbers that do not exist (bits per key of an empty filter, an estimate for a
// saturated one and its bits per key, a design value that was not given) are null. Counting layouts: also overflow,
// counters and counters_per_key.
Json FilterJson(const FilterReader& filter, bool contents);
// For a counting filter also full_counters … overflow_chance, which need another pass.
Json FilterJson(const CountingFilter& filter, bool contents);

// The hash of its keys: "mix64", "xxh3-64", "caller" (pre-hashed), "mix64|xxh3-64" (unspecified).
const char* HashName(KeyKind kind);

// Lines of "label   text", aligned.
class Table {
 public:
  void Add(std::string label, std::string text) { rows_.emplace_back(std::move(label), std::move(text)); }
  // The same for a sentence, wrapped at blanks to lines of less than 100 columns.
  void AddProse(const std::string& label, const std::string& text);
  std::string Text() const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

// "split512, k = 8" and "772 KiB in 12,345 blocks of 64 bytes, 9.67 bits per key".
std::string LayoutText(const FilterReader& filter);
std::string SizeText(const FilterReader& filter);
// The lines "counters" and "overflow" of a counting filter.
void AddCounters(Table& table, const CountingFilter& filter);

// Whether a file holds counters. CliError where it is no filter.
bool HoldsCounters(const std::string& file);
// Loads one. CliError(3) that says that there are no counters in a plain filter.
CountingFilter LoadCounting(const std::string& file);

// "11,000 keys are in the filter, 10,000 were expected: …" on stderr where a filter with a design holds more.
void WarnIfOverfull(std::string_view command, const FilterReader& filter, const std::string& came);

// Refuses an output file that cannot work before any time is spent on it: "-", what exists and is no regular file, a
// directory that is not there or not writable. `option` is for messages.
void CheckOutput(const std::string& out, std::string_view option = "--out");
// Refuses an output that is the input `input` ("-" means standard input where `option` is --keys), which it would
// destroy; and one that is where standard output or error goes, whose other lines it would make vanish.
void CheckOutputIsNot(std::string_view output_option, const std::string& output, std::string_view option,
                      const std::string& input);
// Refuses two outputs that would be one file, also where neither is there yet.
void CheckOutputsDiffer(std::string_view option, const std::string& output, std::string_view other_option,
                        const std::string& other);
void CheckOutputIsNotStandard(std::string_view output_option, const std::string& output);
// Refuses an input that standard output appends to or overwrites while it is read.
void CheckStdoutIsNot(std::string_view option, const std::string& input);
// Size of a file; 0 where there is none.
uint64_t FileBytes(const std::string& path);

}  // namespace bloomline::cli
