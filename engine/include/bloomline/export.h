// What the shared library exports, and what is never more than inline. Everything else is hidden.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define BLOOMLINE_API __attribute__((visibility("default")))
// For functions in headers that compute: no copy of them outside their callers. A program may be built from parts for
// different processors (-mavx2 and none); of an inline function's copies the linker keeps any one, for all parts.
#define BLOOMLINE_INLINE __attribute__((always_inline))
#else
#define BLOOMLINE_API
#define BLOOMLINE_INLINE
#endif
