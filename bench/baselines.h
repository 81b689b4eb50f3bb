// What people use otherwise, measured in the same run on the same keys: rows lookup_one/NAME/SIZE and
// insert_one/NAME/SIZE (build/NAME/SIZE where a filter is only made from all keys at once).
//
//   unordered_set   std::unordered_set<uint64_t>, exact; SIZE is that of a filter of 10 bits per key for the same keys
//   classic_plain   the textbook filter, 10 bits per key, k = 7, double hashing of XXH3 modulo m
//   split256_plain  the split-block filter without SIMD
//   libbloom        Debian's libbloom-dev, where it was found
//   leveldb         LevelDB's NewBloomFilterPolicy(10), Debian's libleveldb-dev, where it was found
//
// Keys are 8-byte integers, hashed by each as its users would have it.
#pragma once

#include <string>
#include <vector>

namespace bloomline::bench {

// Registers the rows with Google Benchmark. They are verified as the others are.
void RegisterBaselines();

// Those that this program was built with, by name.
std::vector<std::string> BaselineNames();

}  // namespace bloomline::bench
