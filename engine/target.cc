#include "bloomline/target.h"

#include <cctype>
#include <cstdlib>
#include <mutex>

#include "engine/out_of_memory.h"
#include "engine/target_name.h"
#include "kernels/kernels.h"

namespace bloomline {
namespace {

std::mutex g_mutex;
std::string g_forced;  // empty: not forced; guarded by g_mutex

std::string Join(const std::vector<std::string_view>& names) {
  std::string joined;
  for (const std::string_view name : names) {
    if (!joined.empty()) joined += ", ";
    joined += name;
  }
  return joined;
}

std::vector<std::string> Copy(const std::vector<std::string_view>& names) { return {names.begin(), names.end()}; }

}  // namespace

Result<std::string> detail::CanonicalTarget(std::string_view name, const char* source) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper == "EMU128") upper = "SCALAR";
  const std::vector<std::string_view> supported = kernels::SupportedTargetNames();
  if (upper.empty() || upper == "BEST") return std::string(supported.front());
  for (const std::string_view candidate : supported) {
    if (candidate == upper) return upper;
  }
  for (const std::string_view candidate : kernels::CompiledTargetNames()) {
    if (candidate != upper) continue;
    return Error(ErrorCode::kInvalidArgument, std::string(source) + " = " + std::string(name) +
                                                  ": this CPU does not run it; it runs " + Join(supported));
  }
  return Error(ErrorCode::kInvalidArgument, std::string(source) + " = " + std::string(name) +
                                                ": not a target; must be best or one of " + Join(supported));
}

std::vector<std::string> CompiledTargets() {
  return detail::OrThrowError([] { return Copy(kernels::CompiledTargetNames()); });
}
std::vector<std::string> SupportedTargets() {
  return detail::OrThrowError([] { return Copy(kernels::SupportedTargetNames()); });
}

Result<std::string> TryChosenTarget() try {
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (!g_forced.empty()) return g_forced;
  }
  const char* environment = std::getenv("BLOOMLINE_TARGET");
  return detail::CanonicalTarget(environment == nullptr ? "" : environment, "BLOOMLINE_TARGET");
} catch (...) {
  return detail::CaughtError();
}

Status TryForceTarget(std::string_view name) try {
  Result<std::string> canonical = detail::CanonicalTarget(name, "target");
  if (!canonical.ok()) return canonical.error();
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_forced = lower.empty() || lower == "best" ? std::string() : canonical.value();
  return {};
} catch (...) {
  return detail::CaughtError();
}

}  // namespace bloomline
