// SPDX-License-Identifier: Apache-2.0
// The ops of CheckedBuilder without operands, mainly constants, and collectives.
#include <limits>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/iota_groups.h"

namespace shardcall {
namespace {

using Id = CheckedBuilder::Id;

CollectiveAttrs OverGlobalIds(Context& context, const ReplicaGroups& groups, int64_t channel) {
  CollectiveAttrs a;
  a.channel_id = channel;
  a.groups = Simplified(groups, context.arena());
  a.use_global_device_ids = true;
  return a;
}

}  // namespace

Id CheckedBuilder::Iota(ElementType type, Ints dims, int64_t dimension) {
  IotaAttrs a;
  a.dimension = dimension;
  const Shape* result = Array(type, dims);
  if (result == nullptr) return ToStatus(error_);
  return Add(Opcode::kIota, {}, InternAttributes(context_, a), result);
}

Id CheckedBuilder::Constant(const Literal* literal) {
  if (literal == nullptr || literal->shape == nullptr) {
    return Misuse("E022", "constant: there is no value", "a literal", "none", "give a literal");
  }
  SHARDCALL_RETURN_IF_ERROR(Own({}));
  ConstantAttrs a;
  a.literal = literal;
  return AppendNumbered(Opcode::kConstant, context_.WithDefaultLayout(literal->shape), {},
                        InternAttributes(context_, a));
}

Id CheckedBuilder::ConstantInt(ElementType type, int64_t value) {
  if (!IsArrayType(type)) return Constant(nullptr);
  return Constant(MakeScalarIntLiteral(context_, type, value));
}

Id CheckedBuilder::ConstantDouble(ElementType type, double value) {
  if (!IsArrayType(type)) return Constant(nullptr);
  return Constant(MakeScalarLiteral(context_, type, value));
}

Id CheckedBuilder::ConstantBits(ElementType type, uint64_t bits) {
  const int bytes = IsArrayType(type) ? ElementTypeBytes(type) : 0;
  if (bytes < 1 || bytes > 8) {
    return Misuse("E022", "constant: the type's values are not of up to 64 bits",
                  "a type of 1 to 8 bytes", std::string(ElementTypeName(type)),
                  "make the constant from a literal");
  }
  // pred is 0 or 1, and integers narrower than a byte are extended to it.
  const int width = ElementTypeBits(type);
  if (type == ElementType::kPred) {
    bits = bits != 0;
  } else if (width < 8) {
    const uint64_t sign = IsSignedInteger(type) ? uint64_t{1} << (width - 1) : 0;
    bits = ((bits & ((uint64_t{1} << width) - 1)) ^ sign) - sign;
  }
  return Constant(MakeLiteral(context_, context_.MakeScalar(type),
                              absl::MakeConstSpan(reinterpret_cast<const char*>(&bits), bytes)));
}

Id CheckedBuilder::Identity(Opcode monoid, ElementType type, ZeroSign zero) {
  const Literal* literal = IsMonoid(monoid) && IsArrayType(type)
                               ? IdentityLiteral(context_, monoid, type, zero)
                               : nullptr;
  if (literal != nullptr) return Constant(literal);
  return Misuse("E022", absl::StrCat(OpcodeText(monoid), " has no identity for the type"),
                "an op and a type that have one", std::string(ElementTypeName(type)),
                "give the initial value yourself");
}

Id CheckedBuilder::AllReduce(InstrId x, const ReplicaGroups& groups, int64_t channel,
                             Opcode monoid) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  CollectiveAttrs a = OverGlobalIds(context_, groups, channel);
  SHARDCALL_ASSIGN_OR_RETURN(a.to_apply, Reducer(monoid, type(x)));
  return Add(Opcode::kAllReduce, {x}, InternAttributes(context_, a));
}

Id CheckedBuilder::AllGather(InstrId x, int64_t dimension, const ReplicaGroups& groups,
                             int64_t channel) {
  CollectiveAttrs a = OverGlobalIds(context_, groups, channel);
  a.dimension = dimension;
  return Add(Opcode::kAllGather, {x}, InternAttributes(context_, a));
}

Id CheckedBuilder::ReduceScatter(InstrId x, int64_t dimension, const ReplicaGroups& groups,
                                 int64_t channel, Opcode monoid) {
  SHARDCALL_RETURN_IF_ERROR(Own({x}));
  CollectiveAttrs a = OverGlobalIds(context_, groups, channel);
  a.dimension = dimension;
  SHARDCALL_ASSIGN_OR_RETURN(a.to_apply, Reducer(monoid, type(x)));
  return Add(Opcode::kReduceScatter, {x}, InternAttributes(context_, a));
}

Id CheckedBuilder::AllToAll(InstrId x, int64_t split, const ReplicaGroups& groups,
                            int64_t channel) {
  if (split < 0) {
    return Misuse("E022", "all-to-all: dimensions is out of range", "0 or more",
                  absl::StrCat(split), "name the dimension that is exchanged");
  }
  CollectiveAttrs a = OverGlobalIds(context_, groups, channel);
  a.use_global_device_ids = false;  // the opcode has no such attribute
  a.dimension = split;
  return Add(Opcode::kAllToAll, {x}, InternAttributes(context_, a));
}

Id CheckedBuilder::CollectivePermute(InstrId x, Ints sources, Ints targets, int64_t channel) {
  if (sources.size() != targets.size()) {
    return Misuse("E025", "source_target_pairs are not pairs", absl::StrCat(sources.size()),
                  absl::StrCat(targets.size()), "give a target for each source");
  }
  PermuteAttrs a;
  a.channel_id = channel;
  a.sources = sources;
  a.targets = targets;
  return Add(Opcode::kCollectivePermute, {x}, InternAttributes(context_, a));
}

}  // namespace shardcall
