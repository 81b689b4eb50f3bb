// bloomline add and bloomline remove: keys into a counting filter in a file, and out of it again.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/key_output.h"
#include "tools/key_reader.h"
#include "tools/key_work.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

// What differs between the two commands.
struct Direction {
  bool add;
  const char* name;
  const char* summary;
  const char* done;    // "added": what is said of keys that changed the filter
  const char* failed;  // "refused": of the others; also the name of --output
  const char* progress;
  const char* epilogue;
};

constexpr Direction kAdd = {
    true,
    "add",
    "Add keys to a counting filter",
    "added",
    "refused",
    "adding",
    "Loads FILTER, adds every key, as often as it comes, and saves FILTER back. The file is replaced when all is\n"
    "done; an error before, also one in the keys, leaves it as it was. A file that somebody else has replaced\n"
    "meanwhile stays as that left it, an error; still, run commands that change a file one after the other.\n"
    "Other hard links to FILTER keep what they had.\n"
    "Under reject a key is refused where one of its counters is full; saturate and spill refuse none. --output\n"
    "refused writes those keys as they came (lines end with LF, u64le keys are 8 bytes); with --json they go to\n"
    "--lines-to only. ns_per_key is time in the filter only. The exit code is 0 where keys were refused, too.\n"
    "\n"
    "Examples:\n"
    "  bloomline add live.bloom --keys new.txt\n"
    "  bloomline add live.bloom --keys new.txt --output refused --lines-to refused.txt --json"};

constexpr Direction kRemove = {
    false,
    "remove",
    "Remove keys from a counting filter",
    "removed",
    "absent",
    "removing",
    "Loads FILTER, takes every key out once for each time it comes, and saves FILTER back. The file is replaced when\n"
    "all is done; an error before, also one in the keys, leaves it as it was. A file that somebody else has\n"
    "replaced meanwhile stays as that left it, an error; still, run commands that change a file one after the other. "
    "Other\n"
    "hard links to FILTER keep what they had.\n"
    "A key with a counter at 0 is certainly absent: nothing changes. --output absent writes those keys as they came\n"
    "(lines end with LF, u64le keys are 8 bytes); with --json they go to --lines-to only.\n"
    "Remove only what was added, and not what add refused (add --output refused lists it): a foreign key that passes "
    "by chance, at the filter's FPR, cannot be told from a\n"
    "member and takes from the counters of others, which may then be missed. ns_per_key is time in the filter only.\n"
    "The exit code is 0 where keys were absent, too.\n"
    "\n"
    "Examples:\n"
    "  bloomline remove live.bloom --keys gone.txt\n"
    "  bloomline remove live.bloom --keys gone.txt --output absent > never-there.txt"};

// Tells a file from one that took its place.
class FileMark {
 public:
  explicit FileMark(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return;
    device_ = info.st_dev;
    inode_ = info.st_ino;
    size_ = info.st_size;
    seconds_ = info.st_mtim.tv_sec;
    nanoseconds_ = info.st_mtim.tv_nsec;
  }
  friend bool operator==(const FileMark&, const FileMark&) = default;

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = -1;
  time_t seconds_ = 0;
  long nanoseconds_ = 0;
};

class ChangeCommand final : public Command {
 public:
  explicit ChangeCommand(const Direction& direction) : direction_(direction), output_({"count", direction.failed}) {}

  const char* name() const override { return direction_.name; }
  const char* summary() const override { return direction_.summary; }
  const char* epilogue() const override { return direction_.epilogue; }

  void Declare(CLI::App& app) override {
    app.add_option("FILTER", file_, "The filter, a file made by bloomline build --layout counting4 or counting8")
        ->required()
        ->type_name("FILE");
    keys_.Declare(app, "lines or u64le [as the filter was built]");
    output_.Declare(app, std::string("Write ") + direction_.failed + " keys to FILE instead of standard output");
  }

  void Run(const CommonOptions& common) override {
    const Stopwatch watch;
    keys_.Format();  // an unknown name is told before anything is read
    output_.Read(file_, keys_.path);
    const FileMark mark(file_);
    CountingFilter filter = LoadCounting(file_);
    CheckFiles();
    const StoredKeys stored = ReadStoredKeys(keys_, filter.key_kind(), file_);
    std::optional<ByteSink> sink =
        output_.Open(common.json, file_, keys_.path, /*binary=*/stored.format == KeyFormat::kU64le);
    KeyReader reader(keys_.path, stored.format, filter.seed(), /*keep_long_lines=*/sink.has_value());
    Change(reader, filter, stored.hashed, sink ? &*sink : nullptr);
    if (sink) sink->Flush();  // what cannot be written is known before the filter is replaced
    const bool changed = failed_ < tally_.keys();
    if (changed) {
      if (FileMark(file_) != mark) {
        throw CliError(kExitInput, Printable(file_) + ": was replaced while the keys were read; nothing was saved");
      }
      Must(filter.TrySave(file_));
    }
    try {
      if (sink) sink->Finish();
      const double seconds = watch.Seconds();
      if (direction_.add && changed) WarnIfOverfull(name(), filter, "are in the filter");
      if (common.json) {
        PrintJson(Report(filter, seconds));
      } else if (!output_.PerKey() || output_.ToFile()) {
        PrintText(Text(filter));
      }
    } catch (const CliError& error) {
      if (!changed) throw;
      // Whoever repeats the command would change the filter twice.
      throw CliError(error.exit_code(), std::string(error.what()) + "; " + Printable(file_) + " was saved");
    }
  }

 private:
  // The filter is written where it was read. Before any key is read.
  void CheckFiles() const {
    CheckOutput(file_, "FILTER");
    // Replacing a file takes no right to write to it, but whoever took that right away meant something by it.
    if (::access(file_.c_str(), W_OK) != 0) ThrowSystem(Printable(file_) + ": is not to be changed", errno);
    CheckOutputIsNot("FILTER", file_, "--keys", keys_.path);
  }

  void Change(KeyReader& reader, CountingFilter& filter, bool hashed, ByteSink* sink) {
    std::vector<uint64_t> words;
    const auto change = [&](const KeyBatch& batch) {
      words.assign((batch.size() + 63) / 64, 0);
      Visit(
          batch, hashed,
          [&](const auto& keys) {
            failed_ += direction_.add ? filter.AddBatch(keys, words) : filter.RemoveBatch(keys, words);
          },
          [&](const auto& hashes) {
            failed_ += direction_.add ? filter.AddHashBatch(hashes, words) : filter.RemoveHashBatch(hashes, words);
          });
    };
    tally_.Run(reader, direction_.progress, change, [&](const KeyBatch& batch) {
      if (direction_.add) CheckSpill(filter, failed_);
      if (sink != nullptr) PutKeys(reader, batch, words, /*inverted=*/false, *sink);
    });
  }

  Json Report(const CountingFilter& filter, double seconds) const {
    Json json = FilterJson(filter, /*contents=*/false);
    json["seconds"] = seconds;
    json["ns_per_key"] = Number(tally_.NsPerKey());
    json["keys"] = tally_.keys();
    json[direction_.done] = tally_.keys() - failed_;
    json[direction_.failed] = failed_;
    json["file"] = file_;
    json["file_bytes"] = FileBytes(file_);
    return json;
  }

  std::string Text(const CountingFilter& filter) const {
    return std::string(direction_.done) + " " + FormatCount(tally_.keys() - failed_) + ", " + direction_.failed + " " +
           FormatCount(failed_) + " of " + tally_.KeysText() + tally_.TimeText() + "; " +
           FormatCount(filter.InsertedCount()) + " keys in the filter\n";
  }

  const Direction& direction_;
  std::string file_;
  KeyOptions keys_;
  KeyOutput output_;

  KeyTally tally_;
  uint64_t failed_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeAddCommand() { return std::make_unique<ChangeCommand>(kAdd); }
std::unique_ptr<Command> MakeRemoveCommand() { return std::make_unique<ChangeCommand>(kRemove); }

}  // namespace bloomline::cli
