# embed_functions(TARGET NAMESPACE HEADER FUNCTION FILE…): files as functions that return their bytes. Pairs of FUNCTION and FILE; the
# functions are declared in HEADER. As a script (cmake -D…): writes the source.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(text "#include <cstddef>\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
  string(REPLACE "|" ";" PAIRS "${PAIRS}")
  list(LENGTH PAIRS count)
  math(EXPR last "${count} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR next "${i} + 1")
    list(GET PAIRS ${i} function)
    list(GET PAIRS ${next} file)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "namespace {\nconstexpr char k_${function}[] = {${bytes}};\n}\n"
      "std::string_view ${function}() { return {k_${function}, sizeof(k_${function})}; }\n")
  endforeach()
  file(WRITE ${OUT} "${text}}  // namespace ${NAMESPACE}\n")
  return()
endif()

function(embed_functions target namespace header)
  set(out ${PROJECT_BINARY_DIR}/generated/${target}_embedded.cpp)
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "/")
  string(REPLACE ";" "|" pairs "${ARGN}")
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DPAIRS=${pairs}" -DNAMESPACE=${namespace} -DHEADER=${header} -DOUT=${out}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_functions.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_functions.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
