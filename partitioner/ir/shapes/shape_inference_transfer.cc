// SPDX-License-Identifier: Apache-2.0
// Shape inference of transfers: to and from the host, other programs, other memory.
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

// The written tuple, whose parts after the first are scalars and tokens: the data are whatever the
// program says they are.
const Shape* Received(const Query& q, size_t parts, absl::string_view form) {
  if (!WantToken(q, 0) || !WantDeclared(q)) return nullptr;
  const Shape* d = q.declared;
  if (!d->IsTuple() || d->tuple().size() != parts) {
    return Fail(q, "E021", "the result has the wrong form", std::string(form), Text(d));
  }
  return d->tuple()[0];
}

const Shape* TransferNumber(const Query& q) { return q.context.MakeScalar(ElementType::kU32); }

}  // namespace

const Shape* InferInfeed(const Query& q) {
  const Shape* data = Received(q, 2, "(data, token[])");
  return data == nullptr ? nullptr : q.context.MakeTuple({data, q.context.MakeToken()});
}

const Shape* InferRecv(const Query& q) {
  const Shape* data = Received(q, 3, "(data, u32[], token[])");
  if (data == nullptr) return nullptr;
  return q.context.MakeTuple({data, TransferNumber(q), q.context.MakeToken()});
}

const Shape* InferOutfeed(const Query& q) {
  const Shape* shape = q.as<OutfeedAttrs>().shape;
  if (!WantToken(q, 1)) return nullptr;
  if (shape != nullptr && !CompatibleShapes(shape, q.x(0))) {
    return Fail(q, "E022", "outfeed_shape is not the operand's", Text(q.x(0)), Text(shape));
  }
  return q.context.MakeToken();
}

const Shape* InferSend(const Query& q) {
  if (!WantToken(q, 1)) return nullptr;
  return q.context.MakeTuple({q.x(0), TransferNumber(q), q.context.MakeToken()});
}

const Shape* InferSendDone(const Query& q) {
  return PartOfStart(q, 2, 3) == nullptr ? nullptr : q.context.MakeToken();
}

const Shape* InferRecvDone(const Query& q) {
  const Shape* data = PartOfStart(q, 0, 3);
  return data == nullptr ? nullptr : q.context.MakeTuple({data, q.context.MakeToken()});
}

const Shape* InferCopyStart(const Query& q) {
  return q.context.MakeTuple({q.x(0), q.x(0), TransferNumber(q)});
}

const Shape* InferCopyDone(const Query& q) { return PartOfStart(q, 0, 2); }

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
