# sluice_folder(NAME [DEPENDS folders...] [LIBRARIES targets...] [EXECUTABLE name])
#
# Makes the target sluice_NAME from src/NAME (all *.cpp below it but *_test.cpp and, for an
# executable, main.cpp) and, from the *_test.cpp files, the test program NAME_test. Tests of src/
# need neither network nor weights and carry the ctest label "fast".
function(sluice_folder name)
  cmake_parse_arguments(ARG "" "EXECUTABLE" "DEPENDS;LIBRARIES" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")

  set(target sluice_${name})
  list(TRANSFORM ARG_DEPENDS PREPEND sluice_)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC sluice_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE sluice_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
  endif()

  if(ARG_EXECUTABLE AND EXISTS ${folder}/main.cpp)
    add_executable(${ARG_EXECUTABLE} ${folder}/main.cpp)
    target_link_libraries(${ARG_EXECUTABLE} PRIVATE ${target})
    set_target_properties(${ARG_EXECUTABLE} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endif()
  if(tests)
    sluice_test(${name}_test LABEL fast SOURCES ${tests} LIBRARIES ${target})
  endif()
endfunction()

# sluice_test(NAME LABEL label SOURCES files... LIBRARIES targets...): a GoogleTest program.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} sluice_options GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
endfunction()
