// A program's part that is compiled for one processor: everything inline of the public headers, in a function of this
// part only. two_targets.cc and two_targets_part.cc include it, compiled with different -m flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include <bloomline/bloomline.h>

// 0, or the number of the step that went wrong.
static int UseEverything(const char* path) {
  using namespace bloomline;  // NOLINT(google-build-using-namespace)
  const auto made = FilterConfig::TryForFpr(1000, 0.01);
  if (!made) return 1;
  FilterConfig config = *made;
  config = config.WithSeed(3);
  MemoryPolicy memory = config.memory();
  memory.pages = Pages::kDefault;
  FilterConfig other = config.WithMemory(memory);
  other = std::move(config);
  config = other;
  if (config.target_fpr() != 0.01 || config.bits() == 0) return 2;

  auto created = Filter::Create(config);
  if (!created.ok()) return 3;
  Filter filter = std::move(created).value();
  uint64_t keys[1000], bitmap[16] = {}, hashes[1000];
  for (uint64_t i = 0; i < 1000; ++i) {
    keys[i] = 7 * i;
    hashes[i] = HashInteger(7 * i, 3);
    filter.Insert(keys[i]);
  }
  filter.Insert("text");
  filter.Insert(uint32_t{7});
  if (filter.TryInsert(keys[5]) || filter.TryInsertHash(hashes[6])) return 4;
  filter.MayContainBatch(std::span<const uint64_t>(keys), bitmap);
  for (int word = 0; word < 15; ++word) {
    if (bitmap[word] != ~uint64_t{0}) return 5;
  }
  int maybe = 0;
  for (uint64_t key = 0; key < 3000; ++key) {
    maybe += filter.MayContain(7 * key + 1) ? 1 : 0;
    if (key < 1000 && !(filter.MayContain(keys[key]) && filter.MayContainHash(hashes[key]))) return 6;
  }
  if (maybe > 300 || filter.target_fpr() != 0.01 || filter.words().empty()) return 7;
  filter.InsertHash(FilterReader::Remixed(hashes[0]));

  const int32_t offsets[] = {0, 3, 5};
  const auto column = BinaryColumn::Create(std::span<const int32_t>(offsets), "hello");
  if (!column || (*column)[1].size() != 2) return 8;
  filter.InsertBatch(*column);
  if (!filter.MayContain("hel")) return 9;

  if (!filter.TrySave(path).ok()) return 10;
  auto loaded = FilterView::TryMap(path);
  if (!loaded) return 11;
  FilterView view = std::move(*loaded);
  if (!view.MayContain("text") || FilterView::TryMap("/nonexistent/filter").ok()) return 12;
  MemoryReport report = filter.memory();
  MemoryReport report_copy = report;
  report = std::move(report_copy);
  if (report.copies != 1) return 13;

  auto counting = CountingFilter::Create(FilterConfig::ForBits(51200, 8, Layout::kCounting4));
  if (!counting || !counting->Add(keys[1]) || counting->Count(keys[1]) != 1 || !counting->Remove(keys[1])) return 14;
  if (counting->Overflow().policy != OverflowPolicy::kSaturate) return 15;
  auto concurrent = ConcurrentFilter::Create(config);
  if (!concurrent || !(*concurrent)->TryInsert(keys[1]) || !(*concurrent)->MayContain(keys[1])) return 16;
  const auto pool = ThreadPool::Create(1);
  if (!pool.ok() || !filter.TryInsertBulk(std::span<const uint64_t>(keys)).ok()) return 17;
  const auto topology = Topology::Machine();
  PlacementChoice choice = ChoosePlacement(*topology, 1000);
  if (choice.why.empty() && choice.placement == Placement::kReplicate) return 18;
#if defined(__cpp_exceptions)
  try {
    FilterConfig::ForFpr(0, 2);
    return 19;
  } catch (const Error& error) {
    Error copy = error;
    copy = error;
    if (copy.code() != ErrorCode::kInvalidArgument) return 20;
  }
  try {
    FilterConfig::TryForFpr(0, 2).value();
    return 21;
  } catch (const Error& error) {
    if (error.os_error() != 0) return 22;
  }
#endif
  return 0;
}
