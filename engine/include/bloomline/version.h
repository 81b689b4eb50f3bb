#pragma once

#include "bloomline/export.h"

#define BLOOMLINE_VERSION_MAJOR 0
#define BLOOMLINE_VERSION_MINOR 1
#define BLOOMLINE_VERSION_PATCH 0

namespace bloomline {

// The library's version at run time, e.g. "0.1.0".
BLOOMLINE_API const char* Version() noexcept;

}  // namespace bloomline
