// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/checked_builder.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"
#include "shardcall/sharding/base/intern_table.h"

namespace shardcall {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;
using Id = CheckedBuilder::Id;

}  // namespace

template <typename T>
const Attributes* CheckedBuilder::Intern(const T& value) {
  return InternAttributes(context_, value);
}

Id CheckedBuilder::Misuse(absl::string_view code, std::string message, std::string expected,
                          std::string found, std::string fix) {
  return ToStatus({.code = std::string(code),
                   .message = std::move(message),
                   .where = "",
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix),
                   .excerpt = ""});
}

absl::Status CheckedBuilder::Own(Ids operands) {
  if (!comp_.valid() || comp_.value >= static_cast<uint32_t>(module_.num_computations())) {
    return Misuse("E021", "the builder is for no computation of its module", "a computation",
                  "none", "make it with what AddComputation gave")
        .status();
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    const InstrId x = operands[k];
    if (x.valid() && x.value < static_cast<uint32_t>(module_.num_instructions()) &&
        module_.instr(x).computation == comp_) {
      continue;
    }
    return Misuse("E021", absl::StrCat("operand ", k, " is not a value of this computation"),
                  "an instruction of the computation that is built",
                  x.valid() ? "another one's" : "none", "pass it in as an operand of the call")
        .status();
  }
  return absl::OkStatus();
}

const Shape* CheckedBuilder::Array(ElementType type, Ints dims) {
  bool ok = IsArrayType(type) && dims.size() <= 255;
  int64_t bytes = ok ? std::max(1, ElementTypeBits(type) / 8) : 1;
  for (int64_t d : dims) ok = ok && d >= 0 && !__builtin_mul_overflow(bytes, d, &bytes);
  if (!ok) {
    error_ = {
        .code = "E021",
        .message = "there is no array of this type and these dimensions",
        .where = "",
        .expected =
            "an array type, and at most 255 dimensions of 0 or more, of fewer than "
            "2^63 bytes in all",
        .found = dims.size() > 255
                     ? absl::StrCat(dims.size(), " dimensions of ", ElementTypeName(type))
                     : absl::StrCat(ElementTypeName(type), "[", absl::StrJoin(dims, ","), "]"),
        .fix = "correct the dimensions",
        .excerpt = ""};
    return nullptr;
  }
  Dims layout;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) layout.push_back(i);
  return context_.MakeArray(type, dims, layout);
}

absl::StatusOr<const Shape*> CheckedBuilder::ArrayShape(ElementType type, Ints dims) {
  const Shape* shape = Array(type, dims);
  if (shape == nullptr) return ToStatus(error_);
  return shape;
}

absl::StatusOr<const Shape*> CheckedBuilder::ArrayShape(ElementType type, Ints dims,
                                                        Ints minor_to_major) {
  SHARDCALL_RETURN_IF_ERROR(ArrayShape(type, dims).status());
  std::vector<bool> seen(dims.size());
  bool order = minor_to_major.size() == dims.size();
  for (int64_t d : minor_to_major) {
    order = order && d >= 0 && d < static_cast<int64_t>(dims.size()) && !seen[d];
    if (order) seen[d] = true;
  }
  if (!order) {
    return Misuse("E022", "a layout is no order of the array's dimensions",
                  absl::StrCat("each of ", dims.size(), " dimensions once"),
                  absl::StrCat("{", absl::StrJoin(minor_to_major, ","), "}"),
                  "give the dimensions from minor to major")
        .status();
  }
  return context_.MakeArray(type, dims, minor_to_major);
}

InstrId CheckedBuilder::AppendNumbered(Opcode op, const Shape* shape, Ids operands,
                                       const Attributes* attrs) {
  Instruction proto;
  proto.opcode = op;
  proto.shape = shape;
  proto.attrs = attrs;
  proto.metadata = metadata_;
  uint64_t h = MixHash(static_cast<uint64_t>(op) + 1, reinterpret_cast<uintptr_t>(shape));
  h = MixHash(h, reinterpret_cast<uintptr_t>(attrs));
  for (InstrId x : operands) h = MixHash(h, x.value);
  h = FinishHash(h);
  if (2 * (used_ + 1) > slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  size_t i = h & mask;
  for (; slots_[i].id.valid(); i = (i + 1) & mask) {
    if (slots_[i].hash != h) continue;
    const Instruction& found = module_.instr(slots_[i].id);
    if (found.opcode == op && found.shape == shape && found.attrs == attrs &&
        module_.operands(found) == operands) {
      return slots_[i].id;
    }
  }
  const InstrId id = module_.Add(comp_, proto, operands);
  slots_[i] = {h, id};
  ++used_;
  return id;
}

void CheckedBuilder::Grow() {
  std::vector<Slot> old(slots_.empty() ? 32 : 2 * slots_.size());
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& s : old) {
    if (!s.id.valid()) continue;
    size_t i = s.hash & mask;
    while (slots_[i].id.valid()) i = (i + 1) & mask;
    slots_[i] = s;
  }
}

Id CheckedBuilder::Append(Opcode op, const Shape* shape, Ids operands, const Attributes* attrs) {
  if (attrs == nullptr) attrs = NoAttributes();
  if (value_numbering_ && IsPure(op)) return AppendNumbered(op, shape, operands, attrs);
  Instruction proto;
  proto.opcode = op;
  proto.shape = shape;
  proto.attrs = attrs;
  proto.metadata = metadata_;
  return module_.Add(comp_, proto, operands);
}

absl::Status CheckedBuilder::NewParameter(const Attributes* attrs) {
  if (attrs == nullptr || attrs->kind != AttrKind::kParameter) return absl::OkStatus();
  constexpr int64_t kMost = int64_t{1} << 24;
  const int64_t number = static_cast<const ParameterAttrs*>(attrs)->number;
  const std::vector<InstrId>& now = module_.comp(comp_).parameters;
  if (number >= 0 && number < kMost &&
      (number >= static_cast<int64_t>(now.size()) || !now[number].valid())) {
    return absl::OkStatus();
  }
  return Misuse("E022", "parameter: the number is taken or out of range",
                absl::StrCat("a new number in [0,", kMost, ")"), absl::StrCat(number),
                "number the parameters from 0")
      .status();
}

absl::Status CheckedBuilder::Unsealed(Opcode op, const Attributes* attrs) {
  if (op == Opcode::kParameter) {
    return Misuse("E022", "parameter: the program has its parameters already", "no further one",
                  "a parameter", "take operands with Operand of the partition context")
        .status();
  }
  if (attrs == nullptr || attrs->kind != GetOpcodeInfo(op).attrs) return absl::OkStatus();
  Instruction proto;
  proto.opcode = op;
  proto.attrs = attrs;
  Opcode monoid;
  for (CompId callee : CalledComputations(module_, proto)) {
    // The one op of a reduction, which the builder makes itself, leaves nothing to check.
    const bool exists = callee.value < static_cast<uint32_t>(module_.num_computations());
    if (exists && RecognizeMonoid(module_, callee, &monoid)) continue;
    structure_open_ = true;
    if (callee != comp_) continue;
    return Misuse("E024", absl::StrCat(OpcodeText(op), ": a computation calls itself"),
                  "another computation", "the one that is built", "add the ops in its place")
        .status();
  }
  return absl::OkStatus();
}

Id CheckedBuilder::Add(Opcode op, Ids operands, const Attributes* attrs, const Shape* declared) {
  if (static_cast<int>(op) >= kNumOpcodes) {
    return Misuse("E021", "there is no such op", absl::StrCat("an opcode below ", kNumOpcodes),
                  absl::StrCat(static_cast<int>(op)), "give an opcode of HLO");
  }
  SHARDCALL_RETURN_IF_ERROR(Own(operands));
  if (sealed_) SHARDCALL_RETURN_IF_ERROR(Unsealed(op, attrs));
  if (op == Opcode::kParameter) SHARDCALL_RETURN_IF_ERROR(NewParameter(attrs));
  if (attrs == nullptr && GetOpcodeInfo(op).attrs == AttrKind::kResultAccuracy) {
    attrs = Intern(ResultAccuracyAttrs{});
  }
  absl::InlinedVector<const Shape*, 8> shapes;
  for (InstrId x : operands) shapes.push_back(shape(x));
  const Shape* inferred = InferShapeOrNull(context_, module_, op, shapes, attrs, declared, &error_);
  if (inferred == nullptr) return ToStatus(error_);
  if (declared != nullptr && !CompatibleShapes(inferred, declared)) {
    return Misuse("E023", absl::StrCat(OpcodeText(op), ": the shape does not fit"),
                  inferred->ToString(false), declared->ToString(false), "give the expected shape");
  }
  return Append(op, declared != nullptr ? declared : inferred, operands, attrs);
}

absl::Status CheckedBuilder::SetRoot(InstrId id) {
  if (sealed_) {
    return Misuse("E028", "the program has its root already", "no other root", "one",
                  "give results with SetResult of the partition context")
        .status();
  }
  SHARDCALL_RETURN_IF_ERROR(Own({id}));
  module_.SetRoot(comp_, id);
  return absl::OkStatus();
}

absl::Status CheckedBuilder::SetSharding(InstrId id, absl::string_view sharding) {
  SHARDCALL_RETURN_IF_ERROR(Own({&id, 1}));
  if (local_) {
    return Misuse("E120", "a value of one device is given a sharding",
                  "shardings of the call's operands and results", std::string(sharding),
                  "say it with SetResult, or reshard with Reshard")
        .status();
  }
  if (sharding.empty()) {
    module_.mutable_instr(id).sharding = nullptr;
    return absl::OkStatus();
  }
  SHARDCALL_ASSIGN_OR_RETURN(HloSharding parsed, ParseHloSharding(sharding));
  verifier::Fault fault;
  if (!verifier::CheckSharding(module_, parsed, shape(id), &fault)) {
    if (fault.fix.empty()) fault.fix = "give a sharding of the value's dimensions and devices";
    return ToStatus(fault);
  }
  module_.mutable_instr(id).sharding = InternHloSharding(context_, std::move(parsed));
  return absl::OkStatus();
}

Id CheckedBuilder::Parameter(int64_t number, const Shape* shape) {
  ParameterAttrs a;
  a.number = number;
  return Add(Opcode::kParameter, {}, Intern(a), shape);
}

Id CheckedBuilder::Compare(Direction direction, InstrId a, InstrId b) {
  SHARDCALL_RETURN_IF_ERROR(Own({a, b}));
  CompareAttrs attrs;
  attrs.direction = direction;
  attrs.type = NaturalCompareType(type(a));
  return Add(Opcode::kCompare, {a, b}, Intern(attrs));
}

Id CheckedBuilder::Convert(InstrId x, ElementType to) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  if (type(x) == to) return x;
  if (!shape(x)->IsArray() || !IsArrayType(to)) {
    return Misuse("E021", "convert: arrays only", "arrays", shape(x)->ToString(false),
                  "convert the elements of a tuple one by one");
  }
  return Add(Opcode::kConvert, {x}, nullptr, context_.WithElementType(shape(x), to));
}

Id CheckedBuilder::BitcastConvert(InstrId x, ElementType to) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  const Shape* s = shape(x);
  if (!s->IsArray() || !IsArrayType(to)) {
    return Misuse("E021", "bitcast-convert: arrays only", "arrays", s->ToString(false),
                  "convert the elements of a tuple one by one");
  }
  const int from_bits = ElementTypeBits(s->element_type()), to_bits = ElementTypeBits(to);
  Dims dims(s->dims().begin(), s->dims().end());
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  // If there is no dimension to merge, inference reports it.
  if (from_bits < to_bits && !dims.empty()) dims.pop_back();
  const Shape* result = from_bits == to_bits ? context_.WithElementType(s, to) : Array(to, dims);
  if (result == nullptr) return ToStatus(error_);
  return Add(Opcode::kBitcastConvert, {x}, nullptr, result);
}

Id CheckedBuilder::Broadcast(InstrId x, Ints dims, Ints dimensions) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  DimensionsAttrs a;
  a.dimensions = dimensions;
  const Shape* result = Array(type(x), dims);
  if (result == nullptr) return ToStatus(error_);
  return Add(Opcode::kBroadcast, {x}, Intern(a), result);
}

Id CheckedBuilder::BroadcastScalar(InstrId scalar, const Shape* like) {
  SHARDCALL_RETURN_IF_ERROR(Own({scalar}));
  if (like == nullptr || !like->IsArray() || !shape(scalar)->IsArray()) {
    return Misuse("E021", "broadcast: arrays only", "an array like which it shall be",
                  like == nullptr ? "none" : like->ToString(false), "give an array's shape");
  }
  if (like->rank() == 0 && shape(scalar)->rank() == 0) return scalar;
  return Add(Opcode::kBroadcast, {scalar}, Intern(DimensionsAttrs{}),
             context_.WithElementType(context_.WithDefaultLayout(like), type(scalar)));
}

Id CheckedBuilder::Reshape(InstrId x, Ints dims) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  if (shape(x)->IsArray() && shape(x)->dims() == dims) return x;
  const Shape* result = Array(type(x), dims);
  if (result == nullptr) return ToStatus(error_);
  return Add(Opcode::kReshape, {x}, Intern(ReshapeAttrs{}), result);
}

Id CheckedBuilder::Transpose(InstrId x, Ints permutation) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  DimensionsAttrs a;
  a.dimensions = permutation;
  const Attributes* attrs = Intern(a);
  // Inference permutes the layout, but built instructions have descending layouts.
  const Shape* operand = shape(x);
  const Shape* inferred =
      InferShapeOrNull(context_, module_, Opcode::kTranspose, absl::MakeConstSpan(&operand, 1),
                       attrs, nullptr, &error_);
  if (inferred == nullptr) return ToStatus(error_);
  return Append(Opcode::kTranspose, context_.WithDefaultLayout(inferred->bare()), {x}, attrs);
}

Id CheckedBuilder::Reverse(InstrId x, Ints dimensions) {
  DimensionsAttrs a;
  a.dimensions = dimensions;
  return Add(Opcode::kReverse, {x}, Intern(a));
}

Id CheckedBuilder::Slice(InstrId x, Ints starts, Ints limits, Ints strides) {
  const Dims ones(starts.size(), 1);
  SliceAttrs a;
  a.starts = starts;
  a.limits = limits;
  a.strides = strides.empty() ? absl::MakeConstSpan(ones) : strides;
  return Add(Opcode::kSlice, {x}, Intern(a));
}

Id CheckedBuilder::Pad(InstrId x, InstrId value, Ints low, Ints high, Ints interior) {
  const Dims zeros(low.size(), 0);
  PadAttrs a;
  a.low = low;
  a.high = high;
  a.interior = interior.empty() ? absl::MakeConstSpan(zeros) : interior;
  return Add(Opcode::kPad, {x, value}, Intern(a));
}

Id CheckedBuilder::Concatenate(Ids operands, int64_t dimension) {
  SHARDCALL_RETURN_IF_ERROR(Own(operands));
  if (operands.size() == 1) return operands[0];
  DimensionsAttrs a;
  a.dimensions = absl::MakeConstSpan(&dimension, 1);
  return Add(Opcode::kConcatenate, operands, Intern(a));
}

Id CheckedBuilder::DynamicSlice(InstrId x, Ids starts, Ints sizes) {
  absl::InlinedVector<InstrId, 8> operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  DynamicSliceAttrs a;
  a.sizes = sizes;
  return Add(Opcode::kDynamicSlice, operands, Intern(a));
}

Id CheckedBuilder::DynamicUpdateSlice(InstrId x, InstrId update, Ids starts) {
  absl::InlinedVector<InstrId, 8> operands = {x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Add(Opcode::kDynamicUpdateSlice, operands);
}

Id CheckedBuilder::GetTupleElement(InstrId tuple, int64_t index) {
  SHARDCALL_RETURN_IF_ERROR(Own({tuple}));
  if (module_.instr(tuple).opcode == Opcode::kTuple && index >= 0 &&
      index < module_.instr(tuple).operand_count) {
    return module_.operand(tuple, static_cast<int>(index));
  }
  TupleIndexAttrs a;
  a.index = index;
  return Add(Opcode::kGetTupleElement, {tuple}, Intern(a));
}

absl::StatusOr<CompId> CheckedBuilder::Reducer(Opcode monoid, ElementType type) {
  if (IsMonoid(monoid) && IsArrayType(type)) return monoids_.Get(monoid, type);
  return Misuse("E024", "there is no reduction by this op",
                "add, multiply, maximum, minimum, and, or, xor of an array type",
                absl::StrCat(OpcodeText(monoid), " of ", ElementTypeName(type)),
                "add the op with a computation of your own")
      .status();
}

Id CheckedBuilder::Reduce(InstrId x, InstrId init, Ints dimensions, Opcode monoid) {
  SHARDCALL_RETURN_IF_ERROR(Own({x, init}));
  ReduceAttrs a;
  a.dimensions = dimensions;
  SHARDCALL_ASSIGN_OR_RETURN(a.to_apply, Reducer(monoid, type(x)));
  return Add(Opcode::kReduce, {x, init}, Intern(a));
}

Id CheckedBuilder::Dot(InstrId lhs, InstrId rhs, const DotAttrs& attrs, ElementType to) {
  const Attributes* a = Intern(attrs);
  if (to == ElementType::kInvalid) return Add(Opcode::kDot, {lhs, rhs}, a);
  SHARDCALL_RETURN_IF_ERROR(Own({lhs, rhs}));
  if (!IsArrayType(to)) {
    return Misuse("E021", "dot: the result must be an array", "an array type",
                  std::string(ElementTypeName(to)), "give the element type of the product");
  }
  const Shape* shapes[] = {shape(lhs), shape(rhs)};
  const Shape* inferred = InferShapeOrNull(context_, module_, Opcode::kDot, shapes, a,
                                           context_.MakeScalar(to), &error_);
  if (inferred == nullptr) return ToStatus(error_);
  return Append(Opcode::kDot, inferred, {lhs, rhs}, a);
}

Id CheckedBuilder::Dot(InstrId lhs, InstrId rhs, const DotDimensions& dimensions, ElementType to) {
  DotAttrs attrs;
  attrs.lhs_contracting = dimensions.lhs_contracting;
  attrs.rhs_contracting = dimensions.rhs_contracting;
  attrs.lhs_batch = dimensions.lhs_batch;
  attrs.rhs_batch = dimensions.rhs_batch;
  return Dot(lhs, rhs, attrs, to);
}

Id CheckedBuilder::Call(CompId callee, Ids operands) {
  CallAttrs a;
  a.to_apply = callee;
  return Add(Opcode::kCall, operands, Intern(a));
}

Id CheckedBuilder::While(CompId condition, CompId body, InstrId init) {
  WhileAttrs a;
  a.condition = condition;
  a.body = body;
  return Add(Opcode::kWhile, {init}, Intern(a));
}

Id CheckedBuilder::CustomCall(const CustomCallAttrs& attrs, Ids operands, const Shape* shape,
                              absl::string_view backend_config) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId id,
                             Add(Opcode::kCustomCall, operands, Intern(attrs), shape));
  module_.mutable_instr(id).backend_config = context_.Intern(backend_config);
  return id;
}

Id CheckedBuilder::CustomCall(const CustomCallAttrs& attrs, Ids operands,
                              const TargetShapes& targets, absl::string_view backend_config) {
  SHARDCALL_RETURN_IF_ERROR(Own(operands));
  absl::InlinedVector<const Shape*, 8> shapes;
  for (InstrId x : operands) shapes.push_back(shape(x));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* const result,
                             targets.InferShape({&context_, attrs.target, backend_config, shapes}));
  return CustomCall(attrs, operands, result, backend_config);
}

}  // namespace shardcall
