# weft_room(NAME LEVEL n [LINKS room...] [USES library...])
#
# One folder is one room. Its library is weft_<NAME> (slashes become underscores), made of the
# folder's *.cpp (but main.cpp); its *_test.cpp become the test program <NAME>_test. LINKS names rooms of a lower
# level and nothing else may be included; USES names third-party libraries, which stay private.
function(weft_room name)
  cmake_parse_arguments(ROOM "" "LEVEL" "LINKS;USES" ${ARGN})
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
    if(NOT lower_level LESS ROOM_LEVEL)
      message(FATAL_ERROR "room ${name} (L${ROOM_LEVEL}) links ${lower} (L${lower_level}): includes go strictly down")
    endif()
    list(APPEND links weft_${lower_flat})
  endforeach()

  if(NOT sources) # a room of headers, or one that is still empty
    add_library(weft_${flat} INTERFACE)
    target_include_directories(weft_${flat} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(weft_${flat} INTERFACE ${links} ${ROOM_USES} weft_flags)
  else()
    add_library(weft_${flat} STATIC ${sources})
    target_include_directories(weft_${flat} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(weft_${flat} PUBLIC ${links} PRIVATE ${ROOM_USES} weft_flags)
    if(WEFT_FUZZ) # rooms are what fuzz targets look into
      target_compile_options(weft_${flat} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()

  if(BUILD_TESTING AND tests)
    add_executable(${flat}_test ${tests})
    target_link_libraries(${flat}_test PRIVATE weft_${flat} ${ROOM_USES} weft_test_main)
    # Where tests look for data beside the tree.
    add_test(NAME ${flat} COMMAND ${flat}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${flat} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
