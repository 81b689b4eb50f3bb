// Where calibrations are kept.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tools/cli_error.h"
#include "tools/tune/calibration.h"

namespace bloomline::cli {
namespace {

constexpr const char* kCommand = "tune";
constexpr uint64_t kMaxFileBytes = 1 << 20;

// Empty where neither variable says.
std::string CacheDirectory() {
  // A relative XDG_CACHE_HOME is to be ignored, says its specification.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/bloomline";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.cache/bloomline";
  }
  return {};
}

// None where there is no file. Throws std::runtime_error that says what is wrong with it.
std::optional<Calibration> ReadCalibration(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return std::nullopt;
  if (!std::filesystem::is_regular_file(status)) throw std::runtime_error("not a regular file");
  if (std::filesystem::file_size(path, error) > kMaxFileBytes || error) throw std::runtime_error("not a calibration");
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw std::runtime_error("cannot be read");
  return CalibrationFromJson(text);
}

void WriteCalibration(const std::string& option, const std::string& path, const Calibration& calibration) {
  ByteSink sink = ByteSink::File(option, path);
  sink.Write(CalibrationJson(calibration).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  sink.Finish();
}

Calibration CalibrateWithProgress() {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (!terminal) std::fputs("bloomline tune: measuring lookups on this machine, some seconds\n", stderr);
  int shown = -1;
  Calibration calibration = Calibrate([&](double fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (!terminal || percent == shown) return;
    shown = percent;
    std::fprintf(stderr, "\rmeasuring lookups on this machine: %d %%\033[K", percent);
  });
  if (terminal) std::fputs("\r\033[K", stderr);
  return calibration;
}

Calibration FromNamedFile(const std::string& path, bool recalibrate) {
  const std::string name = "--calibration " + Printable(path);
  try {
    // Also with --recalibrate: a file that is something else is not to be overwritten.
    if (std::optional<Calibration> kept = ReadCalibration(path); kept && !recalibrate) return *std::move(kept);
  } catch (const std::runtime_error& error) {
    throw CliError(kExitInput, name + ": " + error.what());
  }
  { ByteSink probe = ByteSink::File("--calibration", path); }  // fails before the time is spent
  Calibration calibration = CalibrateWithProgress();
  WriteCalibration("--calibration", path, calibration);
  return calibration;
}

std::string Difference(const MachineIdentity& kept, const MachineIdentity& here) {
  if (kept.version != here.version) return "library version " + Printable(kept.version) + ", now " + here.version;
  if (kept.cpu != here.cpu) return "CPU " + Printable(kept.cpu) + ", now " + Printable(here.cpu);
  if (kept.target != here.target) return "target " + Printable(kept.target) + ", now " + here.target;
  return "other cache sizes";
}

Calibration FromCache(bool recalibrate) {
  const std::string directory = CacheDirectory();
  const MachineIdentity here = ThisMachine();
  const std::string path = directory + "/tune-" + here.target + ".json";
  if (!recalibrate && !directory.empty()) {
    try {
      if (std::optional<Calibration> kept = ReadCalibration(path)) {
        if (kept->machine == here) return *std::move(kept);
        Warn(kCommand, "the calibration in " + Printable(path) + " is not of this machine and program (" +
                           Difference(kept->machine, here) + "): measuring again");
      }
    } catch (const std::runtime_error& error) {
      Warn(kCommand, "the calibration in " + Printable(path) + " is unusable (" + error.what() + "): measuring again");
    }
  }
  Calibration calibration = CalibrateWithProgress();
  if (directory.empty()) {
    Warn(kCommand, "the calibration is not kept: neither XDG_CACHE_HOME nor HOME says where");
    return calibration;
  }
  std::error_code ignored;  // what is wrong shows when the file is made
  std::filesystem::create_directories(directory, ignored);
  try {
    WriteCalibration("cache", path, calibration);
  } catch (const CliError& error) {
    Warn(kCommand, std::string("the calibration is not kept: ") + error.what());
  }
  return calibration;
}

}  // namespace

Calibration GetCalibration(const CalibrationOptions& options) {
  return options.file.empty() ? FromCache(options.recalibrate) : FromNamedFile(options.file, options.recalibrate);
}

}  // namespace bloomline::cli
