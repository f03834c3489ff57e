# weft_add_test(NAME program [NEEDS what...] [PROPERTIES ...])
#
# Enters a doctest program into CTest. Cases in a test suite "needs WHAT" have the entry NAME_WHAT, all
# others the entry NAME, so that what a machine lacks shows as one skipped entry and hides no other
# result. A suite that NEEDS does not name runs with the rest. PROPERTIES hold for all entries; their
# names are in the variable NAME_tests afterwards.
function(weft_add_test name program)
  cmake_parse_arguments(ENTRY "" "" "NEEDS;PROPERTIES" ${ARGN})
  set(entries ${name})
  foreach(need IN LISTS ENTRY_NEEDS)
    add_test(NAME ${name}_${need} COMMAND ${program} "--test-suite=needs ${need}"
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}) # where tests/data is
    list(APPEND entries ${name}_${need})
    list(APPEND excluded "needs ${need}")
  endforeach()
  if(excluded)
    list(JOIN excluded "," excluded)
    set(filter "--test-suite-exclude=${excluded}")
  endif()
  add_test(NAME ${name} COMMAND ${program} ${filter} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${entries} PROPERTIES SKIP_RETURN_CODE 77 ${ENTRY_PROPERTIES})
  set(${name}_tests ${entries} PARENT_SCOPE)
endfunction()

# weft_test_program(NAME [RUNS_WEFT] SOURCES source... [LINKS library...])
#
# A doctest program under tests/. RUNS_WEFT: it runs the built `weft` through tests/cli/run_weft.hpp.
function(weft_test_program name)
  cmake_parse_arguments(PROGRAM "RUNS_WEFT" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  if(PROGRAM_RUNS_WEFT)
    target_link_libraries(${name} PRIVATE weft_runner)
    add_dependencies(${name} weft)
  endif()
  target_link_libraries(${name} PRIVATE ${PROGRAM_LINKS} fmt::fmt nlohmann_json::nlohmann_json weft_test_main
                        weft_test_flags)
  weft_use_prelude(${name} test)
  weft_unite(${name})
endfunction()
