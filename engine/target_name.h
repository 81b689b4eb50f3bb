// Target names as people write them.
#pragma once

#include <string>
#include <string_view>

#include "bloomline/error.h"

namespace bloomline::detail {

// The canonical name of a supported target, written in any case; "best" and "" give the best one. `source` begins the
// message of the error: an argument's or a variable's name.
Result<std::string> CanonicalTarget(std::string_view name, const char* source);

}  // namespace bloomline::detail
