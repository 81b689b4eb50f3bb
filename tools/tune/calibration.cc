#include "tools/tune/calibration.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bloomline/error.h"

namespace bloomline::cli {
namespace {

// Raise it when what is measured, or how, changes.
constexpr int kFormat = 1;
constexpr const char* kKind = "bloomline tune calibration";

void Require(bool condition, const char* problem) {
  if (!condition) throw std::runtime_error(problem);
}

std::vector<uint64_t> ReadSizes(const Json& json) {
  auto sizes = json.get<std::vector<uint64_t>>();
  Require(!sizes.empty(), "no filter sizes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    Require(sizes[i] > (i == 0 ? 0 : sizes[i - 1]), "filter sizes that do not ascend");
  }
  return sizes;
}

CalibrationRow ReadRow(const Json& json, size_t sizes) {
  const Result<LayoutChoice> parsed = TryParseLayout(json.at("layout").get<std::string>());
  CalibrationRow row;
  row.choice.k = json.at("k").get<int>();
  Require(parsed.ok() && IsValidHashCount(parsed->layout, row.choice.k), "an unknown layout or k");
  row.choice.layout = parsed->layout;
  row.ns_per_key = json.at("ns_per_key").get<std::vector<double>>();
  Require(row.ns_per_key.size() == sizes, "a row whose length is not the number of sizes");
  for (const double ns : row.ns_per_key) Require(std::isfinite(ns) && ns > 0, "times that are not above 0");
  return row;
}

}  // namespace

std::optional<double> Calibration::NsPerKey(LayoutChoice choice, uint64_t memory_bytes) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.choice == choice; });
  if (row == rows.end()) return std::nullopt;
  const auto above = std::lower_bound(size_bytes.begin(), size_bytes.end(), memory_bytes);
  if (above == size_bytes.begin()) return row->ns_per_key.front();
  if (above == size_bytes.end()) return row->ns_per_key.back();
  const auto i = static_cast<size_t>(above - size_bytes.begin());
  const double low = std::log2(static_cast<double>(size_bytes[i - 1]));
  const double high = std::log2(static_cast<double>(size_bytes[i]));
  const double share = (std::log2(static_cast<double>(memory_bytes)) - low) / (high - low);
  return std::lerp(row->ns_per_key[i - 1], row->ns_per_key[i], share);
}

Json CalibrationJson(const Calibration& calibration) {
  Json json;
  json["kind"] = kKind;
  json["format"] = kFormat;
  json["version"] = calibration.machine.version;
  json["cpu"] = calibration.machine.cpu;
  json["caches"] = calibration.machine.caches;
  json["target"] = calibration.machine.target;
  json["measured_at"] = calibration.measured_at;
  json["size_bytes"] = calibration.size_bytes;
  json["lookup_batch"] = Json::array();
  for (const CalibrationRow& row : calibration.rows) {
    Json entry;
    entry["layout"] = LayoutName(row.choice.layout, row.choice.k);
    entry["k"] = row.choice.k;
    entry["ns_per_key"] = row.ns_per_key;
    json["lookup_batch"].push_back(std::move(entry));
  }
  return json;
}

Calibration CalibrationFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Require(json.is_object() && json.value("kind", Json()) == Json(kKind), "not a calibration");
  Require(json.value("format", Json()) == Json(kFormat), "another format version");
  try {
    Calibration calibration;
    calibration.machine = {json.at("cpu").get<std::string>(), json.at("caches").get<std::string>(),
                           json.at("target").get<std::string>(), json.at("version").get<std::string>()};
    calibration.measured_at = json.at("measured_at").get<std::string>();
    calibration.size_bytes = ReadSizes(json.at("size_bytes"));
    for (const Json& row : json.at("lookup_batch")) {
      calibration.rows.push_back(ReadRow(row, calibration.size_bytes.size()));
    }
    Require(!calibration.rows.empty(), "no measurements");
    return calibration;
  } catch (const Json::exception&) {
    throw std::runtime_error("keys that are missing or of the wrong type");
  }
}

}  // namespace bloomline::cli
