# weft_room(NAME LEVEL n [COLD [COMPUTES] [HOT source...]] [TESTS_OPTIMISED] [NOT_FUZZED [FUZZED source...]] [LINKS room...]
#           [USES library...] [TEST_LINKS room...] [NEEDS what...])
#
# One folder is one room. Its library is weft_<NAME> (slashes become underscores), made of the
# folder's *.cpp (but main.cpp); its *_test.cpp become the test program <NAME>_test. LINKS names rooms of a lower
# level, or of the same folder and declared before, and nothing else may be included; TEST_LINKS:
# what the tests alone include, of any level; USES names third-party libraries, which stay private. COLD
# rooms hold code that runs once: -O1 compiles it in two thirds of the time, and -O0 under sanitizers in two fifths
# of that of -O1; HOT names their exceptions, e.g. what sends packets. COMPUTES: -O1 under
# AddressSanitizer, too, where tests would lose more than the build gains. TESTS_OPTIMISED: its tests compute for long themselves, by
# oracles and generators. A room that has fuzz targets is compiled for them, which makes it half
# as fast in the tests under sanitizers; NOT_FUZZED rooms are not but for the FUZZED sources. NEEDS: see weft_add_test.
function(weft_room name)
  cmake_parse_arguments(ROOM "COLD;COMPUTES;NOT_FUZZED;TESTS_OPTIMISED" "LEVEL" "HOT;FUZZED;LINKS;USES;TEST_LINKS;NEEDS" ${ARGN})
  string(REPLACE "/" "_" flat ${name})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  set_property(GLOBAL PROPERTY weft_level_${flat} ${ROOM_LEVEL})
  set_property(GLOBAL APPEND PROPERTY weft_rooms ${flat}) # for tests that span rooms
  foreach(lower IN LISTS ROOM_LINKS)
    string(REPLACE "/" "_" lower_flat ${lower})
    get_property(lower_level GLOBAL PROPERTY weft_level_${lower_flat})
    if(NOT DEFINED lower_level)
      message(FATAL_ERROR "room ${name} links ${lower}, which is not declared before it")
    endif()
    get_filename_component(folder ${name} DIRECTORY)
    get_filename_component(lower_folder ${lower} DIRECTORY)
    if(NOT lower_level LESS ROOM_LEVEL AND NOT (folder AND folder STREQUAL lower_folder))
      message(FATAL_ERROR "room ${name} (L${ROOM_LEVEL}) links ${lower} (L${lower_level}): includes go strictly down")
    endif()
    list(APPEND links weft_${lower_flat})
  endforeach()
  foreach(other IN LISTS ROOM_TEST_LINKS)
    string(REPLACE "/" "_" other_flat ${other})
    list(APPEND test_links weft_${other_flat})
  endforeach()
  set_property(GLOBAL PROPERTY weft_test_links_${flat} ${test_links}) # for fuzz targets

  if(NOT sources) # a room of headers, or one that is still empty
    add_library(weft_${flat} INTERFACE)
    target_include_directories(weft_${flat} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(weft_${flat} INTERFACE ${links} ${ROOM_USES} weft_flags)
  else()
    add_library(weft_${flat} STATIC ${sources})
    target_include_directories(weft_${flat} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    set(heat hot)
    if(ROOM_COLD AND NOT (ROOM_COMPUTES AND WEFT_SANITIZE MATCHES address))
      set(heat cold)
    endif()
    target_link_libraries(weft_${flat} PUBLIC ${links} PRIVATE ${ROOM_USES} weft_${heat}_flags)
    weft_use_prelude(weft_${flat} ${heat})
    weft_unite(weft_${flat})
    set_source_files_properties(${ROOM_HOT} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>"
                                SKIP_PRECOMPILE_HEADERS ON)
    file(GLOB fuzz_targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_${flat}_*.cpp)
    if(WEFT_FUZZ AND ROOM_NOT_FUZZED)
      set_source_files_properties(${ROOM_FUZZED} PROPERTIES COMPILE_OPTIONS "${weft_fuzzed_options}")
    elseif(WEFT_FUZZ AND fuzz_targets)
      target_compile_options(weft_${flat} PRIVATE ${weft_fuzzed_options})
    endif()
  endif()

  if(BUILD_TESTING AND tests)
    add_executable(${flat}_test ${tests})
    set(heat test)
    if(ROOM_TESTS_OPTIMISED AND NOT WEFT_SANITIZE)
      set(heat cold)
    endif()
    target_link_libraries(${flat}_test PRIVATE weft_${flat} ${test_links} ${ROOM_USES} weft_test_main weft_${heat}_flags)
    weft_use_prelude(${flat}_test ${heat})
    weft_unite(${flat}_test)
    weft_add_test(${flat} ${flat}_test NEEDS ${ROOM_NEEDS} PROPERTIES TIMEOUT 300)
    set(${flat}_tests ${${flat}_tests} PARENT_SCOPE)
  endif()
endfunction()
