# Compiler settings of bloomline's own targets.

# Directory-wide: objects with and without a sanitizer's runtime do not mix.
if(BLOOMLINE_SANITIZE)
  add_compile_options(-fsanitize=${BLOOMLINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BLOOMLINE_SANITIZE})
endif()

set(bloomline_bin_dir "${PROJECT_BINARY_DIR}/bin")
set(bloomline_lib_dir "${PROJECT_BINARY_DIR}/lib")

function(bloomline_own_code target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<BOOL:${BLOOMLINE_WERROR}>:-Werror>)
  # g++ 12 warns of overlapping copies inside its own std::string operator+ (GCC bug 105651, fixed in 13).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()

# For code that is not hot: programs and tests. Sanitized, it takes four times as long to compile with -O1 as without.
function(bloomline_cold_code target release_option)
  if(BLOOMLINE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${release_option}>)
  endif()
endfunction()

if(BLOOMLINE_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "BLOOMLINE_BUILD_FUZZERS needs clang's libFuzzer; CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}")
endif()
# What the fuzzers are to explore.
function(bloomline_fuzzed target)
  if(BLOOMLINE_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
