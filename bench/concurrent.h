// What several threads do together, on split512. ConcurrentFilter:
//
//   insert_batch/split512/1MiB/shared    keys that are in the filter already: no word is written
//   build/split512/1MiB/shared           from an empty filter to the design load: the price of atomic ORs
//   concurrent/split512/16MiB/writers:2  two threads insert batches of new keys into a filter that holds half its
//                                        design load at first, two look up ten times as many, all at once: all keys per
//                                        second, and inserts_per_second and lookups_per_second
// ThreadPool, with one thread and with all:
//
//   build/split512/512MiB/pool:N         InsertBulk of the design load into an empty filter, wall time
//   lookup_batch/split512/512MiB/pool:N  4 Mi keys a pass, half of them members, wall time
#pragma once

#include <string>

namespace bloomline::bench {

void RegisterConcurrent(const std::string& target);

}  // namespace bloomline::bench
