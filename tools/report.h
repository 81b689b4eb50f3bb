// What every command says about a filter, as JSON keys and as lines of text; and checks on file names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bloomline/filter.h"
#include "tools/output.h"

namespace bloomline::cli {

// layout … target of the design's list of keys. `contents`: also what needs a pass over all of the filter
// (estimated, fill, fill_fpr, saturated). Numbers that do not exist (bits per key of an empty filter, an estimate for a
// saturated one, a design value that was not given) are null.
Json FilterJson(const FilterReader& filter, bool contents);

// The hash of its keys: "mix64", "xxh3-64", "caller" (pre-hashed), "mix64|xxh3-64" (unspecified).
const char* HashName(KeyKind kind);

// Lines of "label   text", aligned.
class Table {
 public:
  void Add(std::string label, std::string text) { rows_.emplace_back(std::move(label), std::move(text)); }
  std::string Text() const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

// "split512, k = 8" and "12,345 blocks, 772 KiB, 9.67 bits per key".
std::string LayoutText(const FilterReader& filter);
std::string SizeText(const FilterReader& filter);

// Refuses an --out that cannot work before any time is spent on it: "-", a directory, a directory that is not there or
// not writable; and one of `inputs` (option and path), which the output would replace.
void CheckOutput(const std::string& out, const std::vector<std::pair<std::string, std::string>>& inputs);
// Whether both names lead to one existing file.
bool SameFile(const std::string& a, const std::string& b);
// Size of a file; 0 where there is none.
uint64_t FileBytes(const std::string& path);

}  // namespace bloomline::cli
