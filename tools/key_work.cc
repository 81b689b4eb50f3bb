#include "tools/key_work.h"

#include <optional>

#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {

StoredKeys ReadStoredKeys(const KeyOptions& options, KeyKind kind, const std::string& file) {
  const std::optional<KeyFormat> given = options.Format();
  const bool hashed = kind == KeyKind::kHashed;
  if (kind == KeyKind::kBytes || kind == KeyKind::kU64) {
    const KeyFormat stored = kind == KeyKind::kBytes ? KeyFormat::kLines : KeyFormat::kU64le;
    if (given && *given != stored) {
      throw CliError(kExitInput, "--format " + options.format + ": " + Printable(file) +
                                     " was built from keys of kind " + KeyKindName(kind) + ": the format is " +
                                     KeyFormatName(stored));
    }
    return {stored, hashed};
  }
  if (!given) {
    throw CliError(kExitUsage, "--format is required: " + Printable(file) + " does not say what its keys are (kind " +
                                   KeyKindName(kind) + "); lines, or u64le for " +
                                   (hashed ? "64-bit hashes" : "integers"));
  }
  return {*given, hashed};
}

void CheckSpill(const CountingFilter& filter, uint64_t refused) {
  if (refused == 0 || filter.overflow_policy() != OverflowPolicy::kSpill) return;
  throw CliError(kExitResources, "out of memory for the table of spilled counters");
}

std::string KeyTally::KeysText() const { return FormatCount(keys_) + (keys_ == 1 ? " key" : " keys"); }

std::string KeyTally::TimeText() const { return keys_ > 0 ? ", " + FormatMeasure(NsPerKey(), 3) + " ns/key" : ""; }

}  // namespace bloomline::cli
