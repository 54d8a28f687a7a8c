# One target per room, with the flags that all our own code is built with. Foreign headers are SYSTEM, so that their warnings are theirs.

find_package(Threads REQUIRED)
find_program(JIZI_CCACHE ccache)
if(JIZI_CCACHE)
  # The settings are those without which units that use a precompiled header never hit.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${jizi_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${JIZI_CCACHE})
endif()
find_program(JIZI_MOLD mold)
option(JIZI_UNITY "Compile each room's files eight at a time: a whole tree builds in half the time, a changed file more slowly" OFF)

add_library(jizi_flags INTERFACE)
target_compile_options(jizi_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  -ffp-contract=off) # A decision computed again must be the same on the same build (contract 10).
if(PROJECT_IS_TOP_LEVEL)
  # Ours to mend. In a person's own project another compiler or level of optimisation may find what ours did not.
  target_compile_options(jizi_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false alarm of g++ 12 at -O3 (gcc.gnu.org/PR105651): "text" + std::string.
  target_compile_options(jizi_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(jizi_flags INTERFACE -Wthread-safety)
endif()
if(JIZI_SANITIZE)
  # g++ 12 sees uninitialised members in std::regex and std::function once they are instrumented.
  target_compile_options(jizi_flags INTERFACE -fsanitize=${JIZI_SANITIZE} -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)
  target_link_options(jizi_flags INTERFACE -fsanitize=${JIZI_SANITIZE})
  if(JIZI_SANITIZE STREQUAL thread)
    # protobuf's map_field.h has two members more under this macro: messages with maps would have another layout here than in
    # the generated code and in Debian's library. libstdc++ keeps what it makes of the macro.
    target_compile_options(jizi_flags INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()
if(JIZI_FUZZ)
  target_compile_options(jizi_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(JIZI_MOLD)
  target_link_options(jizi_flags INTERFACE -fuse-ld=mold)
endif()
target_include_directories(jizi_flags INTERFACE ${jizi_SOURCE_DIR})

# jizi_library(NAME SOURCES a.cc ... PUBLIC libs ... PRIVATE libs ...)
function(jizi_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE jizi_flags ${ARG_PRIVATE})
  target_include_directories(${name} PUBLIC ${jizi_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
    UNITY_BUILD ${JIZI_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# jizi_executable(NAME SOURCES ... LIBS ...)
function(jizi_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE jizi_flags ${ARG_LIBS} Threads::Threads)
endfunction()

# jizi_test(NAME LABEL unit SOURCES ... LIBS ... [TIMEOUT s] [ENV A=b ...]): a GoogleTest program, one ctest entry. Labels are house-style's
# levels: unit, contract, property, sim, grpc, fault, oracle, fuzz, integration, bench. The sanitizer stages of CI pick by label and name.
function(jizi_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LIBS;ENV" ${ARGN})
  jizi_executable(${name} SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT
    "JIZI_BUILD_DIR=${CMAKE_BINARY_DIR};JIZI_SOURCE_DIR=${jizi_SOURCE_DIR};LSAN_OPTIONS=suppressions=${jizi_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0;TSAN_OPTIONS=ignore_noninstrumented_modules=1 exitcode=0 log_path=${CMAKE_BINARY_DIR}/tsan_reports/report;${ARG_ENV}")
endfunction()

# jizi_fuzz(NAME SOURCES ... LIBS ... CORPUS dir): LLVMFuzzerTestOneInput. With JIZI_FUZZ a libFuzzer program; otherwise one that
# replays the corpus (and any files it is given), which ctest runs under whatever sanitizer the tree is built with.
function(jizi_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  if(JIZI_FUZZ)
    jizi_executable(${name} SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${ARG_CORPUS})
  else()
    jizi_executable(${name} SOURCES ${ARG_SOURCES} ${jizi_SOURCE_DIR}/tests/fuzz/replay_main.cc LIBS ${ARG_LIBS})
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
