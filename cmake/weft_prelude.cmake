# Precompiled headers: the standard library, fmt and what else is slow to read. Only headers of others
# stand here, so that a change of ours rebuilds what includes it and nothing more. A source still
# includes what it uses: -DWEFT_PRELUDE=OFF builds without.
option(WEFT_PRELUDE "Precompile the headers of libraries" ON)
set(weft_prelude_headers
    <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <deque> <expected>
    <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span>
    <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
    <fmt/format.h>)

# weft_add_prelude(NAME FLAGS target HEADERS header...): headers compiled with the flags of `target`.
# g++ takes a precompiled header only under the very flags it was made with, hence one for each set.
function(weft_add_prelude name)
  cmake_parse_arguments(PRELUDE "" "FLAGS" "HEADERS" ${ARGN})
  if(NOT WEFT_PRELUDE)
    return()
  endif()
  add_library(weft_prelude_${name} STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/prelude.cpp)
  target_link_libraries(weft_prelude_${name} PRIVATE ${PRELUDE_FLAGS} fmt::fmt)
  target_precompile_headers(weft_prelude_${name} PRIVATE ${weft_prelude_headers} ${PRELUDE_HEADERS})
endfunction()

# weft_use_prelude(TARGET NAME): its sources begin with the precompiled headers of that name.
function(weft_use_prelude target name)
  if(TARGET weft_prelude_${name})
    target_precompile_headers(${target} REUSE_FROM weft_prelude_${name})
    target_link_libraries(${target} PRIVATE fmt::fmt) # its definitions are part of the flags
  endif()
endfunction()

# weft_unite(TARGET): several of its sources are compiled at a time, which reads the headers they share once.
# The names in anonymous namespaces of a target thus differ, as do its file-local macros. A source still
# includes what it uses: -DWEFT_UNITY=OFF compiles each alone.
option(WEFT_UNITY "Compile several sources at a time" ON)
function(weft_unite target)
  if(WEFT_UNITY)
    # At most 26 in a part, and parts of one size, which two cores share well.
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR parts "(${count} + 25) / 26")
    math(EXPR batch "(${count} + ${parts} - 1) / ${parts}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# weft_pkg_module(PREFIX MODULE): the imported target PkgConfig::PREFIX, without flags that mean nothing on
# Linux with glibc 2.34 or later and would rule out the precompiled headers.
find_package(PkgConfig REQUIRED)
function(weft_pkg_module prefix module)
  pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  get_target_property(options PkgConfig::${prefix} INTERFACE_COMPILE_OPTIONS)
  if(options)
    list(REMOVE_ITEM options -pthread -DNOMINMAX)
    set_property(TARGET PkgConfig::${prefix} PROPERTY INTERFACE_COMPILE_OPTIONS ${options})
  endif()
endfunction()

if(WEFT_PRELUDE AND WEFT_CCACHE) # for it to see what a precompiled header holds
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(weft_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  else()
    target_compile_options(weft_flags INTERFACE -fpch-preprocess)
  endif()
endif()

# clang compiles the templates that a precompiled header asks for with it (CMake's default), g++ in every source: 0.8 s
# for those of nlohmann. Three quarters of the sources do without; for one that does not, reading it costs 0.9 s more.
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(weft_prelude_json <nlohmann/json.hpp>)
endif()

add_library(weft_hot_flags INTERFACE)
add_library(weft_cold_flags INTERFACE)
target_link_libraries(weft_hot_flags INTERFACE weft_flags)
target_link_libraries(weft_cold_flags INTERFACE weft_flags)
option(WEFT_COLD_OPTIMISED "Under sanitizers, too, optimise code that runs once: for long fuzzing" OFF)
if(WEFT_SANITIZE AND NOT WEFT_COLD_OPTIMISED)
  target_compile_options(weft_cold_flags INTERFACE -O0)
else()
  target_compile_options(weft_cold_flags INTERFACE -O1)
endif()

weft_add_prelude(hot FLAGS weft_hot_flags)
weft_add_prelude(cold FLAGS weft_cold_flags HEADERS ${weft_prelude_json})
weft_add_prelude(test FLAGS weft_test_flags HEADERS ${weft_prelude_json} <doctest/doctest.h>)
