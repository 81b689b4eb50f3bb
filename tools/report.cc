#include "tools/report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {

const char* HashName(KeyKind kind) {
  switch (kind) {
    case KeyKind::kU64:
      return "mix64";
    case KeyKind::kBytes:
      return "xxh3-64";
    case KeyKind::kHashed:
      return "caller";
    case KeyKind::kUnspecified:
      break;
  }
  return "mix64|xxh3-64";
}

Json FilterJson(const FilterReader& filter, bool contents) {
  const double inserted = static_cast<double>(filter.InsertedCount());
  Json json;
  json["layout"] = LayoutName(filter.layout(), filter.k());
  json["k"] = filter.k();
  json["zones"] = ZonesOf(filter.layout());
  json["blocks"] = filter.blocks();
  json["bits"] = filter.bits();
  json["memory_bytes"] = filter.memory_bytes();
  json["bits_per_key"] = Number(static_cast<double>(filter.bits()) / inserted);
  json["hash"] = HashName(filter.key_kind());
  json["key_kind"] = KeyKindName(filter.key_kind());
  json["seed"] = filter.seed();
  json["design_keys"] = filter.expected_keys() != 0 ? Json(filter.expected_keys()) : Json(nullptr);
  json["design_fpr"] = filter.target_fpr() != 0 ? Json(filter.target_fpr()) : Json(nullptr);
  json["inserted"] = filter.InsertedCount();
  json["predicted_fpr"] = Number(filter.PredictedFpr());
  if (contents) {
    const double fill = filter.FillFraction();
    json["estimated"] = Number(EstimateCount(filter.layout(), filter.k(), filter.blocks(), fill));
    json["fill"] = Number(fill);
    json["fill_fpr"] = Number(filter.MeasuredFillFpr());
    json["saturated"] = filter.Saturated();
  }
  json["target"] = filter.target();
  json["threads"] = 1;
  return json;
}

std::string Table::Text() const {
  size_t width = 0;
  for (const auto& [label, text] : rows_) width = std::max(width, label.size());
  std::string out;
  for (const auto& [label, text] : rows_) out += label + std::string(width + 2 - label.size(), ' ') + text + "\n";
  return out;
}

std::string LayoutText(const FilterReader& filter) {
  return LayoutName(filter.layout(), filter.k()) + ", k = " + std::to_string(filter.k());
}

std::string SizeText(const FilterReader& filter) {
  std::string text = FormatBytes(filter.memory_bytes()) + " in " + FormatCount(filter.blocks()) +
                     (filter.blocks() == 1 ? " block" : " blocks") + " of " +
                     std::to_string(BlockBits(filter.layout()) / 8) + " bytes";
  if (filter.InsertedCount() > 0) {
    text += ", " + FormatReal(static_cast<double>(filter.bits()) / static_cast<double>(filter.InsertedCount()), 4) +
            " bits per key";
  }
  return text;
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

void CheckOutput(const std::string& out, const std::vector<std::pair<std::string, std::string>>& inputs) {
  const std::string name = "--out " + Printable(out);
  if (out.empty() || out == "-") ThrowUsage("--out", out, "must be the name of a file");
  struct stat info {};
  if (::stat(out.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) ThrowSystem(name, EISDIR);
  const size_t slash = out.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : out.substr(0, slash + 1);
  if (::stat(directory.c_str(), &info) != 0) ThrowSystem(name + ": directory " + Printable(directory), errno);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) ThrowSystem(name + ": directory " + Printable(directory), errno);
  for (const auto& [option, path] : inputs) {
    if (SameFile(out, path)) ThrowUsage("--out", out, "is the same file as " + option);
  }
}

uint64_t FileBytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace bloomline::cli
