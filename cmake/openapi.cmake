# docs/openapi.json becomes part of the server: GET /openapi.json.
set(SLUICE_OPENAPI_FILE ${PROJECT_SOURCE_DIR}/docs/openapi.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SLUICE_OPENAPI_FILE})
file(READ ${SLUICE_OPENAPI_FILE} SLUICE_OPENAPI)
configure_file(${PROJECT_SOURCE_DIR}/src/server/openapi.cpp.in ${PROJECT_BINARY_DIR}/generated/openapi.cpp @ONLY)
target_sources(sluice_server PRIVATE ${PROJECT_BINARY_DIR}/generated/openapi.cpp)
