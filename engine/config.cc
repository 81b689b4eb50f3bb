#include "bloomline/config.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "bloomline/fpr_model.h"
#include "engine/auto_layout.h"
#include "engine/fpr_blocked.h"
#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

constexpr uint64_t kMaxKeys = uint64_t{1} << 40;

// The shortest text that reads back as the same number.
std::string Text(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

template <class T>
std::string Says(const char* argument, const T& value, const std::string& allowed) {
  if constexpr (std::is_same_v<T, double>) {
    return std::string(argument) + " = " + Text(value) + ": " + allowed;
  } else {
    return std::string(argument) + " = " + std::to_string(value) + ": " + allowed;
  }
}

template <class T>
Error Invalid(const char* argument, const T& value, const std::string& allowed) {
  return Error(ErrorCode::kInvalidArgument, Says(argument, value, allowed));
}

Status CheckLayout(Layout layout) {
  if (layout != Layout::kAuto && LayoutName(layout, 0) == "unknown") {
    return Invalid("layout", static_cast<int>(layout), "must be one of the layouts of bloomline/layout.h");
  }
  return {};
}

// `or_zero`: where 0 chooses.
Status CheckHashCount(Layout layout, int k, bool or_zero) {
  if (k == 0 && or_zero) return {};
  const std::string choose = or_zero ? ", or 0 to choose" : "";
  if (layout == Layout::kAuto) {
    if (k >= kMinHashes && k <= kMaxHashes) return {};
    return Invalid("k", k, "must be 1 to 16" + choose);
  }
  if (IsValidHashCount(layout, k)) return {};
  std::string allowed = "must be 1 to 16";
  if (layout == Layout::kSplit256) {
    allowed = "must be 8";
  } else if (layout == Layout::kSplit512) {
    return Invalid("k", k, "must be 8 (split512) or 16 (sector512z8)" + choose);
  } else if (ZonesOf(layout) > 1) {
    allowed = "must be a multiple of " + std::to_string(ZonesOf(layout)) + " up to 16";
  }
  return Invalid("k", k, allowed + " for " + LayoutName(layout, 0) + choose);
}

Status CheckKeys(uint64_t expected_keys) {
  if (expected_keys >= 1 && expected_keys <= kMaxKeys) return {};
  return Invalid("expected_keys", expected_keys, "must be 1 to 1099511627776 (2^40)");
}

uint64_t MaxBits(Layout layout) { return detail::MaxBlocks(layout) * static_cast<uint64_t>(BlockBits(layout)); }

FilterConfig ValueOrThrow(Result<FilterConfig> result) { return std::move(result).value(); }

}  // namespace

// Not in the header: see BLOOMLINE_INLINE.
FilterConfig::FilterConfig(const FilterConfig& other) = default;
FilterConfig::FilterConfig(FilterConfig&& other) noexcept = default;
FilterConfig& FilterConfig::operator=(const FilterConfig& other) = default;
FilterConfig& FilterConfig::operator=(FilterConfig&& other) noexcept = default;
FilterConfig::~FilterConfig() = default;

const char* KeyKindName(KeyKind kind) noexcept {
  switch (kind) {
    case KeyKind::kUnspecified:
      return "unspecified";
    case KeyKind::kU64:
      return "u64";
    case KeyKind::kBytes:
      return "bytes";
    case KeyKind::kHashed:
      return "hashed";
  }
  return "unknown";
}

FilterConfig FilterConfig::ForFpr(uint64_t expected_keys, double target_fpr, Layout layout, int k) {
  return ValueOrThrow(TryForFpr(expected_keys, target_fpr, layout, k));
}

Result<FilterConfig> FilterConfig::TryForFpr(uint64_t expected_keys, double target_fpr, Layout layout, int k) try {
  if (const Status status = CheckKeys(expected_keys); !status) return status.error();
  if (!(target_fpr > 0.0 && target_fpr < 1.0)) return Invalid("target_fpr", target_fpr, "must be above 0 and below 1");
  if (const Status status = CheckLayout(layout); !status) return status.error();
  if (const Status status = CheckHashCount(layout, k, true); !status) return status.error();
  const double floor = HashFloor(static_cast<double>(expected_keys));
  if (target_fpr <= floor) {
    return Invalid("target_fpr", target_fpr,
                   "must be above expected_keys * 2^-64 = " + Text(floor) +
                       ": that often a foreign string has the 64-bit hash of a key, however large the filter is");
  }
  detail::SizedLayout sized = detail::ChooseForFpr(expected_keys, target_fpr, layout, k);
  if (sized.blocks == 0) {
    const std::string what = layout == Layout::kAuto ? "any layout" : LayoutName(layout, k);
    return Invalid("target_fpr", target_fpr,
                   "cannot be reached for expected_keys = " + std::to_string(expected_keys) + " with " + what +
                       (k != 0 ? ", k = " + std::to_string(k) + "," : "") + " in the " +
                       std::to_string(MaxBits(layout)) +
                       " bits that a filter can have at the most; allow a higher FPR or another layout");
  }
  FilterConfig config;
  config.layout_ = sized.layout;
  config.k_ = sized.k;
  config.blocks_ = sized.blocks;
  config.expected_keys_ = expected_keys;
  config.target_fpr_ = target_fpr;
  config.reason_ = std::move(sized.reason);
  return config;
} catch (...) {
  return detail::CaughtError();
}

FilterConfig FilterConfig::ForBits(uint64_t bits, int k, Layout layout) {
  return ValueOrThrow(TryForBits(bits, k, layout));
}

Result<FilterConfig> FilterConfig::TryForBits(uint64_t bits, int k, Layout layout) try {
  if (const Status status = CheckLayout(layout); !status) return status.error();
  if (layout == Layout::kAuto) {
    return Error(ErrorCode::kInvalidArgument,
                 "layout = auto: bits alone do not decide it; name a layout, or use ForBitsPerKey or ForFpr");
  }
  if (const Status status = CheckHashCount(layout, k, false); !status) return status.error();
  if (bits == 0 || bits > MaxBits(layout)) {
    return Invalid("bits", bits, "must be 1 to " + std::to_string(MaxBits(layout)) + " for " + LayoutName(layout, k));
  }
  FilterConfig config;
  config.layout_ = layout;
  config.k_ = k;
  config.blocks_ = detail::BlocksForBits(layout, bits);
  return config;
} catch (...) {
  return detail::CaughtError();
}

FilterConfig FilterConfig::ForBitsPerKey(uint64_t expected_keys, double bits_per_key, Layout layout, int k) {
  return ValueOrThrow(TryForBitsPerKey(expected_keys, bits_per_key, layout, k));
}

Result<FilterConfig> FilterConfig::TryForBitsPerKey(uint64_t expected_keys, double bits_per_key, Layout layout,
                                                    int k) try {
  if (const Status status = CheckKeys(expected_keys); !status) return status.error();
  if (!(bits_per_key >= 1.0 && bits_per_key <= 1024.0)) {
    return Invalid("bits_per_key", bits_per_key, "must be 1 to 1024");
  }
  if (const Status status = CheckLayout(layout); !status) return status.error();
  if (const Status status = CheckHashCount(layout, k, true); !status) return status.error();
  const double bits = std::ceil(static_cast<double>(expected_keys) * bits_per_key);  // at most 2^50: exact
  if (bits > static_cast<double>(MaxBits(layout))) {
    return Invalid("bits_per_key", bits_per_key,
                   "times expected_keys = " + std::to_string(expected_keys) + " must be at most " +
                       std::to_string(MaxBits(layout)) + " bits");
  }
  detail::SizedLayout sized = detail::ChooseForBits(expected_keys, static_cast<uint64_t>(bits), layout, k);
  FilterConfig config;
  config.layout_ = sized.layout;
  config.k_ = sized.k;
  config.blocks_ = sized.blocks;
  config.expected_keys_ = expected_keys;
  config.reason_ = std::move(sized.reason);
  return config;
} catch (...) {
  return detail::CaughtError();
}

FilterConfig FilterConfig::WithSeed(uint64_t seed) const try {
  FilterConfig config = *this;
  config.seed_ = seed;
  return config;
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

FilterConfig FilterConfig::WithKeyKind(KeyKind kind) const try {
  FilterConfig config = *this;
  config.key_kind_ = kind;
  return config;
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

FilterConfig FilterConfig::WithMemory(const MemoryPolicy& policy) const try {
  FilterConfig config = *this;
  config.memory_ = policy;
  return config;
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

FilterConfig FilterConfig::WithTarget(std::string_view name) const try {
  FilterConfig config = *this;
  config.target_ = name;
  return config;
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

double FilterConfig::PredictedFpr() const noexcept {
  return expected_keys_ == 0 ? 0.0 : bloomline::PredictedFpr(layout_, k_, blocks_, expected_keys_);
}

}  // namespace bloomline
