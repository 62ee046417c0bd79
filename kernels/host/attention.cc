// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/math/blas.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status ReadAttributes(const HandlerContext& context, const CallArguments& args,
                            AttentionShape* shape) {
  const AttributeMapView& attributes = context.attribute_map();
  SHARDCALL_RETURN_IF_ERROR(
      args.Located(attributes.OnlyKnown({"block", "causal", "layout", "scale", "window"})));
  SHARDCALL_ASSIGN_ATTRIBUTE(shape->causal, args, attributes.GetBool("causal", false));
  SHARDCALL_ASSIGN_ATTRIBUTE(shape->window, args, attributes.GetInt("window", -1));
  if (shape->window < -1) {
    return args.AttributeError("window", "-1 (none) or at least 0", absl::StrCat(shape->window));
  }
  std::string layout;
  SHARDCALL_ASSIGN_ATTRIBUTE(layout, args, attributes.GetString("layout", "bshd"));
  if (layout != "bshd" && layout != "bhsd") {
    return args.AttributeError("layout", "\"bshd\" or \"bhsd\"", absl::StrCat("\"", layout, "\""));
  }
  shape->heads_first = layout == "bhsd";
  SHARDCALL_ASSIGN_ATTRIBUTE(const std::vector<int64_t> block, args,
                             attributes.GetInts("block", {128, 128}));
  if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
    return args.AttributeError("block", "two positive integers",
                               absl::StrCat(block.size(), " integers"));
  }
  return absl::OkStatus();
}

// The offset of a head's element 0, and the distance between its rows, in elements.
struct HeadPlace {
  int64_t offset;
  int64_t stride;
  int64_t length;
  int64_t width;
};

HeadPlace PlaceOf(const AttentionShape& shape, const BufferView& buffer, int64_t batch,
                  int64_t head) {
  const auto& d = buffer.dims;
  if (shape.heads_first) {
    return {((batch * d[1]) + head) * d[2] * d[3], d[3], d[2], d[3]};
  }
  return {(batch * d[1] * d[2] + head) * d[3], d[2] * d[3], d[1], d[3]};
}

}  // namespace

absl::StatusOr<AttentionShape> CheckAttention(const HandlerContext& context,
                                              const CallArguments& args, int first) {
  const ArgumentPlace q = Operand(first), k = Operand(first + 1), v = Operand(first + 2);
  AttentionShape shape;
  SHARDCALL_RETURN_IF_ERROR(ReadAttributes(context, args, &shape));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(q, kFloatTypes));
  for (ArgumentPlace p : {q, k, v}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(p, {args.at(q).type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckRank(p, 4));
  }
  const int head_dim = shape.heads_first ? 1 : 2, length_dim = 3 - head_dim;
  const auto &qd = args.at(q).dims, &kd = args.at(k).dims, &vd = args.at(v).dims;
  shape.batch = qd[0];
  shape.heads = qd[head_dim];
  shape.queries = qd[length_dim];
  shape.dim = qd[3];
  shape.kv_heads = kd[head_dim];
  shape.keys = kd[length_dim];
  shape.value_dim = vd[3];

  const std::string layout = shape.heads_first ? "[b,g,t," : "[b,t,g,";
  if (kd[0] != shape.batch || kd[3] != shape.dim) {
    return args.ShapeError(k, absl::StrCat(layout, "e] with b=", shape.batch, " and e=", shape.dim,
                                           " as in q, which is ", args.at(q).ToString()));
  }
  if (shape.kv_heads == 0 ? shape.heads != 0 : shape.heads % shape.kv_heads != 0) {
    return args.ShapeError(
        k, absl::StrCat("a number of heads that divides the ", shape.heads, " heads of q"));
  }
  if (!std::equal(kd.begin(), kd.begin() + 3, vd.begin())) {
    return args.ShapeError(v, absl::StrCat(layout, "f] with b=", kd[0], ", g=", shape.kv_heads,
                                           " and t=", shape.keys, " as in k"));
  }
  for (int64_t extent : {shape.queries, shape.keys, shape.dim, shape.value_dim}) {
    if (extent > kMostBlasExtent) {
      return args.ShapeError(q, absl::StrCat("lengths of at most ", kMostBlasExtent));
    }
  }
  SHARDCALL_ASSIGN_ATTRIBUTE(
      shape.scale, args,
      context.attribute_map().GetFloat(
          "scale", shape.dim == 0 ? 1 : 1 / std::sqrt(static_cast<double>(shape.dim))));
  if (!std::isfinite(shape.scale)) {
    return args.AttributeError("scale", "a finite number", absl::StrCat(shape.scale));
  }
  return shape;
}

absl::Status CheckAttentionOut(const CallArguments& args, const AttentionShape& shape,
                               ElementType type, ArgumentPlace out) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(out, {type}));
  if (shape.heads_first) {
    return args.CheckDims(out, {shape.batch, shape.heads, shape.queries, shape.value_dim});
  }
  return args.CheckDims(out, {shape.batch, shape.queries, shape.heads, shape.value_dim});
}

absl::Status CheckAttentionLse(const CallArguments& args, const AttentionShape& shape,
                               ElementType type, ArgumentPlace lse) {
  const ElementType types[] = {ElementType::kF32, ElementType::kF64};
  SHARDCALL_RETURN_IF_ERROR(
      args.CheckType(lse, absl::MakeConstSpan(types, type == ElementType::kF64 ? 2 : 1)));
  return args.CheckDims(lse, {shape.batch, shape.heads, shape.queries});
}

template <typename T>
void LoadHead(const AttentionShape& shape, const BufferView& buffer, int64_t batch, int64_t head,
              T* to) {
  const HeadPlace place = PlaceOf(shape, buffer, batch, head);
  const int bytes = ElementTypeBytes(buffer.type);
  const char* from = static_cast<const char*>(buffer.data) + place.offset * bytes;
  for (int64_t i = 0; i < place.length; ++i) {
    LoadFloats(buffer.type, from + i * place.stride * bytes, place.width, to + i * place.width);
  }
}

template <typename T>
void StoreHead(const AttentionShape& shape, const BufferView& buffer, int64_t batch, int64_t head,
               const T* from) {
  const HeadPlace place = PlaceOf(shape, buffer, batch, head);
  const int bytes = ElementTypeBytes(buffer.type);
  char* to = static_cast<char*>(buffer.data) + place.offset * bytes;
  for (int64_t i = 0; i < place.length; ++i) {
    StoreFloats(buffer.type, from + i * place.width, place.width, to + i * place.stride * bytes);
  }
}

template void LoadHead(const AttentionShape&, const BufferView&, int64_t, int64_t, float*);
template void LoadHead(const AttentionShape&, const BufferView&, int64_t, int64_t, double*);
template void StoreHead(const AttentionShape&, const BufferView&, int64_t, int64_t, const float*);
template void StoreHead(const AttentionShape&, const BufferView&, int64_t, int64_t, const double*);

}  // namespace internal
}  // namespace shardcall
