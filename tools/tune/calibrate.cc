// The measurement behind `bloomline tune`.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "bloomline/config.h"
#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tools/cli_error.h"
#include "tools/tune/calibration.h"
#include "tools/tune/layouts.h"

namespace bloomline::cli {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr double kBitsPerKey = 10;
// Keys put into one filter. Below it filters hold their design load; above, enough to touch every page, and the time
// of a lookup hardly depends on what else is there.
constexpr uint64_t kMaxMembers = uint64_t{1} << 20;
constexpr uint64_t kMinProbes = uint64_t{1} << 14;
constexpr uint64_t kMaxProbes = uint64_t{1} << 20;
constexpr size_t kMinRepetitions = 4;

uint64_t SplitMix(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// CPU time of this thread: others on the same core do not count.
double ThreadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// One filter size with its keys, shared by all layouts.
struct Workload {
  uint64_t bytes;
  std::vector<uint64_t> members;
  std::vector<uint64_t> probes;  // half of them members, in random order
};

Workload MakeWorkload(uint64_t bytes) {
  Workload work{bytes, {}, {}};
  const auto design = static_cast<uint64_t>(static_cast<double>(bytes) * 8 / kBitsPerKey);
  work.members.resize(std::min(design, kMaxMembers));
  for (size_t i = 0; i < work.members.size(); ++i) work.members[i] = SplitMix(i);
  // As many probes as the filter has lines: fewer would stay in a nearer cache than the filter does.
  work.probes.resize(std::clamp(bytes / 64, kMinProbes, kMaxProbes));
  for (size_t i = 0; i < work.probes.size(); ++i) {
    const uint64_t random = SplitMix((uint64_t{1} << 60) + i);
    const uint64_t foreign = SplitMix((uint64_t{1} << 61) + i);
    work.probes[i] = (random & 1) != 0 ? work.members[(random >> 1) % work.members.size()] : foreign;
  }
  return work;
}

double MeasureLookups(const FilterReader& filter, const Workload& work);

double MeasureLookups(LayoutChoice choice, const Workload& work) {
  const FilterConfig config = Must(FilterConfig::TryForBits(work.bytes * 8, choice.k, choice.layout));
  if (IsCounting(choice.layout)) {
    CountingFilter filter = Must(CountingFilter::Create(config));
    filter.AddBatch(work.members);
    return MeasureLookups(filter, work);
  }
  Filter filter = Must(Filter::Create(config));
  filter.InsertBatch(work.members);
  return MeasureLookups(filter, work);
}

double MeasureLookups(const FilterReader& filter, const Workload& work) {
  std::vector<uint64_t> bitmap((work.probes.size() + 63) / 64);
  // Of a filter that no cache should hold, each repetition asks for other lines; of a smaller one for the same, and
  // the first warms the caches.
  const size_t slices = work.probes.size() == kMaxProbes ? kMinRepetitions : 1;
  const std::span<const uint64_t> probes = work.probes;
  const size_t length = probes.size() / slices;
  constexpr double kSeconds = 0.004;
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (size_t i = 0; i < kMinRepetitions || spent < kSeconds; ++i) {
    const double start = ThreadSeconds();
    filter.MayContainBatch(probes.subspan(i % slices * length, length), bitmap);
    const double seconds = ThreadSeconds() - start;
    // A clock of coarse steps may say 0.
    if (seconds > 0) best = std::min(best, seconds);
    spent += std::max(seconds, 1e-6);
  }
  if (!std::isfinite(best)) throw CliError(kExitResources, "calibration: the clock of CPU time stands still");
  return best * 1e9 / static_cast<double>(length);
}

// The k of one layout that cost the same: begin … end in the calibration's rows.
struct CostClass {
  size_t begin;
  size_t end;
};

// A larger k does all that a smaller one does: where the smaller took longer, it was disturbed. Works on the newest
// size.
void LowerToLargerK(std::vector<CalibrationRow>& rows) {
  for (size_t i = rows.size() - 1; i-- > 0;) {
    if (rows[i].choice.layout != rows[i + 1].choice.layout) continue;
    rows[i].ns_per_key.back() = std::min(rows[i].ns_per_key.back(), rows[i + 1].ns_per_key.back());
  }
}

// Neighbouring k whose times at the newest size are within a tenth. With vectors of 8 or 16 lanes a few classes hold
// all k of a layout.
std::vector<CostClass> CostClasses(const std::vector<CalibrationRow>& rows) {
  std::vector<CostClass> classes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool joins = !classes.empty() && rows[classes.back().begin].choice.layout == rows[i].choice.layout &&
                       rows[i].ns_per_key.back() <= 1.1 * rows[classes.back().begin].ns_per_key.back();
    if (!joins) classes.push_back({i, i});
    classes.back().end = i + 1;
  }
  return classes;
}

std::vector<uint64_t> Sizes() {
  std::vector<uint64_t> sizes = {64 * kKiB, 1 * kMiB, 16 * kMiB};
  const uint64_t available = AvailableMemoryBytes();
  if (available >= 1024 * kMiB) {
    sizes.push_back(256 * kMiB);
  } else if (available >= 256 * kMiB) {
    sizes.push_back(64 * kMiB);
  }
  return sizes;
}

std::string UtcNow() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const size_t length = ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

// Every k at the first size, where a measurement is quick and steady; there the classes show. At each other size a
// class is measured at both of its ends. Twice, with other filters in between: what disturbs one round is over, and
// other pages are in use, in the next.
void MeasureSize(uint64_t bytes, bool first, const std::vector<CostClass>& classes, std::vector<CalibrationRow>& rows,
                 const std::function<void(double)>& progress) {
  constexpr size_t kRounds = 2;
  const Workload work = MakeWorkload(bytes);
  MeasureLookups(rows.front().choice, work);  // wakes the CPU; not counted
  std::vector<double> times(rows.size(), std::numeric_limits<double>::infinity());
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < classes.size(); ++i) {
      progress(static_cast<double>(round * classes.size() + i) / static_cast<double>(kRounds * classes.size()));
      const CostClass& one = classes[i];
      const double ns = MeasureLookups(rows[round == 0 ? one.begin : one.end - 1].choice, work);
      for (size_t row = one.begin; row < one.end; ++row) times[row] = std::min(times[row], ns);
    }
  }
  for (size_t row = 0; row < rows.size(); ++row) rows[row].ns_per_key.push_back(times[row]);
  LowerToLargerK(rows);
  if (!first) return;
  for (const CostClass& one : CostClasses(rows)) {
    for (size_t row = one.begin; row < one.end; ++row) rows[row].ns_per_key[0] = rows[one.begin].ns_per_key[0];
  }
}

}  // namespace

Calibration Calibrate(const std::function<void(double)>& progress) {
  Calibration calibration;
  calibration.machine = ThisMachine();
  calibration.measured_at = UtcNow();
  std::vector<CalibrationRow>& rows = calibration.rows;
  for (const LayoutChoice choice : TunedLayouts()) rows.push_back({choice, {}});
  std::vector<CostClass> classes;
  for (size_t i = 0; i < rows.size(); ++i) classes.push_back({i, i + 1});
  const std::vector<uint64_t> sizes = Sizes();
  for (size_t size = 0; size < sizes.size(); ++size) {
    try {
      MeasureSize(sizes[size], size == 0, classes, rows, [&](double share) {
        progress((static_cast<double>(size) + share) / static_cast<double>(sizes.size()));
      });
    } catch (const CliError& error) {
      // A limit that the system's figures do not show: do with the sizes that fit.
      if (size == 0 || error.exit_code() != kExitResources) throw;
      break;
    } catch (const std::bad_alloc&) {
      if (size == 0) throw;
      break;
    }
    calibration.size_bytes.push_back(sizes[size]);
    // Larger filters wait for memory, which takes the same time for every k: the classes become fewer.
    classes = CostClasses(rows);
  }
  return calibration;
}

}  // namespace bloomline::cli
