// bloomline info: what is in a file.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <string>
#include <type_traits>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

// The 4-byte number behind the magic, in every version of the format. The file has just been read as a snapshot.
uint32_t FormatVersion(const std::string& path) {
  std::array<unsigned char, 4> bytes{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) ThrowSystem(Printable(path), errno);
  const ssize_t size = ::pread(fd, bytes.data(), bytes.size(), 8);
  ::close(fd);
  if (size != static_cast<ssize_t>(bytes.size())) throw CliError(kExitInput, Printable(path) + ": cannot be read");
  uint32_t version = 0;
  for (size_t i = 0; i < bytes.size(); ++i) version |= uint32_t{bytes[i]} << (8 * i);
  return version;
}

class InfoCommand final : public Command {
 public:
  const char* name() const override { return "info"; }
  const char* summary() const override { return "Show what a filter file holds"; }
  const char* epilogue() const override {
    return "Checks the whole file against its checksums, then reads the filter once more for its fill.\n"
           "inserted: insertions, repeats included (after a merge: estimated); counting filters: adds less removes.\n"
           "estimated: distinct keys, from the fraction of set bits, or of counters above 0. predicted FPR: the\n"
           "model's at as many keys as were inserted; fill FPR: exact for what is in the file.\n"
           "Counting filters: full counters are at 15 or 255; under spill the excess lies in a table beside them. The\n"
           "chance is that of any counter to go beyond when a filter of this size gets as many distinct keys.\n"
           "In JSON, null is a number that does not exist: a design value that was not given, the estimate of a\n"
           "saturated filter, the bits per key of a saturated or an empty one.\n"
           "\n"
           "Examples:\n"
           "  bloomline info words.bloom\n"
           "  bloomline info words.bloom --json | jq .fill_fpr";
  }

  void Declare(CLI::App& app) override {
    app.add_option("FILTER", file_, "The filter, a file made by bloomline build")->required()->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    if (HoldsCounters(file_)) {
      Show(LoadCounting(file_), common.json);  // a view does not report its overflow
    } else {
      Show(Must(FilterView::TryMap(file_)), common.json);
    }
  }

 private:
  template <class AnyFilter>
  void Show(const AnyFilter& filter, bool as_json) const {
    Json json = FilterJson(filter, /*contents=*/true);
    json["granted_pages"] = filter.memory().granted;
    json["file"] = file_;
    json["file_bytes"] = FileBytes(file_);
    json["format_version"] = FormatVersion(file_);
    if (as_json) {
      PrintJson(json);
    } else {
      PrintText(Text(filter, json));
    }
  }

  template <class AnyFilter>
  std::string Text(const AnyFilter& filter, const Json& json) const {
    Table table;
    table.Add("file", file_ + ", " + FormatBytes(json["file_bytes"].get<uint64_t>()) + ", format version " +
                          std::to_string(json["format_version"].get<uint32_t>()));
    table.Add("layout", LayoutText(filter) + ", zones = " + std::to_string(ZonesOf(filter.layout())));
    table.Add("memory", SizeText(filter));
    if constexpr (std::is_same_v<AnyFilter, CountingFilter>) AddCounters(table, filter);
    table.Add("keys", std::string(KeyKindName(filter.key_kind())) + ", hash " + HashName(filter.key_kind()) +
                          ", seed " + std::to_string(filter.seed()));
    std::string design;
    if (filter.expected_keys() != 0) design = FormatCount(filter.expected_keys()) + " keys";
    if (filter.target_fpr() != 0) {
      design += (design.empty() ? "FPR " : " at FPR ") + FormatPercent(filter.target_fpr());
    }
    table.Add("design", design.empty() ? "not given" : design);
    table.Add("inserted", FormatCount(filter.InsertedCount()));
    const bool counting = IsCounting(filter.layout());
    table.Add("estimated", json["estimated"].is_null()
                               ? (counting ? "none: no counter is at 0" : "none: every bit is set")
                               : FormatCount(static_cast<uint64_t>(std::llround(json["estimated"].get<double>()))) +
                                     " distinct keys");
    table.Add("fill", FormatPercent(json["fill"].get<double>()) +
                          (counting ? " of the counters are above 0" : " of the bits are set") +
                          (json["saturated"].get<bool>() ? ": saturated, every answer is \"maybe\"" : ""));
    table.Add("FPR", FormatPercent(json["predicted_fpr"].get<double>()) + " predicted, " +
                         FormatPercent(json["fill_fpr"].get<double>()) + " exact for its content");
    table.Add("target", std::string(filter.target()));
    return table.Text();
  }

  std::string file_;
};

}  // namespace

std::unique_ptr<Command> MakeInfoCommand() { return std::make_unique<InfoCommand>(); }

}  // namespace bloomline::cli
