// bloomline tune: which layout, which k, how many bits for a number of keys on this machine.
#include <cstdint>
#include <optional>
#include <string>

#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/tune/calibration.h"
#include "tools/tune/candidates.h"
#include "tools/tune/tune_report.h"

namespace bloomline::cli {
namespace {

constexpr uint64_t kMaxKeys = uint64_t{1} << 40;
constexpr uint64_t kMinMemory = 32;                   // one block of split256
constexpr uint64_t kMaxMemory = uint64_t{256} << 30;  // 2^32 - 1 lines, and the rest of one
constexpr double kMaxSavedNs = 1e15;                  // eleven days

class TuneCommand final : public Command {
 public:
  const char* name() const override { return "tune"; }
  const char* summary() const override { return "Compare all layouts for N keys on this machine and recommend one"; }
  const char* epilogue() const override {
    return "Every layout with every k is sized for --fpr, or evaluated at --memory; what a lookup costs at that size\n"
           "comes from a calibration, made once per machine in some seconds and kept in\n"
           "${XDG_CACHE_HOME:-~/.cache}/bloomline/ until the CPU, its caches, the target or the library change.\n"
           "Calibrate on an otherwise idle machine. The table shows the skyline: what no other candidate beats in\n"
           "memory and time (--fpr) or in FPR and time (--memory).\n"
           "--saved-ns is what a true negative saves the caller: a disk read, a network trip, a hash table probe.\n"
           "Then cost = ns per lookup + FPR x T, and the cheapest is recommended; without it the library's own "
           "choice,\n"
           "unless another is better in both respects.\n"
           "\n"
           "Examples:\n"
           "  bloomline tune --keys 10M --fpr 0.01\n"
           "  bloomline tune --keys 10M --memory 16MiB --saved-ns 20\n"
           "  bloomline tune --keys 1e9 --fpr 1e-3 --all --svg skyline.svg";
  }

  void Declare(CLI::App& app) override {
    app.add_option("--keys", keys_, "Number of keys, 1 to 2^40; also 1e7, 10M")->required()->type_name("N");
    app.add_option("--fpr", fpr_, "The false-positive rate to meet, above 0 and below 1")->type_name("P");
    app.add_option("--memory", memory_, "Instead of --fpr: the memory that there is, like 64MiB or 2GB")
        ->type_name("BYTES");
    app.add_option("--saved-ns", saved_ns_, "What a true negative saves the caller, ns, 0 or more")->type_name("T");
    app.add_flag("--removable", removable_, "Only layouts that keys can be removed from: counting4, counting8");
    app.add_flag("--all", all_, "Show every candidate, not the skyline alone");
    app.add_option("--svg", svg_, "Draw the candidates and the skyline")->type_name("FILE");
    app.add_flag("--recalibrate", calibration_.recalibrate, "Measure this machine again");
    app.add_option("--calibration", calibration_file_,
                   "Use this calibration, whichever machine it is from; made where it does not exist")
        ->type_name("FILE");
  }

  void Run(const CommonOptions& common) override {
    const TuneQuestion question = ReadQuestion();
    // Made before the time is spent: a directory that is not there is known at once.
    std::optional<ByteSink> svg;
    if (svg_) {
      if (*svg_ == "-") ThrowUsage("--svg", *svg_, "must be the name of a file");
      CheckOutputIsNotStandard("--svg", *svg_);
      if (calibration_file_) CheckOutputsDiffer("--svg", *svg_, "--calibration", *calibration_file_);
      svg.emplace(ByteSink::File("--svg", *svg_));
    }
    const Calibration calibration = GetCalibration(calibration_);
    const TuneAnswer answer = Answer(question, calibration);
    if (svg) {
      svg->Write(TuneChart(question, answer, calibration).Svg());
      svg->Finish();
    }
    if (common.json) {
      PrintJson(TuneJson(question, answer, calibration));
    } else {
      PrintText(TuneText(question, answer, calibration, all_));
    }
  }

 private:
  TuneQuestion ReadQuestion() {
    TuneQuestion question;
    if (fpr_.has_value() == memory_.has_value()) {
      throw CliError(kExitUsage, fpr_ ? "--fpr and --memory exclude each other: give one of them"
                                      : "one of --fpr and --memory is required");
    }
    question.keys = ParseCount("--keys", keys_, 1, kMaxKeys);
    if (fpr_) question.fpr = ParseProbability("--fpr", *fpr_);
    if (memory_) {
      question.memory_bytes = ParseBytes("--memory", *memory_);
      if (*question.memory_bytes < kMinMemory || *question.memory_bytes > kMaxMemory) {
        ThrowUsage("--memory", *memory_, "must be 32 bytes to 256 GiB");
      }
    }
    if (saved_ns_) question.saved_ns = ParseReal("--saved-ns", *saved_ns_, 0, kMaxSavedNs);
    if (calibration_file_) {
      if (calibration_file_->empty()) ThrowUsage("--calibration", "", "must be the name of a file");
      calibration_.file = *calibration_file_;
    }
    question.removable = removable_;
    CheckQuestion(question);
    return question;
  }

  std::string keys_;
  std::optional<std::string> fpr_, memory_, saved_ns_, svg_, calibration_file_;
  CalibrationOptions calibration_;
  bool all_ = false;
  bool removable_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTuneCommand() { return std::make_unique<TuneCommand>(); }

}  // namespace bloomline::cli
