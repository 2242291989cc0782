# Flags of every target. Baseline instruction set only: ISA code opens a target region of its own
# (src/kernels/README.md). Contraction off and no fast-math: they are part of the numerics contract.
add_library(sluice_options INTERFACE)
target_compile_options(
  sluice_options
  INTERFACE -Wall
            -Wextra
            -Wconversion
            -Wshadow
            -Wnon-virtual-dtor
            -Werror
            -ffp-contract=off
            -fno-math-errno
            -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # "literal" + std::string warns falsely at -O3: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651
  target_compile_options(sluice_options INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
endif()
target_include_directories(sluice_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_FUZZ)
  target_compile_options(sluice_options INTERFACE -fsanitize=fuzzer-no-link) # coverage for libFuzzer
endif()

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${SLUICE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLUICE_CCACHE})
endif()
