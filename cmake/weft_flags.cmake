# Flags that hold for every target. Determinism rules out contraction and fast-math.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(WEFT_WERROR "Treat warnings as errors" ON)
option(WEFT_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(WEFT_BENCH "Build the benchmarks" OFF)
option(WEFT_PYTHON "Build the Python module" OFF)
set(WEFT_SANITIZE "" CACHE STRING "Comma-separated list for -fsanitize=")

add_library(weft_flags INTERFACE)
# Designated initialisers leave the other members at their defaults on purpose.
target_compile_options(weft_flags INTERFACE -Wall -Wextra -Wconversion
                       -Wno-missing-field-initializers -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports inlined destructors of braced temporaries; clang's own analysis stays on.
  target_compile_options(weft_flags INTERFACE -Wno-maybe-uninitialized)
  # ... and overlaps and overflows in plain string concatenation (GCC bug 105329).
  target_compile_options(weft_flags INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                         -Wno-stringop-overread)
  # Its collector of garbage takes a tenth of the time where it runs from 30 MB on.
  target_compile_options(weft_flags INTERFACE "SHELL:--param ggc-min-heapsize=524288")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # libstdc++ 12's own stable_sort uses a function that C++23 deprecates.
  target_compile_options(weft_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(NOT WEFT_SANITIZE)
  # One build serves the program and the Python module; hidden symbols keep calls direct (no cost measured).
  target_compile_options(weft_flags INTERFACE -fPIC -fvisibility=hidden -fvisibility-inlines-hidden)
endif()
if(WEFT_WERROR)
  target_compile_options(weft_flags INTERFACE -Werror)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_compile_options(weft_flags INTERFACE -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/libraries.ignore)
  target_compile_definitions(weft_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# What libFuzzer is led by, in options that leave precompiled headers as they are: for code that fuzz
# targets look into. Of what -fsanitize=fuzzer-no-link stands for, counters and comparisons.
if(WEFT_FUZZ)
  set(weft_fuzzed_options
      -fsanitize-coverage=inline-8bit-counters,trace-cmp)
  foreach(function bcmp memcmp memmem strcasecmp strcasestr strcmp strncasecmp strncmp strstr)
    list(APPEND weft_fuzzed_options -fno-builtin-${function})
  endforeach()
endif()

# What a test program links: flags for its own sources, which are compiled once and run once, so that half
# the time to compile counts for more than theirs; and the runner's main(). What they test is optimised.
add_library(weft_test_flags INTERFACE)
target_compile_options(weft_test_flags INTERFACE -O0)
target_link_libraries(weft_test_flags INTERFACE weft_flags)
add_library(weft_test_main STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/doctest_main.cpp)
target_link_libraries(weft_test_main PRIVATE weft_test_flags)
if(WEFT_SANITIZE) # everything is several times slower
  target_compile_definitions(weft_test_flags INTERFACE WEFT_SANITIZED)
endif()
target_include_directories(weft_test_main PRIVATE ${PROJECT_SOURCE_DIR}/src)

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEFT_CCACHE})
endif()
