// What a counting filter does when a counter is full.
#pragma once

#include <cstdint>

#include "bloomline/export.h"

namespace bloomline {

// The numbers are part of the snapshot format.
enum class OverflowPolicy : uint8_t {
  kNone = 0,      // no counters
  kSaturate = 1,  // a full counter stays full for good: never a false negative, the FPR rises as such counters gather
  kReject = 2,    // the add is refused as a whole and the filter stays as it was: exact
  kSpill = 3,     // what is beyond goes to a side table and comes back on removal: exact
};
BLOOMLINE_API const char* OverflowPolicyName(OverflowPolicy policy) noexcept;  // "none", "saturate", "reject", "spill"

}  // namespace bloomline
