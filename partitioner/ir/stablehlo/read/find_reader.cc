// SPDX-License-Identifier: Apache-2.0
// Which function reads an operation, and the function for those whose name is all there is to know.
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/plain_ops.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// Whether every element is 1.
bool IsOne(const Module& m, InstrId id) {
  const Instruction* i = &m.instr(id);
  if (i->opcode == Opcode::kBroadcast) i = &m.instr(m.operand(id, 0));
  if (i->opcode != Opcode::kConstant || i->shape->rank() != 0) return false;
  uint64_t one;
  const absl::Span<const char> data = i->as<ConstantAttrs>().literal->data;
  return data.size() <= sizeof(one) &&
         IdentityBits(Opcode::kMultiply, i->shape->element_type(), &one) &&
         std::memcmp(data.data(), &one, data.size()) == 0;
}

const absl::flat_hash_map<absl::string_view, ReadFn>& Readers() {
  return MadeAtFirstUse([] {
    auto* all = new absl::flat_hash_map<absl::string_view, ReadFn>;
    for (absl::Span<const OpRow> rows :
         {ShapingRows(), CombiningRows(), ControlRows(), CallRows(), CollectiveRows()}) {
      for (const OpRow& row : rows) all->emplace(row.name, row.read);
    }
    return all;
  });
}

const absl::flat_hash_map<absl::string_view, Opcode>& PlainOps() {
  return MadeAtFirstUse([] {
    auto* all = new absl::flat_hash_map<absl::string_view, Opcode>;
    for (int k = 0; k < kNumOpcodes; ++k) {
      const Opcode opcode = static_cast<Opcode>(k);
      if (IsPlain(GetOpcodeInfo(opcode))) all->emplace(NameOf(opcode), opcode);
    }
    return all;
  });
}

absl::Status ReadPlain(ComputationReader& c, const Operation& op) {
  const Opcode opcode = PlainOps().at(op.name);
  const Attribute* accuracy = c.Find(op, "result_accuracy");
  if (accuracy != nullptr && (accuracy->kind != Attribute::Kind::kAssembly ||
                              !absl::StrContains(accuracy->text, "DEFAULT"))) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with another result_accuracy"));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, c.Operands(op));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op));
  const int arity = GetOpcodeInfo(opcode).arity;
  if (op.results.size() != 1 || (arity >= 0 && static_cast<int>(operands.size()) != arity)) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with another number of operands"));
  }
  if (opcode == Opcode::kConvert && !IsComplex(shape->element_type()) &&
      IsComplex(c.reader().module().instr(operands[0]).shape->element_type())) {
    return ModuleReader::Cannot("a conversion from complex to real numbers");
  }
  // Derivatives multiply by the constant 1.
  if (opcode == Opcode::kMultiply && !c.IsAnnotated(op)) {
    for (int k = 0; k < 2; ++k) {
      const Module& m = c.reader().module();
      if (!IsOne(m, operands[1 - k]) || m.instr(operands[k]).shape->bare() != shape->bare())
        continue;
      c.reader().SetInstr(op.results[0], operands[k]);
      return absl::OkStatus();
    }
  }
  const Attributes* attrs = nullptr;
  if (GetOpcodeInfo(opcode).attrs == AttrKind::kReshape) {
    attrs = InternAttributes(c.context(), ReshapeAttrs());
  } else if (GetOpcodeInfo(opcode).attrs == AttrKind::kResultAccuracy) {
    attrs = InternAttributes(c.context(), ResultAccuracyAttrs());
  }
  return c.Finish(op, c.Emit(op, opcode, shape, operands, attrs));
}

}  // namespace

ReadFn FindReader(absl::string_view name) {
  if (const auto it = Readers().find(name); it != Readers().end()) return it->second;
  if (PlainOps().contains(name)) return ReadPlain;
  return nullptr;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
