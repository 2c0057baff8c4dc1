# What makes a whole build cheap: headers that nearly every source includes are precompiled once, and a room's sources
# are compiled a few at a time. No source relies on either: `./dev lint` builds without both, and so does
# -DORRERY_PREFIX=OFF -DORRERY_UNITY=OFF.
#
# prefix(TARGET)        for a room or the program: precompiled headers, sources compiled in batches. The helpers of a command
#                       (apps/cli) are in a namespace named after it: of_plan
# prefix(TARGET TEST)   for a test executable: the same, with the headers of the test libraries. The tests of a file are in
#                       a namespace named after it, so that their helpers cannot collide with those of another file
option(ORRERY_PREFIX "Precompile the headers that nearly every source includes (g++ only)" ON)
option(ORRERY_UNITY "Compile the sources of a room in batches" ON)

# A batch is what has to be compiled again when one of its sources changes: for the program, small enough to wait for.
# Tests instantiate the same templates again and again: large batches take a quarter less time in all. Sanitizer builds
# are seldom built for one change.
set(ORRERY_BATCH 7)
set(ORRERY_TEST_BATCH 15)
if(ORRERY_SANITIZE)
  set(ORRERY_BATCH ${ORRERY_TEST_BATCH})
endif()

set(ORRERY_PREFIX_HEADERS
  <algorithm> <array> <charconv> <cmath> <cstddef> <cstdint> <functional> <limits> <map> <memory> <numeric> <optional>
  <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <tl/expected.hpp>)
set(ORRERY_TEST_PREFIX_HEADERS ${ORRERY_PREFIX_HEADERS} <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(ORRERY_PREFIX OFF)
endif()

# prefix_library(NAME HEADERS LIBRARY…): an object library that only carries its precompiled header.
function(prefix_library name headers)
  if(NOT ORRERY_PREFIX)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${name}.cpp CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  target_link_libraries(${name} PRIVATE fmt::fmt tl::expected orrery_flags ${ARGN})
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

# Writers of every node of a trace: in a batch g++ inlines less of them, which costs a fifth more instructions.
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/src/orrery/trace/json_lines_write.cpp ${PROJECT_SOURCE_DIR}/src/orrery/trace/json_text.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(prefix target)
  set(batch ${ORRERY_BATCH})
  if("${ARGN}" STREQUAL TEST)
    set(batch ${ORRERY_TEST_BATCH})
  endif()
  if(ORRERY_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
  if(ORRERY_PREFIX AND "${ARGN}" STREQUAL TEST)
    target_precompile_headers(${target} REUSE_FROM orrery_test_prefix)
  elseif(ORRERY_PREFIX)
    target_precompile_headers(${target} REUSE_FROM orrery_prefix)
  endif()
endfunction()
