// SPDX-License-Identifier: Apache-2.0
// The classic first custom call, from C++ alone: a target of the oldest ABI is
// registered, a program that calls it is built with shapes and layouts, compiled
// and executed: test_subtract_f32(1.25, 0.5) = 0.75. Compiled without the
// target, it is an error that says what is registered.
#include <cstdio>

#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

void Subtract(void* out, const void** in) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) - *static_cast<const float*>(in[1]);
}

absl::StatusOr<Module> Program() {
  ProgramBuilder p("subtract");
  // A scalar: no dimensions, no layout.
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* f32, p.Array(ElementType::kF32, {}, {}));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId x, p.Parameter(f32));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId y, p.Parameter(f32));
  CustomCallAttrs call;
  call.target = "test_subtract_f32";
  SHARDCALL_ASSIGN_OR_RETURN(InstrId z, p.builder().CustomCall(call, {x, y}, f32));
  return std::move(p).Build(z);
}

absl::Status Main() {
  HandlerRegistry handlers;
  SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry, MakeUntypedEntry("test_subtract_f32", "Host",
                                                                  reinterpret_cast<void*>(Subtract),
                                                                  /*api_version=*/0, "example"));
  SHARDCALL_RETURN_IF_ERROR(handlers.Register(entry));
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Program());
  SHARDCALL_ASSIGN_OR_RETURN(Executable program,
                             Compile(std::move(module), {.handlers = &handlers}));
  auto scalar = [](float v) { return Tensor::From<float>(ElementType::kF32, {}, {v}); };
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> out, program.Execute({scalar(1.25), scalar(0.5)}));
  std::printf("test_subtract_f32(1.25, 0.5) = %g\n", *out[0].data<float>());
  if (*out[0].data<float>() != 0.75f) return absl::InternalError("that is wrong");

  HandlerRegistry none;
  SHARDCALL_ASSIGN_OR_RETURN(Module again, Program());
  const absl::Status refused = Compile(std::move(again), {.handlers = &none}).status();
  std::printf("unregistered: %s\n", std::string(refused.message()).c_str());
  return refused.ok() ? absl::InternalError("it should have been refused") : absl::OkStatus();
}

}  // namespace
}  // namespace shardcall

int main() {
  const absl::Status status = shardcall::Main();
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
