// SPDX-License-Identifier: Apache-2.0
// Calls that compute, as the ops that do: topk, halves of 64-bit numbers, block-scaled products.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/call_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

InstrId Bits32(GraphBuilder& b, InstrId like) {
  return b.BroadcastScalar(b.ConstantInt(ElementType::kU64, 32), b.shape(like));
}

absl::StatusOr<CallExpansion> ReadSplit(CallReader& call, bool high) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(1));
  const ElementType from = call.operand(0)->element_type();
  const bool floats = from == ElementType::kF64;
  if (!floats && from != ElementType::kU64 && from != ElementType::kS64) {
    return call.Unfit("an array of u64, s64 or f64", call.operand(0)->bare()->ToString());
  }
  CallExpansion out;
  out.results = {call.context().MakeArray(floats ? ElementType::kF32 : ElementType::kU32,
                                          call.operand(0)->dims())};
  out.make = [=](GraphBuilder& b, CallReader::Ids x) -> std::vector<InstrId> {
    if (floats) {
      const InstrId rounded = b.Convert(x[0], ElementType::kF32);
      if (high) return {rounded};
      const InstrId rest = b.Binary(Opcode::kSubtract, x[0], b.Convert(rounded, ElementType::kF64));
      return {b.Convert(rest, ElementType::kF32)};
    }
    InstrId bits = from == ElementType::kU64 ? x[0] : b.BitcastConvert(x[0], ElementType::kU64);
    if (high) bits = b.Binary(Opcode::kShiftRightLogical, bits, Bits32(b, bits));
    return {b.Convert(bits, ElementType::kU32)};
  };
  return out;
}

}  // namespace

absl::StatusOr<CallExpansion> ReadTopK(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(1));
  SHARDCALL_RETURN_IF_ERROR(call.WantResults(2));
  CallReader::Dims dims = call.DimsOf(0);
  const Shape* values = call.call().shape->leaf(0);
  if (dims.empty() || values->rank() != static_cast<int>(dims.size()) ||
      values->dims().back() > dims.back()) {
    return call.Unfit(absl::StrCat("at most as many of the last dimension as the operand has, ",
                                   call.operand(0)->bare()->ToString()),
                      call.call().shape->bare()->ToString());
  }
  dims.back() = values->dims().back();
  CallExpansion out;
  out.results = {call.Like(dims), call.context().MakeArray(ElementType::kS32, dims)};
  const Shape* const both = call.context().MakeTuple({out.results[0], out.results[1]});
  out.make = [k = dims.back(), both](GraphBuilder& b, CallReader::Ids x) -> std::vector<InstrId> {
    TopKAttrs attrs;
    attrs.k = k;
    return {b.Add(Opcode::kTopk, x, InternAttributes(b.context(), attrs), both)};
  };
  return out;
}

absl::StatusOr<CallExpansion> ReadX64Combine(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(2));
  const Shape *low = call.operand(0)->bare(), *high = call.operand(1)->bare();
  const bool floats = low->element_type() == ElementType::kF32;
  if (low != high || (!floats && low->element_type() != ElementType::kU32)) {
    return call.Unfit("two arrays of u32 or f32, of equal shapes",
                      absl::StrCat(low->ToString(), ", ", high->ToString()));
  }
  const Shape* declared = call.call().shape;
  const bool is_signed = declared->IsArray() && declared->element_type() == ElementType::kS64;
  const ElementType wide = floats ? ElementType::kF64 : ElementType::kU64;
  CallExpansion out;
  out.results = {
      call.context().MakeArray(is_signed && !floats ? ElementType::kS64 : wide, low->dims())};
  out.make = [=](GraphBuilder& b, CallReader::Ids x) -> std::vector<InstrId> {
    const InstrId l = b.Convert(x[0], wide), h = b.Convert(x[1], wide);
    if (floats) return {b.Binary(Opcode::kAdd, l, h)};
    const InstrId both = b.Binary(Opcode::kOr, l, b.Binary(Opcode::kShiftLeft, h, Bits32(b, h)));
    return {is_signed ? b.BitcastConvert(both, ElementType::kS64) : both};
  };
  return out;
}

absl::StatusOr<CallExpansion> ReadX64SplitLow(CallReader& call) { return ReadSplit(call, false); }
absl::StatusOr<CallExpansion> ReadX64SplitHigh(CallReader& call) { return ReadSplit(call, true); }

// [.., m, k * t], [.., n, k * t], with scales [.., m, k] and [.., n, k], one for t elements.
absl::StatusOr<CallExpansion> ReadBlockScaledDot(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(4));
  const int rank = call.operand(0)->rank();
  const CallReader::Dims side[2] = {call.DimsOf(0), call.DimsOf(1)};
  bool fits = (rank == 2 || rank == 3) && call.call().shape->IsArray() &&
              side[1].size() == side[0].size() && side[0].back() == side[1].back() &&
              (rank == 2 || side[0][0] == side[1][0]);
  for (int k = 0; k < 2 && fits; ++k) {
    const CallReader::Dims scale = call.DimsOf(2 + k);
    fits = scale.size() == side[k].size() && scale.back() > 0 && side[k].back() % scale.back() == 0;
    for (int d = 0; d + 1 < rank && fits; ++d) fits = scale[d] == side[k][d];
  }
  if (!fits) {
    return call.Unfit(
        "[b,m,k], [b,n,k] and a scale for each block of k, [b,m,k/t] and [b,n,k/t]",
        absl::StrCat(call.operand(0)->bare()->ToString(), ", ", call.operand(1)->bare()->ToString(),
                     ", ", call.operand(2)->bare()->ToString(), ", ",
                     call.operand(3)->bare()->ToString()));
  }
  const ElementType type = call.call().shape->element_type();
  CallReader::Dims dims = side[0];
  dims.back() = side[1][rank - 2];
  CallExpansion out;
  out.results = {call.context().MakeArray(type, dims)};
  out.make = [=](GraphBuilder& b, CallReader::Ids x) -> std::vector<InstrId> {
    // What XLA makes of the call where no kernel takes it (block_scaling_rewriter.cc).
    const auto scaled = [&](InstrId value, InstrId scale) {
      value = b.Convert(value, type);
      scale = b.Convert(scale, type);
      const CallReader::Dims have(b.shape(value)->dims().begin(), b.shape(value)->dims().end());
      CallReader::Dims blocks(b.shape(scale)->dims().begin(), b.shape(scale)->dims().end()), at;
      for (int d = 0; d < rank; ++d) at.push_back(d);
      blocks.push_back(have.back() / blocks.back());
      scale = b.Reshape(b.Broadcast(scale, blocks, at), have);
      return b.Binary(Opcode::kMultiply, value, scale);
    };
    const CallReader::Dims contracting = {rank - 1},
                           batch = rank == 3 ? CallReader::Dims{0} : CallReader::Dims{};
    DotAttrs attrs;
    attrs.lhs_contracting = attrs.rhs_contracting = contracting;
    attrs.lhs_batch = attrs.rhs_batch = batch;
    return {b.Dot(scaled(x[0], x[2]), scaled(x[1], x[3]), attrs, type)};
  };
  return out;
}

}  // namespace internal
}  // namespace shardcall
