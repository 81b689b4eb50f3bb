// Numbers on the command line and in human-readable output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomline::cli {

// Each throws CliError(2) naming the option, the value and what is allowed: no sign wraps around, nothing is cut off.

// A whole number `low` … `high`: "10000000", "1e7", "2.5e6" or with a decimal suffix k, M, G, T: "10M", "1.5G".
uint64_t ParseCount(std::string_view option, std::string_view text, uint64_t low, uint64_t high);
// A size in bytes, 1 … 2^48: "65536", "64KiB", "1.5GiB" (binary), "64kB", "2GB" (decimal), any case, "MB" or "M".
uint64_t ParseBytes(std::string_view option, std::string_view text);
// Any 64-bit value, decimal or hexadecimal ("0x1f").
uint64_t ParseU64(std::string_view option, std::string_view text);
// A real number with low ≤ x ≤ high.
double ParseReal(std::string_view option, std::string_view text, double low, double high);
// A probability with 0 < x < 1; "1e-3", "0.001" or "0.1%".
double ParseProbability(std::string_view option, std::string_view text);

std::string FormatCount(uint64_t n);           // "1,234,567"
std::string FormatBytes(uint64_t bytes);       // "772 KiB", "1.25 GiB"
std::string FormatPercent(double fraction);    // "1.049 %", "0.0012 %"; below 0.0001 % the fraction: "1.2e-09"
std::string FormatReal(double x, int digits);  // `digits` significant digits, no trailing zeros
// The same without an exponent: "1,234", "12.3", "0.000012".
std::string FormatMeasure(double x, int digits);

}  // namespace bloomline::cli
