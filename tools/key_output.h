// --output and --lines-to: what a command writes per key, and where.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/key_reader.h"
#include "tools/output.h"

namespace bloomline::cli {

class KeyOutput {
 public:
  // `names` of what --output takes; the first, the default, writes nothing per key.
  explicit KeyOutput(std::vector<std::string> names) : names_(std::move(names)) {}

  // `lines_to_help` says what goes to --lines-to.
  void Declare(CLI::App& app, const std::string& lines_to_help);
  // Reads both. CliError(2) for an unknown name, a --lines-to that nothing would be written to, and one that is the
  // filter `file`, the input `keys` or where standard output goes.
  void Read(const std::string& file, const std::string& keys);
  bool Is(std::string_view name) const { return names_[kind_] == name; }
  bool PerKey() const { return kind_ != 0; }
  bool ToFile() const { return lines_to_.has_value(); }
  // Where it goes; nothing where none was asked for or where it would meet JSON on standard output. Refuses standard
  // output that is the filter or the keys, and `binary` output to a terminal.
  std::optional<ByteSink> Open(bool json, const std::string& file, const std::string& keys, bool binary) const;

 private:
  std::string Names(size_t first) const;  // "count, maybe or absent"

  std::vector<std::string> names_;
  std::optional<std::string> output_, lines_to_;
  size_t kind_ = 0;
};

// 8 bytes, little-endian.
void PutWord(ByteSink& sink, uint64_t word);

// Writes key `i` of the batch as it came, u64le keys as PutWord does; lines without their LF.
void PutLine(KeyReader& reader, const KeyBatch& batch, size_t i, ByteSink& sink);

// Calls visit(i) for the keys of a batch of `size` whose bits are set, or where `inverted` those whose bits are not.
template <class Visit>
void ForEachBit(std::span<const uint64_t> words, size_t size, bool inverted, const Visit& visit) {
  const uint64_t flip = inverted ? ~uint64_t{0} : 0;
  for (size_t begin = 0; begin < size; begin += 64) {
    uint64_t wanted = words[begin / 64] ^ flip;
    if (size - begin < 64) wanted &= (uint64_t{1} << (size - begin)) - 1;
    for (; wanted != 0; wanted &= wanted - 1) visit(begin + static_cast<size_t>(std::countr_zero(wanted)));
  }
}

// Writes those keys: lines with an LF each, u64le keys as 8 bytes.
void PutKeys(KeyReader& reader, const KeyBatch& batch, std::span<const uint64_t> words, bool inverted, ByteSink& sink);

}  // namespace bloomline::cli
