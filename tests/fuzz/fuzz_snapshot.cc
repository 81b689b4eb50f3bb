// Any bytes as a snapshot, of every kind that is read: an error, or an object that answers and is saved as the same
// bytes again. The mutator repairs the checksums, which would otherwise stop every change at the door.
#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bloomline/counting_filter.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace bloomline::fuzz {
namespace {

// Where the header's fields are: engine/snapshot_header.h, written a second time.
constexpr size_t kHeader = 4096;
constexpr size_t kLengthAt = 16;
constexpr size_t kChecksumAt = 24;
constexpr size_t kSectionCountAt = 36;
constexpr size_t kSectionsAt = 256;
constexpr size_t kFieldsEnd = kSectionsAt + 2 * 32;  // of two sections

uint64_t Load(const uint8_t* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void Store(uint8_t* at, uint64_t value) { std::memcpy(at, &value, sizeof value); }

void Seal(uint8_t* data, size_t size, bool lengths) {
  if (size < kHeader) return;
  const size_t sections = std::min<size_t>(data[kSectionCountAt], 2);
  if (lengths) {
    Store(data + kLengthAt, size);
    if (sections > 0) {
      uint8_t* const last = data + kSectionsAt + 32 * (sections - 1);
      const uint64_t offset = Load(last + 8);
      if (offset <= size) Store(last + 16, size - offset);
    }
  }
  for (size_t i = 0; i < sections; ++i) {
    uint8_t* const entry = data + kSectionsAt + 32 * i;
    const uint64_t offset = Load(entry + 8);
    const uint64_t length = Load(entry + 16);
    if (offset <= size && length <= size - offset) {
      Store(entry + 24, XXH3_64bits(data + offset, static_cast<size_t>(length)));
    }
  }
  Store(data + kChecksumAt, 0);
  Store(data + kChecksumAt, XXH3_64bits(data, kHeader));
}

template <class F>
void Exercise(const F& filter, std::span<const std::byte> bytes, bool check_bytes) {
  uint64_t keys[70];
  for (size_t i = 0; i < std::size(keys); ++i) keys[i] = i * 0x9e3779b97f4a7c15;
  uint64_t bitmap[2];
  filter.MayContainBatch(std::span<const uint64_t>(keys), bitmap);
  for (size_t i = 0; i < std::size(keys); ++i) {
    Require(filter.MayContain(keys[i]) == BitOf(bitmap, i), "one key and a batch answer alike");
  }
  (void)filter.EstimatedCount();
  (void)filter.FillFraction();
  if (!check_bytes) return;
  std::vector<std::byte> again(filter.SerializedBytes());
  Result<size_t> written = filter.TrySerializeTo(again);
  Require(Must(written) == bytes.size(), "what was loaded has the length that it had");
  Require(std::memcmp(again.data(), bytes.data(), bytes.size()) == 0, "what was loaded is saved as it was");
}

}  // namespace
}  // namespace bloomline::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using bloomline::fuzz::Seal;
  const unsigned choice = seed % 16;
  if (choice == 0 || size < bloomline::fuzz::kHeader) return LLVMFuzzerMutate(data, size, max_size);
  if (choice < 9) {
    // The fields; the 4 KiB header is mostly zeros.
    LLVMFuzzerMutate(data, bloomline::fuzz::kFieldsEnd, bloomline::fuzz::kFieldsEnd);
  } else {
    const size_t payload = size - bloomline::fuzz::kHeader;
    size = bloomline::fuzz::kHeader + (payload == 0 ? 0
                                                    : LLVMFuzzerMutate(data + bloomline::fuzz::kHeader, payload,
                                                                       max_size - bloomline::fuzz::kHeader));
  }
  Seal(data, size, choice % 2 == 0);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bloomline;
  using namespace bloomline::fuzz;
  alignas(64) static uint8_t buffer[1 << 16];
  if (size > sizeof buffer) return 0;
  std::memcpy(buffer, data, size);
  const auto bytes = std::as_bytes(std::span(buffer).first(size));
  MemoryPolicy memory;
  memory.pages = Pages::kDefault;
  const Result<FilterView> trusting = FilterView::TryWrap(bytes, Verify::kHeaderOnly);
  const Result<FilterView> view = FilterView::TryWrap(bytes);
  if (trusting.ok()) Exercise(*trusting, bytes, false);
  if (view.ok()) {
    Require(trusting.ok(), "what passes all checks passes some");
    Exercise(*view, bytes, true);
  }
  if (const Result<Filter> filter = Filter::TryDeserialize(bytes, memory); filter.ok()) {
    Require(view.ok(), "a filter that loads can be viewed");
    Exercise(*filter, bytes, true);
  }
  if (Result<CountingFilter> filter = CountingFilter::TryDeserialize(bytes, memory); filter.ok()) {
    Require(view.ok(), "a counting filter that loads can be viewed");
    Exercise(*filter, bytes, true);
    (void)filter->Overflow();
    if (filter->Add(uint64_t{1})) Require(filter->MayContain(uint64_t{1}), "an added key is found");
    (void)filter->Remove(uint64_t{1});
  }
  return 0;
}
