#include "bloomline/version.h"

#include "bloomline/export.h"

// Two steps, so that the macros' values are quoted and not their names.
#define BLOOMLINE_QUOTE(text) #text
// NOLINTNEXTLINE(bugprone-macro-parentheses): they would be quoted too
#define BLOOMLINE_DOTTED(major, minor, patch) BLOOMLINE_QUOTE(major.minor.patch)

namespace bloomline {

const char* Version() noexcept {
  return BLOOMLINE_DOTTED(BLOOMLINE_VERSION_MAJOR, BLOOMLINE_VERSION_MINOR, BLOOMLINE_VERSION_PATCH);
}

}  // namespace bloomline
