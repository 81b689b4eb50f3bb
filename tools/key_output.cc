#include "tools/key_output.h"

#include <array>

#include "tools/cli_error.h"
#include "tools/report.h"

namespace bloomline::cli {

std::string KeyOutput::Names(size_t first) const {
  std::string text;
  for (size_t i = first; i < names_.size(); ++i) {
    if (i > first) text += i + 1 == names_.size() ? " or " : ", ";
    text += names_[i];
  }
  return text;
}

void KeyOutput::Declare(CLI::App& app, const std::string& lines_to_help) {
  app.add_option("--output", output_, Names(0) + " [" + names_[0] + "]")->type_name("WHAT");
  app.add_option("--lines-to", lines_to_, lines_to_help)->type_name("FILE");
}

void KeyOutput::Read(const std::string& file, const std::string& keys) {
  kind_ = 0;
  if (output_) {
    while (kind_ < names_.size() && names_[kind_] != *output_) ++kind_;
    if (kind_ == names_.size()) ThrowUsage("--output", *output_, "must be " + Names(0));
  }
  if (!lines_to_) return;
  if (!PerKey()) ThrowUsage("--lines-to", *lines_to_, "needs --output " + Names(1));
  CheckOutputIsNot("--lines-to", *lines_to_, "FILTER", file);
  CheckOutputIsNot("--lines-to", *lines_to_, "--keys", keys);
  CheckOutputIsNotStandard("--lines-to", *lines_to_);
}

std::optional<ByteSink> KeyOutput::Open(bool json, const std::string& file, const std::string& keys,
                                        bool binary) const {
  if (!PerKey()) return std::nullopt;
  if (lines_to_) return ByteSink::File("--lines-to", *lines_to_);
  if (json) return std::nullopt;
  // Output that is appended to its own input would never end.
  CheckStdoutIsNot("--keys", keys);
  CheckStdoutIsNot("FILTER", file);
  ByteSink sink = ByteSink::Stdout();
  if (binary && sink.IsTerminal()) {
    throw CliError(kExitUsage,
                   "standard output is a terminal and the output is binary: redirect it or give --lines-to");
  }
  return sink;
}

void PutWord(ByteSink& sink, uint64_t word) {
  std::array<char, 8> bytes{};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(word >> (8 * i) & 0xff);
  sink.Write(bytes.data(), bytes.size());
}

void PutLine(KeyReader& reader, const KeyBatch& batch, size_t i, ByteSink& sink) {
  if (!batch.integers.empty()) {
    PutWord(sink, batch.integers[i]);
  } else if (batch.long_line_hash) {
    reader.CopyLongLine(sink);
  } else {
    sink.Write(batch.lines[i]);
  }
}

void PutKeys(KeyReader& reader, const KeyBatch& batch, std::span<const uint64_t> words, bool inverted, ByteSink& sink) {
  ForEachBit(words, batch.size(), inverted, [&](size_t i) {
    PutLine(reader, batch, i, sink);
    if (batch.integers.empty()) sink.Put('\n');
  });
}

}  // namespace bloomline::cli
