// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/computation_reader.h"

#include <cstring>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::stablehlo {
namespace {

using Kind = Attribute::Kind;

// "mul" of "jit(step)/jvp()/mul".
std::string BaseName(const Metadata* metadata, Opcode opcode) {
  const absl::string_view name = metadata == nullptr ? absl::string_view() : metadata->op_name;
  return ModuleReader::LegalName(name.substr(name.rfind('/') + 1), OpcodeText(opcode));
}

// Depends on nothing but its operands, and has no computation of its own.
bool IsPure(Opcode opcode) {
  return !HasTrait(opcode, kSideEffect | kCollectiveOp | kCallsComputation | kAsyncForm) &&
         opcode != Opcode::kParameter && opcode != Opcode::kOptBarrier &&
         opcode != Opcode::kAfterAll;
}

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

absl::Status ReadPlain(ComputationReader& c, const Operation& op);

const absl::flat_hash_map<absl::string_view, ReadFn>& Readers() {
  static const auto* const readers = [] {
    auto* all = new absl::flat_hash_map<absl::string_view, ReadFn>;
    for (absl::Span<const OpRow> rows :
         {ShapingRows(), CombiningRows(), ControlRows(), CallRows(), CollectiveRows()}) {
      for (const OpRow& row : rows) all->emplace(row.name, row.read);
    }
    return all;
  }();
  return *readers;
}

// The opcodes whose name in StableHLO is all there is to know.
const absl::flat_hash_map<absl::string_view, Opcode>& PlainOps() {
  static const auto* const ops = [] {
    auto* all = new absl::flat_hash_map<absl::string_view, Opcode>;
    for (int k = 0; k < kNumOpcodes; ++k) {
      const Opcode opcode = static_cast<Opcode>(k);
      const absl::string_view name = GetOpcodeInfo(opcode).stablehlo;
      if (!name.empty()) all->emplace(name, opcode);
    }
    return all;
  }();
  return *ops;
}

absl::Status ReadPlain(ComputationReader& c, const Operation& op) {
  const Opcode opcode = PlainOps().at(absl::StripPrefix(op.name, "stablehlo."));
  const Attribute* accuracy = c.Find(op, "result_accuracy");
  if (accuracy != nullptr && !absl::StrContains(accuracy->text, "DEFAULT")) {
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
      if (!IsOne(c.reader().module(), operands[1 - k])) continue;
      c.reader().Set(op.results[0], operands[k]);
      return absl::OkStatus();
    }
  }
  const Attributes* attrs = nullptr;
  if (GetOpcodeInfo(opcode).attrs == AttrKind::kReshape) {
    attrs = InternAttributes(c.context(), ReshapeAttrs());
  }
  return c.Finish(op, c.Emit(op, opcode, shape, operands, attrs));
}

}  // namespace

ReadFn FindReader(absl::string_view name) {
  if (const auto it = Readers().find(name); it != Readers().end()) return it->second;
  absl::string_view plain = name;
  if (absl::ConsumePrefix(&plain, "stablehlo.") && PlainOps().contains(plain)) return ReadPlain;
  return nullptr;
}

absl::StatusOr<std::vector<InstrId>> ComputationReader::Read(const Block& block) {
  for (const Operation& op : block.operations) {
    if (op.name == "stablehlo.return" || op.name == "func.return" || op.name == "sdy.return") {
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
  std::vector<absl::string_view> before = std::move(asked_for_);
  asked_for_.clear();
  SHARDCALL_RETURN_IF_ERROR(read(*this, op));
  SHARDCALL_RETURN_IF_ERROR(CheckAllRead(op));
  asked_for_ = std::move(before);
  return absl::OkStatus();
}

absl::Status ComputationReader::CheckAllRead(const Operation& op) const {
  if (op.attributes < 0) return absl::OkStatus();
  // What only says how operands are grouped.
  constexpr absl::string_view kSegments[] = {"operandSegmentSizes", "resultSegmentSizes"};
  const Attribute& all = code().attribute(static_cast<uint32_t>(op.attributes));
  for (size_t k = 0; k + 1 < all.items.size(); k += 2) {
    const absl::string_view name = code().attribute(all.items[k]).text;
    if (absl::c_linear_search(asked_for_, name) || absl::c_linear_search(kSegments, name) ||
        absl::c_linear_search(ModuleReader::kAnnotations, name)) {
      continue;
    }
    return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name));
  }
  return absl::OkStatus();
}

InstrId ComputationReader::Constant(const Operation& op, const Shape* shape, std::string elements) {
  auto key = std::make_pair(std::move(elements), shape);
  if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
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
  constants_.emplace(std::move(key), id);
  return id;
}

absl::StatusOr<InstrId> ComputationReader::Value(uint32_t value) {
  const InstrId id = r_.now(value);
  if (!id.valid()) return ModuleReader::Cannot("a value that is used before it is given");
  const Instruction& i = r_.module().instr(id);
  if (i.computation == comp_) return id;
  // Of a computation around this one. Constants are copied; their second form is a broadcast.
  const Operation* giver = r_.Giver(value);
  if (giver == nullptr || giver->name != "stablehlo.constant") {
    return ModuleReader::Cannot("a value that a region takes from around it");
  }
  SHARDCALL_RETURN_IF_ERROR(ReadOperation(*giver));
  const InstrId copy = r_.now(value);
  r_.Set(value, id);
  return copy;
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
  for (absl::string_view name : ModuleReader::kAnnotations) {
    if (code().Find(op, name) != nullptr) return true;
  }
  return false;
}

InstrId ComputationReader::Emit(const Operation& op, Opcode opcode, const Shape* shape,
                                absl::Span<const InstrId> operands, const Attributes* attrs) {
  PureKey key;
  const bool pure = IsPure(opcode) && !IsAnnotated(op);
  if (pure) {
    std::vector<uint32_t> ids;
    for (InstrId o : operands) ids.push_back(o.value);
    key = {opcode, shape, attrs, std::move(ids)};
    if (const auto it = pure_.find(key); it != pure_.end()) return it->second;
  }
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
        r_.Annotate(code().attribute(static_cast<uint32_t>(op.attributes)), id));
  }
  if (op.results.size() == 1 && !always_tuple) {
    r_.Set(op.results[0], id);
    return absl::OkStatus();
  }
  for (size_t k = 0; k < op.results.size(); ++k) {
    r_.Set(op.results[k], Element(op, id, static_cast<int64_t>(k)));
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

InstrId ComputationReader::Element(const Operation& op, InstrId tuple, int64_t index) {
  TupleIndexAttrs attrs;
  attrs.index = index;
  return Emit(op, Opcode::kGetTupleElement, r_.module().instr(tuple).shape->tuple()[index], {tuple},
              InternAttributes(context(), attrs));
}

InstrId ComputationReader::Root(const Operation& op, absl::Span<const InstrId> values) {
  return values.size() == 1 ? values[0] : Tuple(op, values);
}

absl::StatusOr<CompId> ComputationReader::RegionOf(const Operation& op, size_t region,
                                                   absl::string_view name) {
  if (region >= op.regions.size() || op.regions[region].blocks.size() != 1) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " without its region"));
  }
  const Block& block = op.regions[region].blocks[0];
  ComputationReader inner(&r_, r_.AddComputation(name));
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, r_.ShapeOfValue(block.arguments[k]));
    ParameterAttrs attrs;
    attrs.number = static_cast<int64_t>(k);
    r_.Set(block.arguments[k],
           inner.Emit(op, Opcode::kParameter, shape, {}, InternAttributes(context(), attrs)));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> values, inner.Read(block));
  r_.module().SetRoot(inner.comp(), inner.Root(op, values));
  return inner.comp();
}

absl::StatusOr<CompId> ComputationReader::OverTuple(const Operation& op, size_t region,
                                                    absl::Span<const uint32_t> captured,
                                                    bool pass_on) {
  if (region >= op.regions.size() || op.regions[region].blocks.size() != 1) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " without its region"));
  }
  const Block& block = op.regions[region].blocks[0];
  ComputationReader inner(&r_, r_.AddComputation("region"));
  std::vector<uint32_t> values = block.arguments;
  values.insert(values.end(), captured.begin(), captured.end());
  std::vector<const Shape*> shapes;
  for (uint32_t value : values) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, r_.ShapeOfValue(value));
    shapes.push_back(shape);
  }
  const InstrId tuple = inner.Emit(op, Opcode::kParameter, context().MakeTuple(shapes), {},
                                   InternAttributes(context(), ParameterAttrs()));
  std::vector<InstrId> outer;  // of the captured values, restored below
  for (size_t k = 0; k < values.size(); ++k) {
    outer.push_back(r_.now(values[k]));
    r_.Set(values[k], inner.Element(op, tuple, static_cast<int64_t>(k)));
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> results, inner.Read(block));
  if (pass_on) {
    for (uint32_t value : captured) results.push_back(r_.now(value));
  }
  for (size_t k = 0; k < values.size(); ++k) r_.Set(values[k], outer[k]);
  // The results of loops and branches are a tuple even if there is one; a condition is not.
  const bool condition = op.name == "stablehlo.while" && region == 0;
  if (condition && results.empty()) return ModuleReader::Cannot("a loop without a condition");
  r_.module().SetRoot(inner.comp(), condition ? results[0] : inner.Tuple(op, results));
  return inner.comp();
}

std::vector<uint32_t> ComputationReader::Captured(const Region& region) const {
  std::vector<uint32_t> out;
  absl::flat_hash_set<uint32_t> inside, seen;
  std::vector<const Region*> work = {&region};
  std::vector<const Operation*> operations;
  while (!work.empty()) {
    const Region* r = work.back();
    work.pop_back();
    for (const Block& b : r->blocks) {
      inside.insert(b.arguments.begin(), b.arguments.end());
      for (const Operation& op : b.operations) {
        operations.push_back(&op);
        inside.insert(op.results.begin(), op.results.end());
        for (const Region& inner : op.regions) work.push_back(&inner);
      }
    }
  }
  for (const Operation* op : operations) {
    for (uint32_t value : op->operands) {
      const Operation* giver = r_.Giver(value);
      if (inside.contains(value) || (giver != nullptr && giver->name == "stablehlo.constant")) {
        continue;
      }
      if (seen.insert(value).second) out.push_back(value);
    }
  }
  return out;
}

absl::StatusOr<std::vector<int64_t>> ComputationReader::List(const Operation& op,
                                                             absl::string_view name) {
  const Attribute* a = Find(op, name);
  std::vector<int64_t> out;
  if (a == nullptr) return out;
  const Type& type = code().type(a->type);
  const size_t bytes = type.element == ElementType::kPred ? 1
                       : type.element == ElementType::kInvalid
                           ? 0
                           : static_cast<size_t>(ElementTypeBytes(type.element));
  const bool list = a->kind == Kind::kDenseArray || a->kind == Kind::kDense;
  if (!list || bytes == 0 || a->data.size() % bytes != 0) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name, " of an unknown form"));
  }
  for (size_t at = 0; at < a->data.size(); at += bytes) {
    int64_t v = 0;
    std::memcpy(&v, a->data.data() + at, bytes);
    if (bytes < 8 && type.element != ElementType::kPred) {
      v = static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    }
    out.push_back(v);
  }
  if (a->kind == Kind::kDense) {  // equal elements stand there once
    int64_t n = 1;
    for (int64_t d : type.dims) n *= d;
    if (out.size() == 1 && n > 1 && n < 4096) out.resize(n, out[0]);
    if (static_cast<int64_t>(out.size()) != n) {
      return ModuleReader::Cannot(absl::StrCat(op.name, " with ", name, " of an unknown form"));
    }
  }
  return out;
}

int64_t ComputationReader::Integer(const Operation& op, absl::string_view name, int64_t otherwise) {
  const Attribute* a = Find(op, name);
  return a == nullptr ? otherwise : a->integer;
}

}  // namespace shardcall::stablehlo
