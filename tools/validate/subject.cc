#include "tools/validate/subject.h"

#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "tools/cli_error.h"

namespace bloomline::cli::validate {
namespace {

FilterConfig ConfigFor(Layout layout, int k, uint64_t keys, double bits_per_key) {
  return Must(FilterConfig::TryForBitsPerKey(keys, bits_per_key, layout, k));
}

class FilterSubject final : public Subject {
 public:
  explicit FilterSubject(const SubjectOptions& options)
      : broken_(options.broken),
        filter_(Must(Filter::Create(ConfigFor(options.layout, options.k, options.keys, options.bits_per_key)
                                        .WithSeed(options.seed + OtherSeed(options))
                                        .WithTarget(options.target)))) {}

  void Clear() override { filter_.Clear(); }

  void Insert(const KeyChunk& keys) override {
    if (UsesHashes()) {
      filter_.InsertHashBatch(BrokenHashes(keys));
    } else if (keys.type == KeyType::kU64) {
      filter_.InsertBatch(Kept(std::span<const uint64_t>(keys.u64)));
    } else if (keys.type == KeyType::kU32) {
      filter_.InsertBatch(Kept(std::span<const uint32_t>(keys.u32)));
    } else {
      filter_.InsertBatch(Kept(std::span<const std::string_view>(keys.strings)));
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
  Filter filter_;
  std::vector<uint64_t> hashes_;
};

std::unique_ptr<Subject> MakeFilterSubject(const SubjectOptions& options) {
  return std::make_unique<FilterSubject>(options);
}

}  // namespace

const std::vector<LayoutSpec>& Layouts() {
  static const std::vector<LayoutSpec> all = {
      {"word64", Layout::kWord64, 5, 0, MakeFilterSubject},
      {"sector512z2", Layout::kSector512z2, 6, 0, MakeFilterSubject},
      {"sector512z4", Layout::kSector512z4, 8, 0, MakeFilterSubject},
      {"split512", Layout::kSplit512, 8, 8, MakeFilterSubject},
      {"sector512z8", Layout::kSector512z8, 16, 16, MakeFilterSubject},
      {"line512", Layout::kLine512, 7, 0, MakeFilterSubject},
      {"split256", Layout::kSplit256, 8, 8, MakeFilterSubject},
  };
  return all;
}

uint64_t BlocksFor(Layout layout, int k, uint64_t keys, double bits_per_key) {
  return ConfigFor(layout, k, keys, bits_per_key).blocks();
}

}  // namespace bloomline::cli::validate
