// The layouts that tune compares. A new layout joins here; calibrate.cc must know how to fill and probe it.
#pragma once

#include <string>
#include <vector>

#include "bloomline/layout.h"

namespace bloomline::cli {

// Every layout with every k that it has, those of counters last.
std::vector<LayoutChoice> TunedLayouts();

// "word64 k=5", "split512".
std::string ChoiceText(LayoutChoice choice);

// "kWord64", as C++ code names it.
const char* LayoutConstant(LayoutChoice choice);

}  // namespace bloomline::cli
