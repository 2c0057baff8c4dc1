# orrery_flags: what every source of ours is compiled with. Not part of any interface.
# -Wconversion means less in g++ than in clang; -Wno-sign-conversion makes them agree.
add_library(orrery_flags INTERFACE)
target_compile_options(orrery_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow -Wswitch-enum
  $<$<BOOL:${ORRERY_WERROR}>:-Werror>)
# g++ 12 reports overlapping copies, uninitialised reads and accesses out of bounds inside std::string where there are none
# (GCC bugs 105329, 105651); with precompiled headers also where it is told that std::string is not ours.
target_compile_options(orrery_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# Collecting garbage takes g++ a tenth of the time where the memory is not needed: it starts at 512 MiB.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
# clang reports std::stable_sort of libstdc++ 12 as a use of a deprecated function.
target_compile_options(orrery_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

# Same input, same bytes out, on every machine: no fused multiply-add that one CPU has and another lacks. For the same
# reason there is no -march=native and never -ffast-math.
add_compile_options(-ffp-contract=off)

# The same bytes from any folder: assertions name files relative to the repository.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

# RapidCheck's seed under ctest: fixed, so that a test that passed passes again. Sanitizer builds explore: their tests take
# RC_PARAMS from the environment, where ./dev test puts a new seed, and without it RapidCheck chooses one and prints it.
set(ORRERY_TEST_ENVIRONMENT "")
if(NOT ORRERY_SANITIZE)
  list(APPEND ORRERY_TEST_ENVIRONMENT RC_PARAMS=seed=20250101)
endif()

if(ORRERY_SANITIZE)
  add_compile_options(-fsanitize=${ORRERY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # These checks of every pointer double the time to compile, and what they find, address finds at the access.
  add_compile_options(-fno-sanitize=null,alignment,object-size,pointer-overflow,vptr)
  add_link_options(-fsanitize=${ORRERY_SANITIZE})
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  list(APPEND ORRERY_TEST_ENVIRONMENT
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp)
endif()

find_program(ORRERY_MOLD mold)
find_program(ORRERY_CCACHE ccache)
mark_as_advanced(ORRERY_MOLD ORRERY_CCACHE)
if(ORRERY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(ORRERY_CCACHE)
  # ccache looks at a precompiled header's content if it may disregard the definitions and the time in it.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ORRERY_CCACHE})
endif()
