# libbloomline.so and libbloomline.a from one set of position-independent objects.
file(GLOB library_sources CONFIGURE_DEPENDS engine/*.cc kernels/*.cc)

set(library_dependencies hwy::hwy PkgConfig::hwloc PkgConfig::xxhash Threads::Threads)
# Highway leaves out its AVX3_DL target (Ice Lake and later) unless asked for it.
set(library_definitions HWY_WANT_AVX3_DL)
if(BLOOMLINE_DISABLED_TARGETS)
  list(TRANSFORM BLOOMLINE_DISABLED_TARGETS PREPEND "HWY_" OUTPUT_VARIABLE disabled_targets)
  list(JOIN disabled_targets "|" disabled_targets)
  list(APPEND library_definitions "HWY_DISABLED_TARGETS=(${disabled_targets})")
endif()
if(BLOOMLINE_BREAK_TARGET)
  list(APPEND library_definitions "BLOOMLINE_BREAK_TARGET=HWY_${BLOOMLINE_BREAK_TARGET}")
endif()

add_library(bloomline_objects OBJECT ${library_sources})
bloomline_own_code(bloomline_objects)
bloomline_fuzzed(bloomline_objects)
target_include_directories(bloomline_objects PRIVATE engine/include ${PROJECT_SOURCE_DIR})
target_compile_definitions(bloomline_objects PRIVATE ${library_definitions})
target_link_libraries(bloomline_objects PRIVATE ${library_dependencies})
# Highway's header includes the kernels once per target. What a system header includes is one as well: clang would warn
# of nothing in them, and measure no coverage, but for the last target.
target_compile_options(bloomline_objects PRIVATE $<$<CXX_COMPILER_ID:Clang>:--no-system-header-prefix=hwy/foreach_target>)
set_target_properties(bloomline_objects PROPERTIES
  POSITION_INDEPENDENT_CODE ON
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)

# Of a vector kernel, clang takes three times as long with these checks; AddressSanitizer sees what they would see.
if(BLOOMLINE_SANITIZE MATCHES "undefined")
  file(GLOB kernel_sources kernels/*.cc)
  set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS
    "-fno-sanitize=null,object-size,pointer-overflow")
endif()

function(bloomline_library target)
  add_library(bloomline::${target} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/engine/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${library_dependencies})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME bloomline
    LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY "${bloomline_lib_dir}"
    ARCHIVE_OUTPUT_DIRECTORY "${bloomline_lib_dir}")
endfunction()

add_library(bloomline_static STATIC $<TARGET_OBJECTS:bloomline_objects>)
bloomline_library(bloomline_static)

if(BUILD_SHARED_LIBS)
  add_library(bloomline SHARED $<TARGET_OBJECTS:bloomline_objects>)
  bloomline_library(bloomline)
  set_target_properties(bloomline PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(NOT BLOOMLINE_SANITIZE)  # clang leaves a sanitizer's symbols to the program
    target_link_options(bloomline PRIVATE LINKER:--no-undefined
      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/bloomline.map")
    set_target_properties(bloomline PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/bloomline.map")
  endif()
else()
  add_library(bloomline::bloomline ALIAS bloomline_static)
endif()
