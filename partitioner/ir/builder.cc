// SPDX-License-Identifier: Apache-2.0
#include "partitioner/ir/builder.h"

#include <cstdio>
#include <cstdlib>

#include "absl/container/inlined_vector.h"
#include "partitioner/ir/shape_inference.h"
#include "sharding/intern_table.h"

namespace shardcall {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

CompareType NaturalCompare(ElementType type) {
  if (IsSignedInteger(type)) return CompareType::kSigned;
  if (IsUnsignedInteger(type) || type == ElementType::kPred) return CompareType::kUnsigned;
  return CompareType::kFloat;
}

}  // namespace

template <typename T>
const Attributes* GraphBuilder::Intern(const T& value) {
  return InternAttributes(context_, value);
}

const Shape* GraphBuilder::Infer(Opcode op, Ids operands, const Attributes* attrs,
                                 const Shape* declared) {
  absl::InlinedVector<const Shape*, 8> shapes;
  for (InstrId x : operands) shapes.push_back(shape(x));
  return InferShapeOrNull(context_, module_, op, shapes, attrs, declared, &error_);
}

InstrId GraphBuilder::Append(Opcode op, const Shape* shape, Ids operands,
                             const Attributes* attrs, bool number) {
  Instruction proto;
  proto.opcode = op;
  proto.shape = shape;
  proto.attrs = attrs;
  proto.metadata = metadata_;
  if (!number) return module_.Add(comp_, proto, operands);
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

void GraphBuilder::Grow() {
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

InstrId GraphBuilder::AddWithShape(Opcode op, const Shape* shape, Ids operands,
                                   const Attributes* attrs) {
  const OpcodeInfo& info = GetOpcodeInfo(op);
  if (attrs == nullptr) {
    attrs = info.attrs == AttrKind::kResultAccuracy ? Intern(ResultAccuracyAttrs{})
                                                    : NoAttributes();
  }
  const bool number = value_numbering_ && (info.traits & (kSideEffect | kCollectiveOp)) == 0 &&
                      op != Opcode::kParameter && op != Opcode::kCustomCall;
  return Append(op, shape, operands, attrs, number);
}

InstrId GraphBuilder::Add(Opcode op, Ids operands, const Attributes* attrs,
                          const Shape* declared) {
  if (attrs == nullptr && GetOpcodeInfo(op).attrs == AttrKind::kResultAccuracy) {
    attrs = Intern(ResultAccuracyAttrs{});
  }
  const Shape* inferred = Infer(op, operands, attrs, declared);
  if (inferred == nullptr || (declared != nullptr && !CompatibleShapes(inferred, declared))) {
    std::fprintf(stderr, "%s\n", FormatDiagnostic(error_).c_str());
    SHARDCALL_CHECK(inferred != nullptr);
    SHARDCALL_CHECK(declared == nullptr || CompatibleShapes(inferred, declared));
  }
  return AddWithShape(op, declared != nullptr ? declared : inferred, operands, attrs);
}

absl::StatusOr<InstrId> GraphBuilder::TryAdd(Opcode op, Ids operands, const Attributes* attrs,
                                             const Shape* declared) {
  if (attrs == nullptr && GetOpcodeInfo(op).attrs == AttrKind::kResultAccuracy) {
    attrs = Intern(ResultAccuracyAttrs{});
  }
  const Shape* inferred = Infer(op, operands, attrs, declared);
  if (inferred == nullptr) return ToStatus(error_);
  if (declared != nullptr && !CompatibleShapes(inferred, declared)) {
    return ToStatus({.code = "E023",
                     .message = std::string(OpcodeText(op)) + ": the shape does not fit",
                     .where = "",
                     .expected = inferred->ToString(false),
                     .found = declared->ToString(false),
                     .fix = "",
                     .excerpt = ""});
  }
  return AddWithShape(op, declared != nullptr ? declared : inferred, operands, attrs);
}

const Shape* GraphBuilder::Array(ElementType type, absl::Span<const int64_t> dims) {
  Dims layout;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) layout.push_back(i);
  return context_.MakeArray(type, dims, layout);
}

InstrId GraphBuilder::Parameter(int64_t number, const Shape* shape) {
  ParameterAttrs a;
  a.number = number;
  return AddWithShape(Opcode::kParameter, shape, {}, Intern(a));
}

InstrId GraphBuilder::Unary(Opcode op, InstrId x) { return Add(op, {x}); }
InstrId GraphBuilder::Binary(Opcode op, InstrId a, InstrId b) { return Add(op, {a, b}); }

InstrId GraphBuilder::Compare(Direction direction, InstrId a, InstrId b) {
  CompareAttrs attrs;
  attrs.direction = direction;
  attrs.type = NaturalCompare(type(a));
  return Add(Opcode::kCompare, {a, b}, Intern(attrs));
}

InstrId GraphBuilder::Select(InstrId predicate, InstrId on_true, InstrId on_false) {
  return Add(Opcode::kSelect, {predicate, on_true, on_false});
}

InstrId GraphBuilder::Clamp(InstrId low, InstrId x, InstrId high) {
  return Add(Opcode::kClamp, {low, x, high});
}

InstrId GraphBuilder::Convert(InstrId x, ElementType to) {
  if (type(x) == to) return x;
  return Add(Opcode::kConvert, {x}, nullptr, context_.WithElementType(shape(x), to));
}

InstrId GraphBuilder::BitcastConvert(InstrId x, ElementType to) {
  const Shape* s = shape(x);
  const int from_bits = ElementTypeBits(s->element_type()), to_bits = ElementTypeBits(to);
  Dims dims(s->dims().begin(), s->dims().end());
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    SHARDCALL_CHECK(!dims.empty());
    dims.pop_back();
  }
  return Add(Opcode::kBitcastConvert, {x}, nullptr,
             from_bits == to_bits ? context_.WithElementType(s, to) : Array(to, dims));
}

InstrId GraphBuilder::Copy(InstrId x) { return Add(Opcode::kCopy, {x}); }
InstrId GraphBuilder::OptBarrier(InstrId x) { return Add(Opcode::kOptBarrier, {x}); }

InstrId GraphBuilder::Broadcast(InstrId x, absl::Span<const int64_t> dims,
                                absl::Span<const int64_t> dimensions) {
  DimensionsAttrs a;
  a.dimensions = dimensions;
  return Add(Opcode::kBroadcast, {x}, Intern(a), Array(type(x), dims));
}

InstrId GraphBuilder::BroadcastScalar(InstrId scalar, const Shape* like) {
  if (like->rank() == 0) return scalar;
  return Add(Opcode::kBroadcast, {scalar}, Intern(DimensionsAttrs{}),
             context_.WithElementType(context_.WithDefaultLayout(like), type(scalar)));
}

InstrId GraphBuilder::Reshape(InstrId x, absl::Span<const int64_t> dims) {
  if (shape(x)->dims() == dims) return x;
  return Add(Opcode::kReshape, {x}, Intern(ReshapeAttrs{}), Array(type(x), dims));
}

InstrId GraphBuilder::Transpose(InstrId x, absl::Span<const int64_t> permutation) {
  DimensionsAttrs a;
  a.dimensions = permutation;
  const Attributes* attrs = Intern(a);
  // Inference permutes the layout; emitted code keeps to descending ones.
  const Shape* inferred = Infer(Opcode::kTranspose, {x}, attrs, nullptr);
  SHARDCALL_CHECK(inferred != nullptr);
  return AddWithShape(Opcode::kTranspose, Array(inferred->element_type(), inferred->dims()), {x},
                      attrs);
}

InstrId GraphBuilder::Reverse(InstrId x, absl::Span<const int64_t> dimensions) {
  DimensionsAttrs a;
  a.dimensions = dimensions;
  return Add(Opcode::kReverse, {x}, Intern(a));
}

InstrId GraphBuilder::Slice(InstrId x, absl::Span<const int64_t> starts,
                            absl::Span<const int64_t> limits,
                            absl::Span<const int64_t> strides) {
  const Dims ones(starts.size(), 1);
  SliceAttrs a;
  a.starts = starts;
  a.limits = limits;
  a.strides = strides.empty() ? absl::MakeConstSpan(ones) : strides;
  return Add(Opcode::kSlice, {x}, Intern(a));
}

InstrId GraphBuilder::Pad(InstrId x, InstrId value, absl::Span<const int64_t> low,
                          absl::Span<const int64_t> high, absl::Span<const int64_t> interior) {
  const Dims zeros(low.size(), 0);
  PadAttrs a;
  a.low = low;
  a.high = high;
  a.interior = interior.empty() ? absl::MakeConstSpan(zeros) : interior;
  return Add(Opcode::kPad, {x, value}, Intern(a));
}

InstrId GraphBuilder::Concatenate(Ids operands, int64_t dimension) {
  if (operands.size() == 1) return operands[0];
  DimensionsAttrs a;
  a.dimensions = absl::MakeConstSpan(&dimension, 1);
  return Add(Opcode::kConcatenate, operands, Intern(a));
}

InstrId GraphBuilder::DynamicSlice(InstrId x, Ids starts, absl::Span<const int64_t> sizes) {
  absl::InlinedVector<InstrId, 8> operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  DynamicSliceAttrs a;
  a.sizes = sizes;
  return Add(Opcode::kDynamicSlice, operands, Intern(a));
}

InstrId GraphBuilder::DynamicUpdateSlice(InstrId x, InstrId update, Ids starts) {
  absl::InlinedVector<InstrId, 8> operands = {x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Add(Opcode::kDynamicUpdateSlice, operands);
}

InstrId GraphBuilder::Iota(ElementType type, absl::Span<const int64_t> dims, int64_t dimension) {
  IotaAttrs a;
  a.dimension = dimension;
  return Add(Opcode::kIota, {}, Intern(a), Array(type, dims));
}

InstrId GraphBuilder::Constant(const Literal* literal) {
  ConstantAttrs a;
  a.literal = literal;
  return Append(Opcode::kConstant, context_.WithDefaultLayout(literal->shape), {}, Intern(a),
                /*number=*/true);
}

InstrId GraphBuilder::ConstantInt(ElementType type, int64_t value) {
  return Constant(MakeScalarIntLiteral(context_, type, value));
}

InstrId GraphBuilder::ConstantDouble(ElementType type, double value) {
  return Constant(MakeScalarLiteral(context_, type, value));
}

InstrId GraphBuilder::ConstantBits(ElementType type, uint64_t bits) {
  const int bytes = ElementTypeBytes(type);
  SHARDCALL_CHECK(bytes >= 1 && bytes <= 8);
  return Constant(MakeLiteral(context_, context_.MakeScalar(type),
                              absl::MakeConstSpan(reinterpret_cast<const char*>(&bits), bytes)));
}

InstrId GraphBuilder::Identity(Opcode monoid, ElementType type, ZeroSign zero) {
  const Literal* literal = IdentityLiteral(context_, monoid, type, zero);
  SHARDCALL_CHECK(literal != nullptr);
  return Constant(literal);
}

InstrId GraphBuilder::Tuple(Ids operands) { return Add(Opcode::kTuple, operands); }

InstrId GraphBuilder::GetTupleElement(InstrId tuple, int64_t index) {
  if (module_.instr(tuple).opcode == Opcode::kTuple) {
    SHARDCALL_CHECK(index >= 0 && index < module_.instr(tuple).operand_count);
    return module_.operand(tuple, static_cast<int>(index));
  }
  TupleIndexAttrs a;
  a.index = index;
  return Add(Opcode::kGetTupleElement, {tuple}, Intern(a));
}

InstrId GraphBuilder::Reduce(InstrId x, InstrId init, absl::Span<const int64_t> dimensions,
                             Opcode monoid) {
  ReduceAttrs a;
  a.dimensions = dimensions;
  a.to_apply = monoids_.Get(monoid, type(x));
  return Add(Opcode::kReduce, {x, init}, Intern(a));
}

InstrId GraphBuilder::Dot(InstrId lhs, InstrId rhs, const DotAttrs& attrs, ElementType to) {
  const Attributes* a = Intern(attrs);
  if (to == ElementType::kInvalid) return Add(Opcode::kDot, {lhs, rhs}, a);
  const Shape* inferred = Infer(Opcode::kDot, {lhs, rhs}, a, context_.MakeScalar(to));
  SHARDCALL_CHECK(inferred != nullptr);
  return AddWithShape(Opcode::kDot, inferred, {lhs, rhs}, a);
}

InstrId GraphBuilder::Call(CompId callee, Ids operands) {
  CallAttrs a;
  a.to_apply = callee;
  return Add(Opcode::kCall, operands, Intern(a));
}

InstrId GraphBuilder::While(CompId condition, CompId body, InstrId init) {
  WhileAttrs a;
  a.condition = condition;
  a.body = body;
  return Add(Opcode::kWhile, {init}, Intern(a));
}

InstrId GraphBuilder::CustomCall(const CustomCallAttrs& attrs, Ids operands, const Shape* shape) {
  return Add(Opcode::kCustomCall, operands, Intern(attrs), shape);
}

InstrId GraphBuilder::PartitionId() {
  return AddWithShape(Opcode::kPartitionId, context_.MakeScalar(ElementType::kU32), {});
}

namespace {

CollectiveAttrs OverGlobalIds(const ReplicaGroups& groups, int64_t channel) {
  CollectiveAttrs a;
  a.channel_id = channel;
  a.groups = groups;
  a.use_global_device_ids = true;
  return a;
}

}  // namespace

InstrId GraphBuilder::AllReduce(InstrId x, const ReplicaGroups& groups, int64_t channel,
                                Opcode monoid) {
  CollectiveAttrs a = OverGlobalIds(groups, channel);
  a.to_apply = monoids_.Get(monoid, type(x));
  return Add(Opcode::kAllReduce, {x}, Intern(a));
}

InstrId GraphBuilder::AllGather(InstrId x, int64_t dimension, const ReplicaGroups& groups,
                                int64_t channel) {
  CollectiveAttrs a = OverGlobalIds(groups, channel);
  a.dimension = dimension;
  return Add(Opcode::kAllGather, {x}, Intern(a));
}

InstrId GraphBuilder::ReduceScatter(InstrId x, int64_t dimension, const ReplicaGroups& groups,
                                    int64_t channel, Opcode monoid) {
  CollectiveAttrs a = OverGlobalIds(groups, channel);
  a.dimension = dimension;
  a.to_apply = monoids_.Get(monoid, type(x));
  return Add(Opcode::kReduceScatter, {x}, Intern(a));
}

InstrId GraphBuilder::AllToAll(InstrId x, int64_t split, const ReplicaGroups& groups,
                               int64_t channel) {
  CollectiveAttrs a = OverGlobalIds(groups, channel);
  a.use_global_device_ids = false;  // the opcode has no such attribute
  a.dimension = split;
  return Add(Opcode::kAllToAll, {x}, Intern(a));
}

InstrId GraphBuilder::CollectivePermute(InstrId x, absl::Span<const int64_t> sources,
                                        absl::Span<const int64_t> targets, int64_t channel) {
  PermuteAttrs a;
  a.channel_id = channel;
  a.sources = sources;
  a.targets = targets;
  return Add(Opcode::kCollectivePermute, {x}, Intern(a));
}

}  // namespace shardcall
