# SPDX-License-Identifier: Apache-2.0
# Installs the build, builds the outside programs against it, in
# C++ and in C, static and shared, and runs them; so it does with programs that
# pages show, and with the examples, of which nothing but their folder is
# there. Variables: BUILD (the build folder), SOURCE (this folder), WORK (a scratch
# folder); NVCC and XLA_FFI_INCLUDE, without which the plugin for CUDA is left out.
cmake_minimum_required(VERSION 3.22)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# The programs run for milliseconds, and optimizing them would take most of this test.
set(RELEASE -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG")
file(REMOVE_RECURSE ${WORK})
# The C++ programs of pages, as they stand there: a page's first block of C++ is
# WORK/pages/NAME.cc.
function(first_block page name)
  file(READ ${SOURCE}/../../${page} text)
  string(FIND "${text}" "```cpp\n" start)
  if(start LESS 0)
    message(FATAL_ERROR "${page} has no block of C++")
  endif()
  math(EXPR start "${start} + 7")
  string(SUBSTRING "${text}" ${start} -1 text)
  string(FIND "${text}" "```" end)
  string(SUBSTRING "${text}" 0 ${end} block)
  file(WRITE ${WORK}/pages/${name}.cc "${block}")
endfunction()
file(READ ${SOURCE}/../../README.md page)
string(REGEX MATCHALL "```cpp\n" blocks "${page}")
list(LENGTH blocks blocks)
if(NOT blocks EQUAL 1)
  message(FATAL_ERROR "the README has ${blocks} blocks of C++; compile each in CMakeLists.txt")
endif()
first_block(README.md compiler)
first_block(partitioner/custom_call/README.md target)

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/build
     -DCMAKE_PREFIX_PATH=${WORK}/prefix ${RELEASE}
     -DPAGES=${WORK}/pages)
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/c -B ${WORK}/build_c
     -DCMAKE_PREFIX_PATH=${WORK}/prefix ${RELEASE})
step(${CMAKE_COMMAND} --build ${WORK}/build_c)
set(plugin ${WORK}/build_c/liboutside_plugin.so)
foreach(program outside_shardcall outside_shared)
  step(${WORK}/build/${program})
  if(NOT out MATCHES "rule: holds\ndevices: 4, ok")
    message(FATAL_ERROR "${program} printed:\n${out}")
  endif()
endforeach()
foreach(program build/outside_c_static build_c/outside_c_shared)
  step(${WORK}/${program} ${plugin})
  if(NOT out MATCHES "devices: 4, 0 2 4 6 8 10 12 14")
    message(FATAL_ERROR "${program} printed:\n${out}")
  endif()
endforeach()
step(${WORK}/build/page_target)
if(NOT out MATCHES "\"status\": \"ok\".*\"num_partitions\": 8")
  message(FATAL_ERROR "the target of partitioner/custom_call/README.md printed:\n${out}")
endif()
step(${WORK}/build/page_compiler)
if(NOT out MATCHES "f32.3,4..1,0. custom-call")
  message(FATAL_ERROR "the README's function for compilers printed:\n${out}")
endif()

# The examples in a folder of their own, so that they find what is installed and
# nothing else of the tree.
file(COPY ${SOURCE}/../../examples DESTINATION ${WORK})
step(${CMAKE_COMMAND} -G Ninja -S ${WORK}/examples -B ${WORK}/build_examples
     -DCMAKE_PREFIX_PATH=${WORK}/prefix ${RELEASE})
step(${CMAKE_COMMAND} --build ${WORK}/build_examples)
foreach(program register_target register_batch_dims register_callbacks build_program subtract
        own_collective "run_program;${WORK}/examples/programs/ring_attention")
  list(POP_FRONT program name)
  step(${WORK}/build_examples/${name} ${program})
endforeach()
step(bash ${WORK}/examples/write_target/steps.sh ${WORK}/prefix/bin/shardcall
     ${WORK}/prefix/include)
if(NVCC AND XLA_FFI_INCLUDE)
  step(${CMAKE_COMMAND} -E env CUDACXX=${NVCC} bash ${WORK}/examples/cuda_plugin/steps.sh
       ${WORK}/prefix/bin/shardcall ${XLA_FFI_INCLUDE})
endif()

# outside_c_shared loads the shared library and has no copy of it.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${WORK}/build_c/outside_c_shared
     RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing)
if(NOT "${found}" MATCHES "libshardcall[.]so")
  message(FATAL_ERROR "outside_c_shared needs ${found} and ${missing}, not libshardcall.so")
endif()
step(${WORK}/prefix/bin/shardcall targets --plugin=${plugin})
if(NOT out MATCHES "outside_double +Host")
  message(FATAL_ERROR "the installed command printed:\n${out}")
endif()

# A project whose folders and targets have the names of ours.
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/collide -B ${WORK}/build_collide
     -DCMAKE_PREFIX_PATH=${WORK}/prefix ${RELEASE})
step(${CMAKE_COMMAND} --build ${WORK}/build_collide)
step(${WORK}/build_collide/collide)
file(READ ${BUILD}/CMakeCache.txt cache)
string(REGEX MATCH "CMAKE_PROJECT_VERSION:STATIC=([^\n]+)" version "${cache}")
set(version ${CMAKE_MATCH_1})
if(NOT out MATCHES "^${version}: [0-9]+ instructions")
  message(FATAL_ERROR "collide of version ${version} printed:\n${out}")
endif()
# As a part of it. One library is linked; the object that uses them all is enough for the others.
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/collide -B ${WORK}/build_part
     -DSHARDCALL_SOURCE=${SOURCE}/../.. -DCMAKE_BUILD_TYPE=Debug -DSHARDCALL_UNITY=ON)
step(${CMAKE_COMMAND} --build ${WORK}/build_part --target collide_objects collide_sharding)
step(${WORK}/build_part/collide_sharding)
if(NOT out STREQUAL "8 devices\n")
  message(FATAL_ERROR "collide_sharding printed:\n${out}")
endif()

# Where only a part is built, that part is installed, and the package has what needs no library.
step(${CMAKE_COMMAND} --install ${WORK}/build_part --prefix ${WORK}/part)
file(GLOB archives RELATIVE ${WORK}/part ${WORK}/part/lib*/*.a ${WORK}/part/lib*/*/*.a)
if(NOT archives MATCHES "libshardcall_sharding[.]a$" OR archives MATCHES ";")
  message(FATAL_ERROR "after the build of one library these are installed: ${archives}")
endif()
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/c -B ${WORK}/build_c_part -DPLUGIN_ALONE=ON
     -DCMAKE_PREFIX_PATH=${WORK}/part ${RELEASE})
step(${CMAKE_COMMAND} --build ${WORK}/build_c_part)
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/c -B ${WORK}/build_c_part_all
                        -DCMAKE_PREFIX_PATH=${WORK}/part
                RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(result EQUAL 0 OR NOT out MATCHES "component c")
  message(FATAL_ERROR "without libshardcall.so find_package(shardcall COMPONENTS c) said:\n${out}")
endif()

# Each header stands by itself.
find_program(python NAMES python3)
if(python)
  step(${python} ${SOURCE}/headers_alone.py --include=${WORK}/prefix/include)
endif()

# The shared library shows what its headers declare, and nothing of what is behind them: no
# namespace of shardcall owns a symbol of it, `internal` and those in it least of all. In mangled
# names `9shardcall` is followed by a name and its length: of a namespace, in small letters, or of
# what is declared in shardcall itself, a class, a function or a constant (kName).
file(GLOB library ${WORK}/prefix/lib*/libshardcall.so ${WORK}/prefix/lib*/*/libshardcall.so)
step(nm -D --defined-only ${library})
set(owner "_Z(T[VISTC]|Th[n0-9]*_|Tv[n0-9_]*_|GV|GR|Z)*N[VKRO]*9shardcall")
set(namespace "[0-9]+([a-jl-z]|k[a-z])")
string(REGEX MATCHALL " ${owner}${namespace}[^\n]*| _ZT[VIS][^\n]*9shardcall${namespace}[^\n]*"
       hidden "${out}")
if(hidden)
  list(JOIN hidden "\n " hidden)
  message(FATAL_ERROR "libshardcall.so shows what no installed header declares:\n ${hidden}")
endif()
# A header that becomes public, or a class that grows, is meant to be noticed here.
set(most 645)
string(REGEX MATCHALL " ${owner}" shown "${out}")
list(LENGTH shown shown)
if(shown GREATER most)
  message(FATAL_ERROR "libshardcall.so shows ${shown} symbols of shardcall, more than ${most}")
endif()
step(nm -DC --defined-only ${library})
foreach(shown "shardcall::Partition\\(" "shardcall::ParseModule\\(" Shardcall_Version)
  if(NOT out MATCHES "${shown}")
    message(FATAL_ERROR "libshardcall.so does not show ${shown}")
  endif()
endforeach()

# pkg-config, for C.
find_program(pkg_config pkg-config)
file(GLOB pc ${WORK}/prefix/lib*/pkgconfig ${WORK}/prefix/lib*/*/pkgconfig)
if(pkg_config)
  step(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc} ${pkg_config} --cflags --libs shardcall)
  string(STRIP "${out}" flags)
  separate_arguments(flags)
  step(cc -std=c11 ${SOURCE}/outside.c ${flags} -o ${WORK}/outside_pc)
  get_filename_component(folder ${library} DIRECTORY)
  step(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder} ${WORK}/outside_pc ${plugin})
endif()

# A component that is not there is said not to be found, and what is there is enough.
file(COPY ${WORK}/prefix DESTINATION ${WORK}/c_alone)
file(GLOB archives ${WORK}/c_alone/prefix/lib*/*.a ${WORK}/c_alone/prefix/lib*/*/*.a)
file(REMOVE ${archives})
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/c -B ${WORK}/build_c_alone
     -DCMAKE_PREFIX_PATH=${WORK}/c_alone/prefix ${RELEASE})
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/collide -B ${WORK}/build_no_static
                        -DCMAKE_PREFIX_PATH=${WORK}/c_alone/prefix
                RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(result EQUAL 0 OR NOT out MATCHES "static")
  message(FATAL_ERROR "without archives find_package(shardcall COMPONENTS static) said:\n${out}")
endif()

# The Debian package holds the same, below /usr, and can be unpacked by dpkg and used.
find_program(dpkg_deb dpkg-deb)
find_program(dpkg_shlibdeps dpkg-shlibdeps)
if(dpkg_deb AND dpkg_shlibdeps AND CMAKE_CPACK_COMMAND)
  step(${CMAKE_CPACK_COMMAND} -G DEB --config ${BUILD}/CPackConfig.cmake -B ${WORK}/deb)
  file(GLOB deb ${WORK}/deb/*.deb)
  step(${dpkg_deb} -I ${deb})
  if(NOT out MATCHES "Depends: [^\n]*libabsl" OR NOT out MATCHES "Package: shardcall")
    message(FATAL_ERROR "the Debian package says:\n${out}")
  endif()
  # Unpacked in a root of its own, whose database says nothing of the packages that it needs. What
  # follows in an installation is ldconfig, which that root lacks, and which is not to run here.
  set(root ${WORK}/deb/root)
  set(usr ${root}/usr)
  file(WRITE ${root}/var/lib/dpkg/status "")
  file(MAKE_DIRECTORY ${root}/var/lib/dpkg/info ${root}/var/lib/dpkg/updates
                      ${root}/var/lib/dpkg/triggers)
  find_program(dpkg dpkg REQUIRED)
  set(dpkg ${dpkg} --root=${root} --log=${root}/dpkg.log --force-not-root --force-depends
           --force-bad-path)
  step(${dpkg} --unpack ${deb})
  step(${dpkg} --status shardcall)
  if(NOT out MATCHES "Status: install ok unpacked" OR NOT out MATCHES "Version: ${version}")
    message(FATAL_ERROR "the Debian package is installed as:\n${out}")
  endif()
  file(WRITE ${WORK}/deb/program.hlo "HloModule m, num_partitions=4
ENTRY e { x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[8] negate(x) }")
  step(${usr}/bin/shardcall partition ${WORK}/deb/program.hlo)
  if(NOT out MATCHES "num_partitions=4.*f32.2....? negate")
    message(FATAL_ERROR "the command of the Debian package printed:\n${out}")
  endif()
  if(pkg_config)
    step(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${usr}/lib/pkgconfig
         ${pkg_config} --cflags --libs shardcall)
    string(STRIP "${out}" flags)
    separate_arguments(flags)
    step(cc -std=c11 ${SOURCE}/outside.c ${flags} -o ${WORK}/outside_deb)
    step(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${usr}/lib ${WORK}/outside_deb ${plugin})
  endif()
endif()
