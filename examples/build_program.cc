// SPDX-License-Identifier: Apache-2.0
// A program that is built in C++, shardings and all, with no HLO text: the
// activations x are cut by rows and the weights w by columns, relu is the shipped
// custom call, whose rule gives its shape, and y, which only says how its rows are
// to be cut, sums what is left over the columns.
#include <cstdio>
#include <utility>

#include "prove.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/ir/build/program_builder.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> Program(const TargetRegistry& targets) {
  ProgramBuilder p("layer", /*num_partitions=*/8);
  CheckedBuilder& b = p.builder();
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, p.Parameter(ElementType::kF32, {10, 6}));
  SHARDCALL_RETURN_IF_ERROR(b.SetSharding(x, "{mesh['data'=4,'model'=2], [{'data'}, {}]}"));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId w, p.Parameter(ElementType::kF32, {6, 8}));
  SHARDCALL_RETURN_IF_ERROR(b.SetSharding(w, "{mesh['data'=4,'model'=2], [{}, {'model'}]}"));
  const DotDimensions product{.lhs_contracting = {1}, .rhs_contracting = {0}};
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId h, b.Dot(x, w, product));
  CustomCallAttrs relu;
  relu.target = "custom_relu";
  relu.api_version = 4;
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId r, b.CustomCall(relu, {h}, targets));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(ElementType::kF32, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId y, b.Reduce(r, zero, {1}, Opcode::kAdd));
  SHARDCALL_RETURN_IF_ERROR(b.SetSharding(y, "{mesh['data'=4,'model'=2], [{'data'}]}"));
  return std::move(p).Build(y, &targets);
}

absl::Status Main() {
  TargetRegistry targets;
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinTargets(targets));
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(handlers));
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Program(targets));
  return Prove(std::move(module), targets, handlers);
}

}  // namespace
}  // namespace shardcall

int main() { return shardcall::Finish(shardcall::Main()); }
