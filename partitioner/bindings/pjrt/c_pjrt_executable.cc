// SPDX-License-Identifier: Apache-2.0
// Compiled programs and device arrays in C.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/bindings/pjrt/c_pjrt_objects.h"
#include "shardcall/sharding/base/status.h"

using namespace shardcall;  // NOLINT: definitions of C functions

namespace {

// Which inputs are donated to the execution; E148 if one cannot be.
absl::StatusOr<std::vector<bool>> GivenUp(const char* function, const PjrtExecutable& executable,
                                          absl::Span<Shardcall_PjrtArray* const> inputs,
                                          bool donate) {
  std::vector<bool> given(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(NotNull(function, "one of the inputs", inputs[k]));
    given[k] = donate && executable.Donates(k);
    if (given[k] && std::count(inputs.begin(), inputs.end(), inputs[k]) > 1) {
      return BadArgument(function, "an array that is given up once in the list",
                         absl::StrCat("input ", k, " in another place, too"));
    }
  }
  return given;
}

}  // namespace

extern "C" {

Shardcall_Error* Shardcall_Program_CompileForPjrt(const Shardcall_Program* program,
                                                  Shardcall_PjrtEngine* engine,
                                                  Shardcall_PjrtExecutable** executable) {
  static constexpr char kName[] = "Shardcall_Program_CompileForPjrt";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "program", program));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "engine", engine));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "executable", executable));
    const std::scoped_lock lock(engine->mutex, program->mutex);
    SHARDCALL_ASSIGN_OR_RETURN(PjrtExecutable compiled,
                               engine->engine->Compile(program->program, program->options));
    *executable = new Shardcall_PjrtExecutable{program->registry, std::move(compiled)};
    return absl::OkStatus();
  });
}

void Shardcall_PjrtExecutable_Destroy(Shardcall_PjrtExecutable* executable) { delete executable; }

int32_t Shardcall_PjrtExecutable_NumInputs(const Shardcall_PjrtExecutable* executable) {
  return executable == nullptr ? 0 : static_cast<int32_t>(executable->executable.num_inputs());
}
int32_t Shardcall_PjrtExecutable_NumOutputs(const Shardcall_PjrtExecutable* executable) {
  return executable == nullptr ? 0 : static_cast<int32_t>(executable->executable.num_outputs());
}

Shardcall_Error* Shardcall_PjrtExecutable_Put(const Shardcall_PjrtExecutable* executable,
                                              int32_t input, const Shardcall_Buffer* buffer,
                                              Shardcall_PjrtArray** array) {
  static constexpr char kName[] = "Shardcall_PjrtExecutable_Put";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "executable", executable));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "buffer", buffer));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "array", array));
    const std::vector<LeafShape>& leaves = executable->executable.inputs();
    if (input < 0 || input >= static_cast<int64_t>(leaves.size())) {
      return BadArgument(kName, absl::StrCat("one of ", leaves.size(), " inputs"),
                         absl::StrCat(input));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const Tensor tensor, ReadCInput(input, leaves[input], *buffer));
    SHARDCALL_ASSIGN_OR_RETURN(PjrtArray put, executable->executable.Put(input, tensor));
    *array = new Shardcall_PjrtArray{std::move(put)};
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_PjrtExecutable_Execute(const Shardcall_PjrtExecutable* executable,
                                                  Shardcall_PjrtArray** inputs, int32_t num_inputs,
                                                  int32_t donate, Shardcall_PjrtArray** outputs,
                                                  int32_t num_outputs) {
  static constexpr char kName[] = "Shardcall_PjrtExecutable_Execute";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "executable", executable));
    const PjrtExecutable& program = executable->executable;
    const auto count = [](const void* list, int32_t found, size_t expected, const char* what) {
      if (found == static_cast<int64_t>(expected) && (found == 0 || list != nullptr)) {
        return absl::OkStatus();
      }
      return BadArgument(kName, absl::StrCat(expected, " ", what),
                         absl::StrCat(found, list == nullptr ? " at null" : ""));
    };
    SHARDCALL_RETURN_IF_ERROR(count(inputs, num_inputs, program.num_inputs(), "inputs"));
    SHARDCALL_RETURN_IF_ERROR(count(outputs, num_outputs, program.num_outputs(), "outputs"));
    const absl::Span<Shardcall_PjrtArray*> handles = absl::MakeSpan(inputs, num_inputs);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<bool> given,
                               GivenUp(kName, program, handles, donate != 0));
    std::vector<PjrtArray> arrays;
    for (Shardcall_PjrtArray* handle : handles) arrays.push_back(handle->array);
    SHARDCALL_RETURN_IF_ERROR(program.CheckInputs(arrays));
    for (size_t k = 0; k < handles.size(); ++k) {
      if (given[k]) Shardcall_PjrtArray_Destroy(std::exchange(handles[k], nullptr));
    }
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<PjrtArray> results, program.Execute(std::move(arrays)));
    for (size_t k = 0; k < results.size(); ++k) {
      outputs[k] = new Shardcall_PjrtArray{std::move(results[k])};
    }
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_PjrtArray_ToHost(const Shardcall_PjrtArray* array,
                                            Shardcall_Buffers** buffer) {
  static constexpr char kName[] = "Shardcall_PjrtArray_ToHost";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "array", array));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "buffer", buffer));
    SHARDCALL_ASSIGN_OR_RETURN(Tensor whole, array->array.ToHost());
    *buffer = MakeCBuffers({std::move(whole)});
    return absl::OkStatus();
  });
}

void Shardcall_PjrtArray_Destroy(Shardcall_PjrtArray* array) { delete array; }

}  // extern "C"
