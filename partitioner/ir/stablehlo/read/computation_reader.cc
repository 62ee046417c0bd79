// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// "mul" of "jit(step)/jvp()/mul".
std::string BaseName(const Metadata* metadata, Opcode opcode) {
  const absl::string_view name = metadata == nullptr ? absl::string_view() : metadata->op_name;
  return ModuleReader::LegalName(name.substr(name.rfind('/') + 1), OpcodeText(opcode));
}

}  // namespace

absl::StatusOr<std::vector<InstrId>> ComputationReader::Read(const Block& block) {
  for (const Operation& op : block.operations) {
    if (op.name == "stablehlo.return" || op.name == "func.return" || op.name == "sdy.return") {
      if (&op != &block.operations.back()) return ModuleReader::Cannot("operations after a return");
      SHARDCALL_ASSIGN_OR_RETURN(const auto values, Operands(op));
      return std::vector<InstrId>(values.begin(), values.end());
    }
    SHARDCALL_RETURN_IF_ERROR(ReadOperation(op));
  }
  return ModuleReader::Cannot("a block without a return");
}

absl::Status ComputationReader::ReadOperation(const Operation& op) {
  const ReadFn read = FindReader(op.name);
  if (read == nullptr) return ModuleReader::Cannot(absl::StrCat("an op ", op.name));
  // Reading an operation may copy a constant from around its region.
  const std::vector<absl::string_view> before = std::exchange(asked_for_, {});
  SHARDCALL_RETURN_IF_ERROR(read(*this, op));
  SHARDCALL_RETURN_IF_ERROR(CheckAllRead(op));
  asked_for_ = before;
  return absl::OkStatus();
}

absl::Status ComputationReader::CheckAllRead(const Operation& op) const {
  if (other_kind_) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with an attribute of an unknown form"));
  }
  if (op.attributes < 0) return absl::OkStatus();
  // What only says how operands are grouped.
  constexpr absl::string_view kSegments[] = {"operandSegmentSizes", "resultSegmentSizes"};
  const Attribute& all = code().attribute(static_cast<uint32_t>(op.attributes));
  if (all.kind != Attribute::Kind::kDictionary) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with attributes of an unknown form"));
  }
  for (size_t k = 0; k + 1 < all.items.size(); k += 2) {
    const absl::string_view name = code().attribute(all.items[k]).text;
    if (absl::c_linear_search(asked_for_, name) || absl::c_linear_search(kSegments, name) ||
        absl::c_linear_search(AnnotationReader::kNames, name)) {
      continue;
    }
    return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name));
  }
  return absl::OkStatus();
}

InstrId ComputationReader::Constant(const Operation& op, const Shape* shape, std::string elements) {
  auto key = std::make_pair(std::move(elements), shape);
  const bool shared = !IsAnnotated(op);
  if (const auto it = constants_.find(key); shared && it != constants_.end()) return it->second;
  const ElementType type = shape->element_type();
  const bool equal = shape->rank() > 0 && shape->num_elements() > 1 &&
                     key.first.size() == static_cast<size_t>(ElementTypeBytes(type));
  InstrId id;
  if (equal) {
    const InstrId scalar = Constant(op, context().MakeScalar(type), key.first);
    id = Emit(op, Opcode::kBroadcast, shape, {scalar},
              InternAttributes(context(), DimensionsAttrs()));
  } else {
    ConstantAttrs attrs;
    attrs.literal = MakeLiteral(context(), shape, key.first);
    id = Emit(op, Opcode::kConstant, shape, {}, InternAttributes(context(), attrs));
  }
  if (shared) constants_.emplace(std::move(key), id);
  return id;
}

absl::StatusOr<InstrId> ComputationReader::Value(uint32_t value) {
  const InstrId id = r_.InstrOf(value);
  if (!id.valid()) return ModuleReader::Cannot("a value that is used before it is given");
  if (r_.module().instr(id).computation == comp_) return id;
  // HLO's computations see no values from around them. Constants are read again within this one.
  if (const auto it = copies_.find(value); it != copies_.end()) return it->second;
  const Operation* giver = r_.Giver(value);
  if (giver == nullptr || giver->name != "stablehlo.constant") {
    return ModuleReader::Cannot("a value that a region takes from around it");
  }
  SHARDCALL_RETURN_IF_ERROR(ReadOperation(*giver));
  const InstrId copy = r_.InstrOf(value);
  r_.SetInstr(value, id);
  return copies_[value] = copy;
}

absl::StatusOr<absl::InlinedVector<InstrId, 8>> ComputationReader::Operands(const Operation& op,
                                                                            size_t first) {
  absl::InlinedVector<InstrId, 8> out;
  for (size_t k = first; k < op.operands.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId id, Operand(op, k));
    out.push_back(id);
  }
  return out;
}

absl::StatusOr<InstrId> ComputationReader::Operand(const Operation& op, size_t k) {
  if (k < op.operands.size()) return Value(op.operands[k]);
  return ModuleReader::Cannot(absl::StrCat(op.name, " with too few operands"));
}

absl::StatusOr<InstrId> ComputationReader::ArrayOperand(const Operation& op, size_t k) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId id, Operand(op, k));
  if (r_.module().instr(id).shape->IsArray()) return id;
  return ModuleReader::Cannot(absl::StrCat(op.name, " over what is no array"));
}

absl::StatusOr<const Shape*> ComputationReader::ShapeOf(const Operation& op, size_t result) {
  if (result < op.results.size()) return r_.ShapeOfValue(op.results[result]);
  return ModuleReader::Cannot(absl::StrCat(op.name, " with too few results"));
}

absl::StatusOr<const Shape*> ComputationReader::ArrayOf(const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, ShapeOf(op));
  if (op.results.size() == 1 && shape->IsArray()) return shape;
  return ModuleReader::Cannot(absl::StrCat(op.name, " whose result is no array"));
}

absl::StatusOr<const Shape*> ComputationReader::ShapeOfAll(const Operation& op) {
  if (op.results.size() == 1) return ShapeOf(op);
  std::vector<const Shape*> shapes;
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* s, ShapeOf(op, k));
    shapes.push_back(s);
  }
  return context().MakeTuple(shapes);
}

bool ComputationReader::IsAnnotated(const Operation& op) const {
  for (absl::string_view name : AnnotationReader::kNames) {
    if (code().Find(op, name) != nullptr) return true;
  }
  return false;
}

InstrId ComputationReader::Emit(const Operation& op, Opcode opcode, const Shape* shape,
                                absl::Span<const InstrId> operands, const Attributes* attrs) {
  PureKey key;
  // No two ops have the same computation.
  const bool pure = IsPure(opcode) && !HasTrait(opcode, kCallsComputation) && !IsAnnotated(op);
  if (pure) {
    std::vector<uint32_t> ids;
    for (InstrId o : operands) ids.push_back(o.value);
    key = {opcode, shape, attrs, std::move(ids)};
    if (const auto it = pure_.find(key); it != pure_.end()) return it->second;
  }
  const AttrKind kind = attrs == nullptr ? AttrKind::kNone : attrs->kind;
  SHARDCALL_CHECK(kind == GetOpcodeInfo(opcode).attrs);
  Instruction i;
  i.opcode = opcode;
  i.shape = shape;
  i.attrs = attrs;
  i.metadata = r_.locations().Of(op.location);
  i.name = r_.names().Take(context().Intern(BaseName(i.metadata, opcode)));
  const InstrId id = r_.module().Add(comp_, i, operands);
  if (pure) pure_.emplace(std::move(key), id);
  return id;
}

absl::Status ComputationReader::Finish(const Operation& op, InstrId id, bool always_tuple) {
  if (op.attributes >= 0) {
    SHARDCALL_RETURN_IF_ERROR(
        r_.annotations().Annotate(code().attribute(static_cast<uint32_t>(op.attributes)), id));
  }
  if (op.results.size() == 1 && !always_tuple) {
    r_.SetInstr(op.results[0], id);
    return absl::OkStatus();
  }
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId element, Element(op, id, static_cast<int64_t>(k)));
    r_.SetInstr(op.results[k], element);
  }
  return absl::OkStatus();
}

absl::Status ComputationReader::EmitWhole(const Operation& op, Opcode opcode,
                                          const Attributes* attrs) {
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, Operands(op));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, ShapeOfAll(op));
  return Finish(op, Emit(op, opcode, shape, operands, attrs));
}

InstrId ComputationReader::Tuple(const Operation& op, absl::Span<const InstrId> elements) {
  std::vector<const Shape*> shapes;
  for (InstrId e : elements) shapes.push_back(r_.module().instr(e).shape);
  return Emit(op, Opcode::kTuple, context().MakeTuple(shapes), elements);
}

InstrId ComputationReader::NewTuple(const Operation& op, absl::Span<const InstrId> elements) {
  pure_.clear();  // so that no equal one is found
  return Tuple(op, elements);
}

absl::StatusOr<InstrId> ComputationReader::Element(const Operation& op, InstrId tuple,
                                                   int64_t index) {
  const Shape* shape = r_.module().instr(tuple).shape;
  if (!shape->IsTuple() || index >= static_cast<int64_t>(shape->tuple().size())) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with another number of results"));
  }
  TupleIndexAttrs attrs;
  attrs.index = index;
  return Emit(op, Opcode::kGetTupleElement, shape->tuple()[index], {tuple},
              InternAttributes(context(), attrs));
}

InstrId ComputationReader::Root(const Operation& op, absl::Span<const InstrId> values) {
  return values.size() == 1 ? values[0] : Tuple(op, values);
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
