# embed(TARGET NAMESPACE HEADER FILE…)
#
# Compiles files into a target, which finds them as NAMESPACE::embedded_files(): name without folder, and bytes
# (orrery/core/embedded_file.hpp), in the order given. HEADER declares that function.
#
# Run as a script (cmake -DFILES=… -DNAMESPACE=… -DHEADER=… -DOUTPUT=… -P embed.cmake) it writes the source.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  string(REPLACE "|" ";" FILES "${FILES}")
  set(arrays "")
  set(table "")
  set(number 0)
  foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", {kFile${number}, sizeof(kFile${number}) - 1}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include <array>

#include \"${HEADER}\"

namespace ${NAMESPACE} {
namespace {
${arrays}
constexpr std::array<EmbeddedFile, ${number}> kFiles = {{
${table}}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }
}  // namespace ${NAMESPACE}
")
  return()
endif()

set(ORRERY_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(embed target namespace header)
  set(source ${PROJECT_BINARY_DIR}/generated/${target}_embedded.cpp)
  string(REPLACE ";" "|" listed "${ARGN}")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${listed}" -DNAMESPACE=${namespace} -DHEADER=${header} -DOUTPUT=${source}
      -P ${ORRERY_EMBED_SCRIPT}
    DEPENDS ${ARGN} ${ORRERY_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
