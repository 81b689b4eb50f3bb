#include "bench/needed_limits.h"

#include <regex.h>

#include <algorithm>
#include <set>

namespace bloomline::bench {
namespace {

std::vector<std::string> Parts(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool IsSize(const std::string& part) { return !part.empty() && part[0] >= '0' && part[0] <= '9'; }

// What a limit has in common with its row: target, pages, probe set. Hit rates and threads have no limits of their own.
bool IsShared(const std::string& part) {
  return part.starts_with("target:") || part.starts_with("pages:") || part == "sweep";
}

// The limits that a row may be held against, the best first. tools/bench/results.py has the same rule.
std::vector<std::string> LimitsOf(const std::string& row) {
  const std::vector<std::string> parts = Parts(row);
  if (parts[0] == "limit" || parts.size() < 3 || !IsSize(parts[2])) return {};
  if (std::ranges::find(parts, "strings") != parts.end()) return {"limit/xxh3/strings"};
  const std::string& size = parts[2];
  std::string detail;
  for (size_t i = 3; i < parts.size(); ++i) {
    if (IsShared(parts[i])) detail += "/" + parts[i];
  }
  std::vector<std::string> limits;
  const bool stores = (parts[0] == "count_add" || parts[0] == "count_remove") && size == "512MiB";
  for (const std::string limit : {"limit/hash_rmw/", "limit/hash_touch/"}) {
    if (limit == "limit/hash_rmw/" && !stores) continue;
    if (detail.empty()) limits.push_back(limit + size + "/on:" + parts[1]);
    limits.push_back(limit + size + detail);
  }
  return limits;
}

}  // namespace

std::string WithLimits(const std::string& filter, const std::vector<std::string>& rows) {
  if (filter.empty() || filter == "all" || filter[0] == '-') return filter;
  regex_t pattern;
  if (regcomp(&pattern, filter.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return filter;
  const auto matches = [&](const std::string& row) { return regexec(&pattern, row.c_str(), 0, nullptr, 0) == 0; };
  const std::set<std::string> known(rows.begin(), rows.end());
  std::set<std::string> needed;
  for (const std::string& row : rows) {
    if (!matches(row)) continue;
    std::vector<std::string> limits = LimitsOf(row);
    std::erase_if(limits, [&](const std::string& limit) { return !known.contains(limit); });
    if (!limits.empty() && std::ranges::none_of(limits, matches)) needed.insert(limits.front());
  }
  regfree(&pattern);
  if (needed.empty()) return filter;
  std::string widened = "(" + filter + ")|^(";
  for (const std::string& limit : needed) widened += (limit == *needed.begin() ? "" : "|") + limit;
  return widened + ")$";
}

}  // namespace bloomline::bench
