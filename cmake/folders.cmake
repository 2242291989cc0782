# sluice_folder(NAME [DEPENDS folders...] [LIBRARIES targets...] [EXECUTABLE name])
#
# Makes the target sluice_NAME from src/NAME (all *.cpp below it but *_test.cpp and, for an
# executable, main.cpp) and, from the *_test.cpp files, the test program NAME_test. Tests of src/
# need neither network nor weights and carry the ctest label "fast". Those of folders that compute
# through the kernel table carry "isa" too: ./test repeats them with each SLUICE_FORCE_ISA.
set(SLUICE_ISA_FOLDERS kernels ops model engine)

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
    set(labels fast)
    if(name IN_LIST SLUICE_ISA_FOLDERS)
      list(APPEND labels isa)
    endif()
    sluice_test(${name}_test LABEL ${labels} SOURCES ${tests} LIBRARIES ${target})
  endif()
endfunction()

# sluice_test(NAME LABEL labels... SOURCES files... LIBRARIES targets...): a GoogleTest program.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "LABEL;SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} sluice_options GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}")
  if(fast IN_LIST ARG_LABEL)
    add_dependencies(fast_tests ${name})
  endif()
endfunction()
