#include "tools/validate/subject.h"

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "tools/cli_error.h"

namespace bloomline::cli::validate {
namespace {

// Of counting layouts `bits_per_key` counts counters.
FilterConfig ConfigFor(Layout layout, int k, uint64_t keys, double bits_per_key) {
  if (IsCounting(layout)) bits_per_key *= BlockBits(layout) / CellsPerBlock(layout);
  return Must(FilterConfig::TryForBitsPerKey(keys, bits_per_key, layout, k));
}

template <class Keys>
void InsertInto(Filter& filter, const Keys& keys) {
  filter.InsertBatch(keys);
}
template <class Keys>
void InsertInto(CountingFilter& filter, const Keys& keys) {
  filter.AddBatch(keys);
}
void InsertHashesInto(Filter& filter, std::span<const uint64_t> hashes) { filter.InsertHashBatch(hashes); }
void InsertHashesInto(CountingFilter& filter, std::span<const uint64_t> hashes) { filter.AddHashBatch(hashes); }

// T: Filter or CountingFilter.
template <class T>
class FilterSubject final : public Subject {
 public:
  explicit FilterSubject(const SubjectOptions& options)
      : broken_(options.broken),
        filter_(Must(T::Create(ConfigFor(options.layout, options.k, options.keys, options.bits_per_key)
                                   .WithSeed(options.seed + OtherSeed(options))
                                   .WithTarget(options.target)))) {}

  void Clear() override { filter_.Clear(); }

  void Insert(const KeyChunk& keys) override {
    if (UsesHashes()) {
      InsertHashesInto(filter_, BrokenHashes(keys));
    } else if (keys.type == KeyType::kU64) {
      InsertInto(filter_, Kept(std::span<const uint64_t>(keys.u64)));
    } else if (keys.type == KeyType::kU32) {
      InsertInto(filter_, Kept(std::span<const uint32_t>(keys.u32)));
    } else {
      InsertInto(filter_, Kept(std::span<const std::string_view>(keys.strings)));
    }
  }

  void Lookup(const KeyChunk& keys, std::span<uint64_t> bitmap) override {
    if (UsesHashes()) {
      filter_.MayContainHashBatch(BrokenHashes(keys), bitmap);
    } else if (keys.type == KeyType::kU64) {
      filter_.MayContainBatch(std::span<const uint64_t>(keys.u64), bitmap);
    } else if (keys.type == KeyType::kU32) {
      filter_.MayContainBatch(std::span<const uint32_t>(keys.u32), bitmap);
    } else {
      filter_.MayContainBatch(std::span<const std::string_view>(keys.strings), bitmap);
    }
  }

  double FillFpr() const override { return filter_.MeasuredFillFpr(); }
  double FillFraction() const override { return filter_.FillFraction(); }
  std::span<const uint64_t> Words() const override { return filter_.words(); }

 private:
  static uint64_t OtherSeed(const SubjectOptions& options) {
    return options.broken == Break::kTarget && options.target != SupportedTargets().front() ? 1 : 0;
  }
  bool UsesHashes() const { return broken_ == Break::kHash || broken_ == Break::kReuse; }

  template <class Key>
  std::span<const Key> Kept(std::span<const Key> keys) const {
    return broken_ == Break::kLose ? keys.first(keys.size() - (keys.size() + 999) / 1000) : keys;
  }

  std::span<const uint64_t> BrokenHashes(const KeyChunk& keys) {
    hashes_.resize(keys.size());
    for (size_t i = 0; i < hashes_.size(); ++i) {
      hashes_[i] = broken_ == Break::kHash ? OneMultiplication(keys, i) : ReusedBits(keys, i);
    }
    return hashes_;
  }

  // For strings what many a home-made hash does.
  static uint64_t OneMultiplication(const KeyChunk& keys, size_t i) {
    if (keys.type != KeyType::kString) return keys.Fingerprint(i) * 0xbf58476d1ce4e5b9;
    uint64_t hash = 0;
    for (const char c : keys.strings[i]) hash = hash * 31 + static_cast<unsigned char>(c);
    return hash;
  }

  uint64_t ReusedBits(const KeyChunk& keys, size_t i) const {
    const uint64_t good = keys.type == KeyType::kString ? HashBytes(keys.strings[i], filter_.seed())
                                                        : HashInteger(keys.Fingerprint(i), filter_.seed());
    const uint64_t top = good >> 32;
    return top << 32 | (top * 0x85ebca6b & 0xffffffff);
  }

  Break broken_;
  T filter_;
  std::vector<uint64_t> hashes_;
};

template <class T>
std::unique_ptr<Subject> MakeSubject(const SubjectOptions& options) {
  return std::make_unique<FilterSubject<T>>(options);
}

}  // namespace

const std::vector<LayoutSpec>& Layouts() {
  static const std::vector<LayoutSpec> all = {
      {"word64", Layout::kWord64, 5, 0, MakeSubject<Filter>},
      {"sector512z2", Layout::kSector512z2, 6, 0, MakeSubject<Filter>},
      {"sector512z4", Layout::kSector512z4, 8, 0, MakeSubject<Filter>},
      {"split512", Layout::kSplit512, 8, 8, MakeSubject<Filter>},
      {"sector512z8", Layout::kSector512z8, 16, 16, MakeSubject<Filter>},
      {"line512", Layout::kLine512, 7, 0, MakeSubject<Filter>},
      {"split256", Layout::kSplit256, 8, 8, MakeSubject<Filter>},
      {"counting4", Layout::kCounting4, 8, 8, MakeSubject<CountingFilter>},
      {"counting8", Layout::kCounting8, 8, 8, MakeSubject<CountingFilter>},
  };
  return all;
}

uint64_t BlocksFor(Layout layout, int k, uint64_t keys, double bits_per_key) {
  return ConfigFor(layout, k, keys, bits_per_key).blocks();
}

}  // namespace bloomline::cli::validate
