# oracle(ROOM): where a room has *.proto files, the library <ROOM>_oracle with what protoc makes of them, for the room's
# tests and benches only. They include it as <oracle/NAME.pb.h>.
function(oracle room)
  set(folder ${PROJECT_SOURCE_DIR}/src/orrery/${room})
  file(GLOB protos CONFIGURE_DEPENDS ${folder}/*.proto)
  if(NOT protos OR NOT (ORRERY_TESTS OR ORRERY_BENCHES))
    return()
  endif()
  find_package(Protobuf REQUIRED)
  set(out ${PROJECT_BINARY_DIR}/generated/oracle)
  file(MAKE_DIRECTORY ${out})
  set(generated "")
  foreach(proto IN LISTS protos)
    get_filename_component(name ${proto} NAME_WE)
    add_custom_command(
      OUTPUT ${out}/${name}.pb.cc ${out}/${name}.pb.h
      COMMAND protobuf::protoc --proto_path=${folder} --cpp_out=${out} ${proto}
      DEPENDS ${proto})
    list(APPEND generated ${out}/${name}.pb.cc)
  endforeach()
  add_library(${room}_oracle STATIC EXCLUDE_FROM_ALL ${generated})
  target_include_directories(${room}_oracle SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${room}_oracle PUBLIC protobuf::libprotobuf)
endfunction()
