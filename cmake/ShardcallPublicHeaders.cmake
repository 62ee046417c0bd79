# SPDX-License-Identifier: Apache-2.0
# The headers that users include. These and the headers that they include are installed, and their
# declarations are exported by libshardcall.so (SHARDCALL_PUBLIC, sharding/base/public.h).
set(SHARDCALL_PUBLIC_HEADERS
  collectives/async.h
  collectives/communicator.h
  collectives/in_process/in_process.h
  collectives/mpi/mpi.h
  collectives/nccl/nccl.h
  collectives/split.h
  kernels/builtin.h
  kernels/ffi/attributes.h
  kernels/ffi/handler.h
  kernels/ffi/load/library.h
  kernels/ffi/shardcall_ffi.h
  kernels/ffi/typed_handler.h
  kernels/ffi/untyped_handler.h
  partitioner/api/derived_calls.h
  partitioner/api/device_memory.h
  partitioner/api/engine.h
  partitioner/api/executable.h
  partitioner/api/lower_calls.h
  partitioner/api/partition.h
  partitioner/api/partition_call.h
  partitioner/api/program_io.h
  partitioner/api/report.h
  partitioner/api/run.h
  partitioner/api/shardcall.h
  partitioner/api/targets.h
  partitioner/api/verify.h
  partitioner/api/version.h
  partitioner/api/warnings.h
  partitioner/bindings/c/plugin.h
  partitioner/bindings/c/shardcall_c.h
  partitioner/bindings/c/shardcall_c_base.h
  partitioner/bindings/c/shardcall_c_check.h
  partitioner/bindings/c/shardcall_c_derived.h
  partitioner/bindings/c/shardcall_c_inspect.h
  partitioner/bindings/c/shardcall_c_partition.h
  partitioner/bindings/c/shardcall_c_plugin.h
  partitioner/bindings/c/shardcall_c_program.h
  partitioner/bindings/c/shardcall_c_registry.h
  partitioner/bindings/manifest/manifest.h
  partitioner/bindings/pjrt/pjrt_engine.h
  partitioner/bindings/pjrt/shardcall_c_pjrt.h
  partitioner/bindings/xla/exported_calls.h
  partitioner/bindings/xla/framework_program.h
  partitioner/bindings/xla/inspect_sharding.h
  partitioner/bindings/xla/manual_computation.h
  partitioner/bindings/xla/pjrt_partitioner.h
  partitioner/bindings/xla/pjrt_serving.h
  partitioner/bindings/xla/registration.h
  partitioner/ir/stablehlo/writer.h
  partitioner/check/check_rule.h
  partitioner/check/check_target.h
  partitioner/check/check_vjp.h
  partitioner/check/reference.h
  partitioner/check/rule_matchers.h
  partitioner/custom_call/cache_key.h
  partitioner/custom_call/call_limits.h
  partitioner/custom_call/call_view.h
  partitioner/custom_call/derive/derived_rules.h
  partitioner/custom_call/derive/lowering.h
  partitioner/custom_call/partition_context.h
  partitioner/custom_call/registry.h
  partitioner/custom_call/rule_callbacks.h
  partitioner/custom_call/target_facts.h
  partitioner/custom_call/type_signature.h
  partitioner/import/export.h
  partitioner/ir/build/builder.h
  partitioner/ir/build/checked_builder.h
  partitioner/ir/build/program_builder.h
  partitioner/ir/proto/hlo_proto.h
  partitioner/ir/text/parser.h
  partitioner/ir/text/printer.h
  partitioner/ir/verifier/verifier.h
  partitioner/runtime/io/npz.h
  partitioner/runtime/tensor.h
  sharding/base/human_bytes.h)

# Sets `out` to these headers and all that they include.
function(shardcall_public_closure out)
  set(todo ${SHARDCALL_PUBLIC_HEADERS})
  set(done)
  while(todo)
    list(POP_FRONT todo header)
    if(header IN_LIST done)
      continue()
    endif()
    list(APPEND done ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^ *# *include \"shardcall/")
    foreach(line ${lines})
      string(REGEX REPLACE ".*\"shardcall/([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND todo ${included})
    endforeach()
  endwhile()
  list(SORT done)
  set(${out} ${done} PARENT_SCOPE)
endfunction()
