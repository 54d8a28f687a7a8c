# Finds libtorch inside an installed torch wheel and makes the target jizi_torch (CPU).
# Why not the wheel's TorchConfig.cmake: it wants a whole CUDA toolkit, also for use on a CPU.
# JIZI_TORCH_DIR: the folder that holds torch's include/ and lib/; by default that of the tree's .venv, else of python3.

set(JIZI_TORCH_VERSION 2.11.0)  # Pinned: `make` installs this one. Another one is accepted from JIZI_TORCH_DIR, and said.

if(NOT JIZI_TORCH_DIR)
  foreach(python ${CMAKE_SOURCE_DIR}/.venv/bin/python3 python3)
    execute_process(COMMAND ${python} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(JIZI_TORCH_DIR ${found} CACHE PATH "The folder of torch's include/ and lib/" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${JIZI_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "libtorch not found. Run `make deps` (installs torch ${JIZI_TORCH_VERSION} into .venv), "
    "or set -DJIZI_TORCH_DIR=<folder with include/ and lib/>, or build without it: -DJIZI_TORCH=OFF")
endif()

if(NOT TARGET jizi_torch)
  add_library(jizi_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(jizi_torch SYSTEM INTERFACE
    ${JIZI_TORCH_DIR}/include ${JIZI_TORCH_DIR}/include/torch/csrc/api/include)
  # --no-as-needed: operators register themselves when the library is loaded; nothing refers to them by name.
  target_link_libraries(jizi_torch INTERFACE
    -Wl,--no-as-needed ${JIZI_TORCH_DIR}/lib/libtorch_cpu.so ${JIZI_TORCH_DIR}/lib/libc10.so -Wl,--as-needed)
  target_link_options(jizi_torch INTERFACE -Wl,-rpath,${JIZI_TORCH_DIR}/lib)
endif()
