# build/bin/bloomline from tools/*.cc, build/bin/bloomline_bench from bench/*.cc.
file(GLOB tools_sources CONFIGURE_DEPENDS tools/*.cc tools/tune/*.cc tools/validate/*.cc)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cc)

# Programs find the library beside them, in the build tree and after installation.
file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
function(bloomline_program target)
  bloomline_own_code(${target})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${bloomline_bin_dir}"
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
endfunction()

if(BLOOMLINE_BUILD_TOOLS AND tools_sources)
  find_package(CLI11 QUIET CONFIG)
  find_package(nlohmann_json QUIET CONFIG)
  if(NOT CLI11_FOUND OR NOT nlohmann_json_FOUND)
    message(FATAL_ERROR "The command line program needs CLI11 and nlohmann-json (libcli11-dev, nlohmann-json3-dev; "
                        "tools/setup.sh installs them). -DBLOOMLINE_BUILD_TOOLS=OFF builds the library alone.")
  endif()
  # All but main.cc: a fuzzer calls it too.
  list(FILTER tools_sources EXCLUDE REGEX "/main\\.cc$")
  add_library(bloomline_cli_objects OBJECT ${tools_sources})
  bloomline_own_code(bloomline_cli_objects)
  bloomline_fuzzed(bloomline_cli_objects)
  target_include_directories(bloomline_cli_objects PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(bloomline_cli_objects PUBLIC CLI11::CLI11 nlohmann_json::nlohmann_json
    PRIVATE bloomline::bloomline)
  # The hot loops are the library's; -O3 takes a third longer over CLI11 and JSON.
  bloomline_cold_code(bloomline_cli_objects -O2)
  if(BLOOMLINE_SANITIZE MATCHES "undefined")
    target_compile_options(bloomline_cli_objects PRIVATE -fno-sanitize=undefined)  # a minute per file of CLI11
  endif()
  add_executable(bloomline_cli tools/main.cc)
  bloomline_program(bloomline_cli)
  set_target_properties(bloomline_cli PROPERTIES OUTPUT_NAME bloomline)
  target_link_libraries(bloomline_cli PRIVATE bloomline_cli_objects bloomline::bloomline)
endif()

if(BLOOMLINE_BUILD_TOOLS)
  # The measuring half of tools/quickstart.sh. Not installed.
  add_executable(quickstart_compare tools/quickstart/compare.cc)
  bloomline_program(quickstart_compare)
  target_link_libraries(quickstart_compare PRIVATE bloomline::bloomline)
endif()

if(BLOOMLINE_BUILD_BENCH AND bench_sources)
  find_package(benchmark QUIET CONFIG)
  if(benchmark_FOUND)
    add_executable(bloomline_bench ${bench_sources})
    bloomline_program(bloomline_bench)
    target_include_directories(bloomline_bench PRIVATE ${PROJECT_SOURCE_DIR})
    string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" bench_flags)
    string(STRIP "${CMAKE_CXX_FLAGS} ${${bench_flags}}" bench_flags)
    string(REPLACE "\"" "'" bench_flags "${bench_flags}")
    target_compile_definitions(bloomline_bench PRIVATE ${library_definitions} BLOOMLINE_BENCH_FLAGS="${bench_flags}")
    # The commit, for the context of every result.
    set(commit_header "${PROJECT_BINARY_DIR}/generated/bench/commit.h")
    add_custom_target(bloomline_commit BYPRODUCTS "${commit_header}"
      COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${commit_header}"
        -P "${PROJECT_SOURCE_DIR}/cmake/commit.cmake")
    add_dependencies(bloomline_bench bloomline_commit)
    target_include_directories(bloomline_bench PRIVATE "${PROJECT_BINARY_DIR}/generated")
    # Static: the limits are measured with internal kernels, which the shared library does not export.
    target_link_libraries(bloomline_bench PRIVATE bloomline::bloomline_static benchmark::benchmark
      ${library_dependencies})
    # The plain split-block filter is what the name says.
    set_source_files_properties(bench/split_block_plain.cc PROPERTIES COMPILE_OPTIONS
      "$<IF:$<CXX_COMPILER_ID:GNU>,-fno-tree-vectorize,-fno-vectorize;-fno-slp-vectorize>")
    # Other filters to measure against, where they are installed.
    find_path(libbloom_include bloom.h)
    find_library(libbloom_library bloom)
    if(libbloom_include AND libbloom_library)
      target_include_directories(bloomline_bench SYSTEM PRIVATE ${libbloom_include})
      target_link_libraries(bloomline_bench PRIVATE ${libbloom_library})
      target_compile_definitions(bloomline_bench PRIVATE BLOOMLINE_BENCH_LIBBLOOM)
    endif()
    # Not by its package file, which asks for snappy's development files without depending on them.
    find_path(leveldb_include leveldb/filter_policy.h)
    find_library(leveldb_library leveldb)
    if(leveldb_include AND leveldb_library)
      target_include_directories(bloomline_bench SYSTEM PRIVATE ${leveldb_include})
      target_link_libraries(bloomline_bench PRIVATE ${leveldb_library})
      target_compile_definitions(bloomline_bench PRIVATE BLOOMLINE_BENCH_LEVELDB)
    endif()
  else()
    message(STATUS "No benchmarks: Google Benchmark not found (libbenchmark-dev; tools/setup.sh bench)")
  endif()
endif()

if(BLOOMLINE_BUILD_BENCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT CMAKE_CROSSCOMPILING)
  # For tools/instructions.sh, which asks for it; not part of `all`.
  find_path(callgrind_include valgrind/callgrind.h)
  if(callgrind_include)
    add_executable(bloomline_instructions EXCLUDE_FROM_ALL bench/instructions/main.cc)
    bloomline_program(bloomline_instructions)
    target_include_directories(bloomline_instructions PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(bloomline_instructions SYSTEM PRIVATE ${callgrind_include})
    string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" instructions_flags)
    string(STRIP "${CMAKE_CXX_FLAGS} ${${instructions_flags}}" instructions_flags)
    string(REPLACE "\"" "'" instructions_flags "${instructions_flags}")
    if(BLOOMLINE_SANITIZE)
      string(APPEND instructions_flags " -fsanitize=${BLOOMLINE_SANITIZE}")
    endif()
    target_compile_definitions(bloomline_instructions PRIVATE ${library_definitions}
      BLOOMLINE_BENCH_FLAGS="${instructions_flags}")
    # Without libhwy where nothing needs it: see bench/instructions/main.cc.
    target_link_options(bloomline_instructions PRIVATE LINKER:--as-needed)
    target_link_libraries(bloomline_instructions PRIVATE bloomline::bloomline_static ${library_dependencies})
  endif()
endif()
