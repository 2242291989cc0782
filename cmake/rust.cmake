# The Rust crate (tokenizers, minijinja, llguidance) as a static library behind a C ABI.
# SLUICE_CARGO names the cargo to use. Debian 12's package cargo-web installs it as cargo too.
find_program(SLUICE_CARGO NAMES cargo HINTS $ENV{HOME}/.cargo/bin REQUIRED)
set(SLUICE_RUST_DIR ${PROJECT_SOURCE_DIR}/rust)
set(SLUICE_RUST_TARGET_DIR ${PROJECT_SOURCE_DIR}/build/rust)
set(SLUICE_RUST_LIB ${SLUICE_RUST_TARGET_DIR}/release/libsluice_text.a)

file(GLOB_RECURSE rust_sources CONFIGURE_DEPENDS ${SLUICE_RUST_DIR}/src/*.rs)
add_custom_command(
  OUTPUT ${SLUICE_RUST_LIB}
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${SLUICE_RUST_TARGET_DIR} ${SLUICE_CARGO} build
          --release --locked --manifest-path ${SLUICE_RUST_DIR}/Cargo.toml
  DEPENDS ${rust_sources} ${SLUICE_RUST_DIR}/Cargo.toml ${SLUICE_RUST_DIR}/Cargo.lock
  COMMENT "Building the Rust crate"
  USES_TERMINAL VERBATIM)
add_custom_target(sluice_rust_build DEPENDS ${SLUICE_RUST_LIB})

add_library(sluice_rust INTERFACE)
add_dependencies(sluice_rust sluice_rust_build)
target_include_directories(sluice_rust INTERFACE ${SLUICE_RUST_DIR}/include)
target_link_libraries(sluice_rust INTERFACE ${SLUICE_RUST_LIB} dl m pthread)
