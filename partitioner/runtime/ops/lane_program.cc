// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/ops/lane_program.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kMaxInlineDepth = 64;
constexpr int kMaxOps = 100000;

class LaneCompiler {
 public:
  LaneCompiler(const Module& module, LaneProgram* out) : m_(module), out_(out) {}

  // Compiles `comp` with its parameters' leaves in the given registers.
  absl::StatusOr<std::vector<int>> Compile(CompId comp, absl::Span<const int> parameters,
                                           int depth);
  int NewRegister(ElementType type) {
    out_->registers.push_back(type);
    return static_cast<int>(out_->registers.size()) - 1;
  }

 private:
  using Registers = std::vector<int>;
  using Map = absl::flat_hash_map<uint32_t, Registers>;
  // The registers of an op's result. `operands`: of all operands' leaves; `depth`: of calls.
  using CompileFn = absl::StatusOr<Registers> (LaneCompiler::*)(const LowerContext& context,
                                                                const Registers& operands,
                                                                int depth);
  struct Row {
    Opcode opcode;
    CompileFn compile;
  };
  absl::StatusOr<Registers> CompileOne(const LowerContext& context, const Map& registers,
                                       int depth);
  absl::Status CannotCompile(const LowerContext& context);
  absl::StatusOr<Registers> Operands(const LowerContext& context, const Registers& operands,
                                     int depth);
  absl::StatusOr<Registers> OneElement(const LowerContext& context, const Registers& operands,
                                       int depth);
  absl::StatusOr<Registers> TupleElement(const LowerContext& context, const Registers& operands,
                                         int depth);
  absl::StatusOr<Registers> Constant(const LowerContext& context, const Registers& operands,
                                     int depth);
  absl::StatusOr<Registers> Call(const LowerContext& context, const Registers& operands, int depth);
  absl::StatusOr<Registers> CustomCall(const LowerContext& context, const Registers& operands,
                                       int depth);
  absl::StatusOr<Registers> BitcastConvert(const LowerContext& context, const Registers& operands,
                                           int depth);
  absl::StatusOr<Registers> Elementwise(const LowerContext& context, const Registers& operands,
                                        int depth);
  Registers Append(const LaneKernel& kernel, const Registers& operands, ElementType type);

  const Module& m_;
  LaneProgram* out_;
};

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::CompileOne(const LowerContext& context,
                                                                 const Map& registers, int depth) {
  static constexpr Row kRows[] = {
      {Opcode::kTuple, &LaneCompiler::Operands},
      {Opcode::kCopy, &LaneCompiler::Operands},
      {Opcode::kOptBarrier, &LaneCompiler::Operands},
      {Opcode::kReshape, &LaneCompiler::OneElement},
      {Opcode::kBitcast, &LaneCompiler::OneElement},
      {Opcode::kBroadcast, &LaneCompiler::OneElement},
      {Opcode::kTranspose, &LaneCompiler::OneElement},
      {Opcode::kGetTupleElement, &LaneCompiler::TupleElement},
      {Opcode::kConstant, &LaneCompiler::Constant},
      {Opcode::kCall, &LaneCompiler::Call},
      {Opcode::kFusion, &LaneCompiler::Call},
      {Opcode::kCustomCall, &LaneCompiler::CustomCall},
      {Opcode::kBitcastConvert, &LaneCompiler::BitcastConvert},
  };
  const Instruction& i = context.instr;
  Registers operands;
  for (InstrId id : m_.operands(i)) {
    const Registers& r = registers.at(id.value);
    operands.insert(operands.end(), r.begin(), r.end());
  }
  if (const Row* row = RowByOpcode(kRows, i.opcode)) {
    return (this->*row->compile)(context, operands, depth);
  }
  return HasTrait(i.opcode, kElementwise) ? Elementwise(context, operands, depth)
                                          : CannotCompile(context);
}

absl::Status LaneCompiler::CannotCompile(const LowerContext& context) {
  return context.Unimplemented("this opcode within the computation of a reduction or the like");
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::Operands(const LowerContext&,
                                                               const Registers& operands, int) {
  return operands;
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::OneElement(const LowerContext& context,
                                                                 const Registers& operands, int) {
  const Shape& shape = *context.instr.shape;
  if (shape.rank() == 0 || shape.num_elements() == 1) return operands;
  return CannotCompile(context);
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::TupleElement(const LowerContext& context,
                                                                   const Registers& operands, int) {
  const Instruction& i = context.instr;
  const auto first =
      operands.begin() + FirstLeafAt(context.operand_shape(0), {i.as<TupleIndexAttrs>().index});
  return Registers(first, first + i.shape->num_leaves());
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::Constant(const LowerContext& context,
                                                               const Registers&, int) {
  const Literal& literal = *context.instr.as<ConstantAttrs>().literal;
  if (literal.elided || !literal.shape->IsArray() || literal.shape->num_elements() != 1) {
    return CannotCompile(context);
  }
  Tensor value = Tensor::FromBytes(literal.shape->element_type(), {}, literal.data.data());
  NormalizeElements(value.type(), value.MutableData(), 1);
  const int r = NewRegister(value.type());
  out_->constants.emplace_back(r, std::move(value));
  return Registers{r};
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::Call(const LowerContext& context,
                                                           const Registers& operands, int depth) {
  const auto callees = CalledComputations(m_, context.instr);
  if (callees.size() != 1 || depth >= kMaxInlineDepth) return CannotCompile(context);
  return Compile(callees[0], operands, depth + 1);
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::CustomCall(const LowerContext& context,
                                                                 const Registers& operands, int) {
  if (HasTrait(KnownTargetOf(context.instr), kIsIdentity) && operands.size() == 1) return operands;
  return CannotCompile(context);
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::BitcastConvert(const LowerContext& context,
                                                                     const Registers& operands,
                                                                     int) {
  const ElementType type = context.instr.shape->element_type();
  if (ElementTypeBits(out_->registers[operands[0]]) != ElementTypeBits(type)) {
    return CannotCompile(context);
  }
  return Append(FindLaneKernel(Opcode::kCopy, nullptr, {type}, type), operands, type);
}

absl::StatusOr<LaneCompiler::Registers> LaneCompiler::Elementwise(const LowerContext& context,
                                                                  const Registers& operands, int) {
  const Instruction& i = context.instr;
  if (operands.size() > 3 || !i.shape->IsArray()) return CannotCompile(context);
  absl::InlinedVector<ElementType, 3> types;
  for (int r : operands) types.push_back(out_->registers[r]);
  const LaneKernel kernel = FindLaneKernel(i.opcode, i.attrs, types, i.shape->element_type());
  if (!kernel.valid() || out_->ops.size() >= kMaxOps) return CannotCompile(context);
  return Append(kernel, operands, i.shape->element_type());
}

LaneCompiler::Registers LaneCompiler::Append(const LaneKernel& kernel, const Registers& operands,
                                             ElementType type) {
  LaneOp op;
  op.kernel = kernel;
  for (size_t k = 0; k < operands.size(); ++k) op.in[k] = operands[k];
  op.out = NewRegister(type);
  out_->ops.push_back(op);
  return {op.out};
}

absl::StatusOr<std::vector<int>> LaneCompiler::Compile(CompId comp,
                                                       absl::Span<const int> parameters,
                                                       int depth) {
  const Computation& c = m_.comp(comp);
  Map registers;
  size_t next = 0;
  for (InstrId id : c.parameters) {
    for (int k = 0; k < m_.instr(id).shape->num_leaves(); ++k) {
      if (next >= parameters.size()) {
        return ToStatus({.code = "E311",
                         .message = "a computation gets fewer operands than it has parameters",
                         .where = std::string(c.name),
                         .fix = "Give the computation as many operands as it has parameters"});
      }
      registers[id.value].push_back(parameters[next++]);
    }
  }
  const LowerOptions options;
  for (InstrId id : c.instructions) {
    if (m_.instr(id).opcode == Opcode::kParameter) continue;
    SHARDCALL_ASSIGN_OR_RETURN(registers[id.value],
                               CompileOne(LowerContext(m_, options, id), registers, depth));
  }
  return registers[c.root.value];
}

}  // namespace

absl::StatusOr<LaneProgram> CompileLanes(const Module& module, CompId comp) {
  LaneProgram program;
  LaneCompiler compiler(module, &program);
  std::vector<int> parameters;
  for (InstrId id : module.comp(comp).parameters) {
    const Shape& shape = *module.instr(id).shape;
    for (int k = 0; k < shape.num_leaves(); ++k) {
      parameters.push_back(compiler.NewRegister(shape.leaf(k)->element_type()));
    }
  }
  program.num_parameters = static_cast<int>(parameters.size());
  SHARDCALL_ASSIGN_OR_RETURN(program.results, compiler.Compile(comp, parameters, 0));
  program.returns_second = program.ops.empty() && program.results == std::vector<int>{1};
  if (program.ops.size() == 1 && program.num_parameters == 2 && program.results.size() == 1 &&
      program.results[0] == program.ops[0].out && program.ops[0].kernel.arity == 2) {
    const LaneOp& op = program.ops[0];
    const bool straight = op.in[0] == 0 && op.in[1] == 1;
    const bool crossed = op.in[0] == 1 && op.in[1] == 0;
    for (InstrId id : module.comp(comp).instructions) {
      const Opcode opcode = module.instr(id).opcode;
      if (IsMonoid(opcode) && (straight || crossed)) program.monoid = PartialOpOf(opcode);
    }
  }
  return program;
}

LaneRunner::LaneRunner(const LaneProgram& program, int64_t max_lanes)
    : program_(program), max_lanes_(max_lanes) {
  address_.resize(program.registers.size(), nullptr);
  storage_.resize(program.registers.size());
  for (const auto& [r, value] : program.constants) {
    storage_[r] = Tensor(value.type(), {max_lanes});
    address_[r] = storage_[r].MutableData();
    FillElements(value.element_bytes(), value.data(), storage_[r].MutableData(), max_lanes);
  }
  direct_ = program.ops.size() == 1 && program.results.size() == 1 &&
            program.results[0] == program.ops[0].out;
  if (direct_) return;
  for (const LaneOp& op : program.ops) {
    storage_[op.out] = Tensor(op.kernel.out_type, {max_lanes});
    address_[op.out] = storage_[op.out].MutableData();
  }
}

void LaneRunner::Run(const void* const* params, void* const* results, int64_t n) {
  for (int k = 0; k < program_.num_parameters; ++k) address_[k] = const_cast<void*>(params[k]);
  if (direct_) address_[program_.ops[0].out] = results[0];
  for (const LaneOp& op : program_.ops) {
    const void* in[3];
    for (int k = 0; k < op.kernel.arity; ++k) in[k] = address_[op.in[k]];
    op.kernel.Run(in, address_[op.out], n);
  }
  if (direct_) return;
  // A result may share the memory of another parameter, so results that are parameters are saved
  // before anything is overwritten.
  const size_t count = program_.results.size();
  absl::InlinedVector<Tensor, 2> saved(count);
  for (size_t r = 0; r < count && count > 1; ++r) {
    const int reg = program_.results[r];
    if (reg < program_.num_parameters && address_[reg] != results[r]) {
      saved[r] = Tensor::FromBytes(program_.registers[reg], {n}, address_[reg]);
    }
  }
  for (size_t r = 0; r < count; ++r) {
    const int reg = program_.results[r];
    const void* from = saved[r].num_elements() > 0 ? saved[r].data() : address_[reg];
    if (from != results[r]) {
      std::memcpy(results[r], from, n * ElementTypeBytes(program_.registers[reg]));
    }
  }
}

}  // namespace internal
}  // namespace shardcall
