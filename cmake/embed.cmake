# embed(TARGET FOLDER [FILE…])
#
# Compiles the files of a web page into a target, which finds them through apps/server/assets.hpp: those of the folder,
# and other ones, such as a library of charts from the system. index.html is "/", every other file "/NAME".
#
# Run as a script (cmake -DFILES=… -DOUTPUT=… -P embed.cmake) it writes the source.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  string(REPLACE "|" ";" FILES "${FILES}")
  set(types html=text/html js=text/javascript css=text/css svg=image/svg+xml)
  set(arrays "")
  set(table "")
  set(number 0)
  foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    get_filename_component(suffix ${file} LAST_EXT)
    string(SUBSTRING ${suffix} 1 -1 suffix)
    set(type "application/octet-stream")
    foreach(entry IN LISTS types)
      if(entry MATCHES "^${suffix}=(.*)$")
        set(type "${CMAKE_MATCH_1}")
      endif()
    endforeach()
    set(path "/${name}")
    if(name STREQUAL "index.html")
      set(path "/")
    endif()
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
    string(APPEND table "  asset(\"${path}\", \"${type}\", kFile${number}),\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include <array>
#include <cstddef>

#include \"apps/server/assets.hpp\"

namespace orrery::server {
namespace {
${arrays}
template <std::size_t N>
Asset asset(const char* path, const char* type, const unsigned char (&bytes)[N]) {
  return {path, type, {reinterpret_cast<const char*>(bytes), N - 1}};
}
}  // namespace

std::span<const Asset> assets() {
  static const std::array<Asset, ${number}> kAssets = {
${table}  };
  return kAssets;
}
}  // namespace orrery::server
")
  return()
endif()

set(ORRERY_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(embed target folder)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.js ${folder}/*.css ${folder}/*.svg)
  list(APPEND files ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/generated/${target}_assets.cpp)
  string(REPLACE ";" "|" listed "${files}")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${listed}" -DOUTPUT=${source} -P ${ORRERY_EMBED_SCRIPT}
    DEPENDS ${files} ${ORRERY_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
