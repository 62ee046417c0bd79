// SPDX-License-Identifier: Apache-2.0
// What instructions cost under the cost model, where their shapes alone determine it: in a program
// of one device, this is what the device computes.
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_INSTRUCTION_COST_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_INSTRUCTION_COST_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {

// Bytes that an op reads and writes, by those of its operands and results: all of them, but for ops
// that read a part of their first operand (kReadsPart), or replace a part of it (kReplacesPart).
// Operands and results are arrays, of tuples the elements.
double TouchedOf(Opcode opcode, absl::Span<const double> operands,
                 absl::Span<const double> results);

// The same of an instruction, in whole bytes.
int64_t TouchedBytes(const Module& module, const Instruction& instr);

// The products that a dot or a convolution sums (an op with kTakesFlops): each element of the
// result is a sum over the contracted dimensions, or over the window and the input features.
double ProductsOf(const Module& module, const Instruction& instr);

// Seconds that `instr` computes by itself, without its computations.
double ComputeSeconds(const Module& module, const Instruction& instr, const CostModel& cost);

// The cost of an op with kComposed, where `of` gives that of one run of a computation, in any unit.
// Of a conditional the dearest branch counts, as one runs; the computations of a loop whose trip
// count is unknown run `trip_count` times.
double CostOfRuns(const Module& module, InstrId instr, double trip_count,
                  absl::FunctionRef<double(CompId)> of);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_INSTRUCTION_COST_H_
