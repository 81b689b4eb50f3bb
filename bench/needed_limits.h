// Every run has the limits of its rows: a time alone says nothing to whoever has another machine.
#pragma once

#include <string>
#include <vector>

namespace bloomline::bench {

// `filter`, as of --benchmark_filter, widened to the limits of the rows that it matches among `rows`. What begins with
// '-' (all rows but ...) and what is no regular expression is returned as it is.
std::string WithLimits(const std::string& filter, const std::vector<std::string>& rows);

}  // namespace bloomline::bench
