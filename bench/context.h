// What the figures belong to: machine, compiler, library. Goes into the output's context.
#pragma once

#include <string_view>

namespace bloomline::bench {

void AddContext(std::string_view target);

}  // namespace bloomline::bench
