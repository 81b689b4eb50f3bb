// ConcurrentFilter's rows, on split512:
//
//   insert_batch/split512/1MiB/shared    keys that are in the filter already: no word is written
//   build/split512/1MiB/shared           from an empty filter to the design load: the price of atomic ORs
//   concurrent/split512/16MiB/writers:2  two threads insert in batches, two look up, all at once: keys of both kinds
//   per
//                                        second, and each kind's (inserts, lookups)
#pragma once

namespace bloomline::bench {

void RegisterConcurrent();

}  // namespace bloomline::bench
