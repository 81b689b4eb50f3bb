// What the tests of snapshots share: temporary folders, files as bytes, headers changed and sealed again.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "tests/child_process.h"
#include "tests/test_util.h"

namespace bloomline::test {

// A folder of its own, gone with all that is in it at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = ::testing::TempDir() + "/bloomline_test_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

inline std::vector<std::byte> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Bytes that start at a multiple of 64.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size) : size_(size), lines_((size + 63) / 64) {}
  explicit AlignedBytes(std::span<const std::byte> bytes) : AlignedBytes(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), span().begin());
  }
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(lines_)).first(size_); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  size_t size_;
  std::vector<Line> lines_;
};

inline std::vector<std::byte> Serialized(const FilterReader& filter) {
  std::vector<std::byte> bytes(filter.SerializedBytes());
  EXPECT_EQ(filter.SerializeTo(bytes), bytes.size());
  return bytes;
}

// ---- Header fields at their offsets, by the drawing of the format and not by the library's constants.
inline void Put(std::span<std::byte> bytes, size_t offset, size_t width, uint64_t value) {
  for (size_t i = 0; i < width; ++i) bytes[offset + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}
inline uint64_t Get(std::span<const std::byte> bytes, size_t offset, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= std::to_integer<uint64_t>(bytes[offset + i]) << (8 * i);
  return value;
}
// Makes the header's checksum right.
inline void Seal(std::span<std::byte> bytes) {
  Put(bytes, 24, 8, 0);
  Put(bytes, 24, 8, XXH3_64bits(bytes.data(), 4096));
}

template <class T>
ErrorCode CodeOf(const Result<T>& result) {
  return result.ok() ? ErrorCode{} : result.error().code();
}
template <class T>
std::string MessageOf(const Result<T>& result) {
  return result.ok() ? std::string("no error") : result.error().what();
}

// ---- A small filter with something in it.
inline Filter SampleFilter(Layout layout, int k, uint64_t blocks, uint64_t keys, uint64_t seed = 7) {
  Filter filter(SmallConfig(layout, k, blocks, "", seed).WithKeyKind(KeyKind::kU64));
  Random random(seed + keys);
  filter.InsertBatch(std::span<const uint64_t>(random.Take(keys)));
  return filter;
}

// Everything that a snapshot carries.
inline void ExpectSame(const FilterReader& a, const FilterReader& b) {
  EXPECT_EQ(a.layout(), b.layout());
  EXPECT_EQ(a.k(), b.k());
  EXPECT_EQ(a.blocks(), b.blocks());
  EXPECT_EQ(a.seed(), b.seed());
  EXPECT_EQ(a.key_kind(), b.key_kind());
  EXPECT_EQ(a.expected_keys(), b.expected_keys());
  EXPECT_EQ(a.target_fpr(), b.target_fpr());
  EXPECT_EQ(a.InsertedCount(), b.InsertedCount());
  ASSERT_EQ(a.words().size(), b.words().size());
  EXPECT_EQ(std::memcmp(a.words().data(), b.words().data(), a.words().size_bytes()), 0);
}

// A number from a file of "name: value" lines, as /proc/self/status and /proc/self/io are; 0 where it is not there.
inline uint64_t ProcValue(const char* file_name, const std::string& name) {
  std::ifstream file(file_name);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
  }
  return 0;
}

}  // namespace bloomline::test
