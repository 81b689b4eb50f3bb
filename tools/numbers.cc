#include "tools/numbers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "tools/cli_error.h"

namespace bloomline::cli {
namespace {

std::string RangeText(uint64_t low, uint64_t high) {
  return "must be a whole number, " + FormatCount(low) + " to " + FormatCount(high);
}

// The whole of `text` as a finite double.
bool ReadDouble(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

double SuffixFactor(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 0;
  }
}

}  // namespace

uint64_t ParseCount(std::string_view option, std::string_view text, uint64_t low, uint64_t high) {
  uint64_t exact = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (exact < low || exact > high) ThrowUsage(option, text, RangeText(low, high));
    return exact;
  }
  std::string_view digits = text;
  double factor = 1;
  if (!digits.empty() && SuffixFactor(digits.back()) != 0) {
    factor = SuffixFactor(digits.back());
    digits.remove_suffix(1);
  }
  double value = 0;
  if (!ReadDouble(digits, value)) ThrowUsage(option, text, RangeText(low, high));
  // Rounded where decimal fractions are inexact in binary: 1.1M is 1100000.
  const double scaled = value * factor;
  const double whole = std::nearbyint(scaled);
  constexpr double kExactLimit = 9007199254740992.0;  // 2^53
  if (!(whole >= 0 && whole <= kExactLimit) || std::abs(scaled - whole) > 1e-9 * (1 + whole)) {
    ThrowUsage(option, text, RangeText(low, high));
  }
  const auto n = static_cast<uint64_t>(whole);
  if (n < low || n > high) ThrowUsage(option, text, RangeText(low, high));
  return n;
}

uint64_t ParseBytes(std::string_view option, std::string_view text) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  constexpr std::string_view kLetters = "kmgt";
  const auto refuse = [&] {
    ThrowUsage(option, text, "must be a size of 1 byte to 256 TiB, like 64MiB, 1.5GiB or 2GB");
  };
  const size_t end = std::min(text.find_first_not_of("0123456789.eE+"), text.size());
  std::string unit;
  for (const char c : text.substr(end)) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = kLetters.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) refuse();
    factor = std::pow(rest == "ib" ? 1024.0 : 1000.0, static_cast<double>(power) + 1);
  }
  double value = 0;
  if (!ReadDouble(text.substr(0, end), value)) refuse();
  const double bytes = std::nearbyint(value * factor);
  if (!(bytes >= 1 && bytes <= static_cast<double>(kMost))) refuse();
  return static_cast<uint64_t>(bytes);
}

uint64_t ParseU64(std::string_view option, std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hexadecimal ? text.substr(2) : text;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    ThrowUsage(option, text, "must be a whole number, 0 to 18446744073709551615 (or 0x…)");
  }
  return value;
}

double ParseReal(std::string_view option, std::string_view text, double low, double high) {
  double value = 0;
  if (!ReadDouble(text, value) || !(value >= low && value <= high)) {
    ThrowUsage(option, text, "must be a number, " + FormatReal(low, 6) + " to " + FormatReal(high, 6));
  }
  return value;
}

double ParseProbability(std::string_view option, std::string_view text) {
  const bool percent = text.ends_with('%');
  double value = 0;
  const bool number = ReadDouble(percent ? text.substr(0, text.size() - 1) : text, value);
  if (percent) value /= 100;
  if (!number || !(value > 0 && value < 1)) ThrowUsage(option, text, "must be above 0 and below 1");
  return value;
}

std::string FormatCount(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string FormatReal(double x, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, x);
  return text.data();
}

std::string FormatMeasure(double x, int digits) {
  if (x >= std::pow(10.0, digits) - 0.5 && x < 1e18) return FormatCount(static_cast<uint64_t>(std::llround(x)));
  if (!(x > 0 && x < 1e-4)) return FormatReal(x, digits);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", 6, x);
  return text.data();
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return FormatReal(value, value < 999.5 ? 3 : 4) + " " + (bytes == 1 ? "byte" : kUnits[unit]);
}

std::string FormatPercent(double fraction) {
  if (fraction > 0 && fraction < 1e-6) return FormatReal(fraction, 4);
  return FormatReal(fraction * 100, 4) + " %";
}

}  // namespace bloomline::cli
