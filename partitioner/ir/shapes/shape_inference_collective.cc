// SPDX-License-Identifier: Apache-2.0
// Shape inference of collectives, and the sizes of their groups.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace {

// The number of devices along the axes of `mesh['a'=2,'b'=4], .. {'a','b':(1)2}`;
// 0 if malformed.
int64_t MeshGroupSize(absl::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  const size_t begin = text.rfind('{'), end = text.rfind('}');
  if (open > close || close == absl::string_view::npos || begin > end ||
      end == absl::string_view::npos) {
    return 0;
  }
  const absl::string_view mesh = text.substr(open + 1, close - open - 1);
  int64_t size = 1;
  for (absl::string_view axis :
       absl::StrSplit(text.substr(begin + 1, end - begin - 1), ',', absl::SkipWhitespace())) {
    axis = absl::StripAsciiWhitespace(axis);
    int64_t n = 0;
    const size_t paren = axis.rfind(')');
    if (paren != absl::string_view::npos) {  // a sub-axis: 'b':(pre)size
      if (!absl::SimpleAtoi(axis.substr(paren + 1), &n)) return 0;
    } else {
      for (absl::string_view entry : absl::StrSplit(mesh, ',')) {
        const std::pair<absl::string_view, absl::string_view> parts =
            absl::StrSplit(entry, absl::MaxSplits('=', 1));
        if (absl::StripAsciiWhitespace(parts.first) == axis &&
            !absl::SimpleAtoi(parts.second, &n)) {
          return 0;
        }
      }
    }
    if (n < 1 || __builtin_mul_overflow(size, n, &size)) return 0;
  }
  return size;
}

}  // namespace

int64_t CollectiveGroupSize(const Module& module, Opcode opcode, const CollectiveAttrs& attrs) {
  const ReplicaGroups& g = attrs.groups;
  // With a channel and without global ids, the ops that may have global ids group replicas and take
  // every partition of each.
  const bool both = attrs.channel_id >= 0 && !attrs.use_global_device_ids &&
                    hlo_text::Allows(opcode, hlo_text::Attr::kUseGlobalDeviceIds);
  int64_t size = 0;
  switch (g.form) {
    case ReplicaGroups::Form::kAll:
      if (attrs.channel_id < 0) return module.header.replica_count;
      if (both || attrs.use_global_device_ids) {
        size = module.header.replica_count;
        return __builtin_mul_overflow(size, module.header.num_partitions, &size) ? 0 : size;
      }
      return module.header.num_partitions;
    case ReplicaGroups::Form::kLists:
      if (g.lists.empty()) return 0;
      size = g.lists[0].size();
      for (const Ints& list : g.lists) {
        if (static_cast<int64_t>(list.size()) != size) return 0;
      }
      break;
    case ReplicaGroups::Form::kIota: size = g.group_size; break;
    case ReplicaGroups::Form::kMesh: size = MeshGroupSize(g.mesh_text); break;
  }
  if (both && __builtin_mul_overflow(size, module.header.num_partitions, &size)) return 0;
  return size;
}

}  // namespace internal
}  // namespace shardcall

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

// The group size, which determines the result's extent. Groups of different sizes are E025.
bool GroupSize(const Query& q, const CollectiveAttrs& a, int64_t* size) {
  *size = CollectiveGroupSize(q.module, q.opcode, a);
  if (*size > 0) return true;
  Fail(q, "E025", "replica_groups must have groups of one size", "groups of equal size",
       "groups of different sizes");
  return false;
}

// Whether the computation's op is valid for the types of all operands, which may differ from the
// computation's own.
bool ReducesAnyType(const Query& q, const CollectiveAttrs& a) {
  Opcode op;
  if (q.num_operands() < 2 ||
      a.to_apply.value >= static_cast<uint32_t>(q.module.num_computations()) ||
      !RecognizeMonoid(q.module, a.to_apply, &op)) {
    return false;
  }
  const bool bits = op == Opcode::kAnd || op == Opcode::kOr || op == Opcode::kXor;
  const bool order = op == Opcode::kMaximum || op == Opcode::kMinimum;
  for (const Shape* x : q.operands) {
    const ElementType t = x->element_type();
    if (bits && !IsInteger(t) && t != ElementType::kPred) return false;
    if (order && IsComplex(t)) return false;
  }
  return true;
}

bool WantReduction(const Query& q) {
  const auto& a = q.as<CollectiveAttrs>();
  if (ReducesAnyType(q, a)) return true;
  absl::InlinedVector<ElementType, 2> type;
  for (int i = 0; i < q.num_operands(); ++i) {
    type.assign(1, q.x(i)->element_type());
    if (!WantReducer(q, "to_apply", a.to_apply, type, type, nullptr)) return false;
  }
  return true;
}

const Shape* OperandsShape(const Query& q) { return OneOrTuple(q, q.operands); }

bool WantCollective(const Query& q) {
  if (!WantAtLeast(q, 1) || !WantArrays(q)) return false;
  const auto& a = q.as<CollectiveAttrs>();
  if (!a.use_global_device_ids || a.channel_id >= 0) return true;
  Fail(q, "E025", "use_global_device_ids=true needs a channel", "channel_id=N", "none",
       "add channel_id=1");
  return false;
}

// What an all-gather's operands become. If the module does not say how many devices there are,
// `declared` does.
const Shape* Gathered(const Query& q, const Shape* declared) {
  const auto& a = q.as<CollectiveAttrs>();
  int64_t size;
  if (!GroupSize(q, a, &size)) return nullptr;
  absl::InlinedVector<const Shape*, 2> results;
  for (int i = 0; i < q.num_operands(); ++i) {
    const Shape* x = q.x(i);
    if (!WantDim(q, "dimensions", a.dimension, x->rank())) return nullptr;
    const Shape* d = declared;
    if (d != nullptr && d->IsTuple() && i < d->tuple().size()) d = d->tuple()[i];
    int64_t n = size;
    if (size == 1 && !q.module.header.has_num_partitions && d != nullptr && d->IsArray() &&
        d->rank() == x->rank() && x->dim(a.dimension) > 0) {
      n = std::max<int64_t>(1, d->dim(a.dimension) / x->dim(a.dimension));
    }
    Dims dims(x->dims().begin(), x->dims().end());
    if (__builtin_mul_overflow(dims[a.dimension], n, &dims[a.dimension])) {
      return Fail(q, "E021", "the result is too large", "fewer than 2^63 elements", "more");
    }
    results.push_back(MakeResult(q, x->element_type(), dims));
  }
  return OneOrTuple(q, results);
}

bool WantSameDynamic(const Query& q, int a, int b) {
  if (q.x(a)->bare() == q.x(b)->bare()) return true;
  Fail(q, "E021", absl::StrCat("operands ", a, " and ", b, " differ in dynamic dimensions"),
       Text(q.x(a)), Text(q.x(b)));
  return false;
}

}  // namespace

const Shape* InferAllGather(const Query& q) {
  return WantCollective(q) ? Gathered(q, q.declared) : nullptr;
}

// (operands, results).
const Shape* InferAllGatherStart(const Query& q) {
  if (!WantCollective(q)) return nullptr;
  const Shape* declared = q.declared;
  if (declared != nullptr && declared->IsTuple() && declared->tuple().size() >= 2) {
    declared = declared->tuple()[1];
  }
  const Shape* results = Gathered(q, declared);
  return results == nullptr ? nullptr : q.context.MakeTuple({OperandsShape(q), results});
}

const Shape* InferAllReduce(const Query& q) {
  return WantCollective(q) && WantReduction(q) ? OperandsShape(q) : nullptr;
}

const Shape* InferReduceScatter(const Query& q) {
  if (!WantCollective(q)) return nullptr;
  const auto& a = q.as<CollectiveAttrs>();
  int64_t size;
  if (!GroupSize(q, a, &size) || !WantReduction(q)) return nullptr;
  absl::InlinedVector<const Shape*, 2> results;
  for (int i = 0; i < q.num_operands(); ++i) {
    const Shape* x = q.x(i);
    if (!WantDim(q, "dimensions", a.dimension, x->rank())) return nullptr;
    int64_t n = size;
    const Shape* d = q.declared;
    if (d != nullptr && d->IsTuple() && i < d->tuple().size()) d = d->tuple()[i];
    if (size == 1 && !q.module.header.has_num_partitions && d != nullptr && d->IsArray() &&
        d->rank() == x->rank() && d->dim(a.dimension) > 0) {
      n = std::max<int64_t>(1, x->dim(a.dimension) / d->dim(a.dimension));
    }
    if (x->dim(a.dimension) % n != 0) {
      return Fail(q, "E025",
                  absl::StrCat("dimension ", a.dimension, " is not a multiple of the group"),
                  absl::StrCat("a multiple of ", n), absl::StrCat(x->dim(a.dimension)));
    }
    Dims dims(x->dims().begin(), x->dims().end());
    dims[a.dimension] /= n;
    results.push_back(MakeResult(q, x->element_type(), dims));
  }
  return OneOrTuple(q, results);
}

const Shape* InferAllToAll(const Query& q) {
  if (!WantCollective(q)) return nullptr;
  const auto& a = q.as<CollectiveAttrs>();
  int64_t size;
  if (!GroupSize(q, a, &size)) return nullptr;
  const bool unknown = size == 1 && !q.module.header.has_num_partitions;
  if (a.dimension < 0) {  // one operand per device of the group
    for (int i = 1; i < q.num_operands(); ++i) {
      if (!WantSameDims(q, 0, i) || !WantSameType(q, 0, i) || !WantSameDynamic(q, 0, i)) {
        return nullptr;
      }
    }
    if (!unknown && !WantOperands(q, static_cast<int>(std::min<int64_t>(size, INT32_MAX)))) {
      return nullptr;
    }
    if (q.num_operands() == 1 && q.declared != nullptr && q.declared->IsArray()) return q.x(0);
    return q.context.MakeTuple(q.operands);
  }
  if (!WantOperands(q, 1) || !WantDim(q, "dimensions", a.dimension, q.x(0)->rank())) return nullptr;
  if (q.x(0)->IsDynamic()) {
    return Fail(q, "E021", "the operand has a dynamic dimension", "static dimensions",
                Text(q.x(0)));
  }
  if (q.x(0)->dim(a.dimension) % size != 0) {
    return Fail(q, "E025",
                absl::StrCat("dimension ", a.dimension, " is not a multiple of the group"),
                absl::StrCat("a multiple of ", size), absl::StrCat(q.x(0)->dim(a.dimension)));
  }
  return q.x(0);
}

const Shape* InferRaggedAllToAll(const Query& q) {
  if (!WantCollective(q) || !WantSameType(q, 0, 1)) return nullptr;
  bool fits = q.x(0)->rank() == q.x(1)->rank() && q.x(0)->rank() > 0;
  for (int i = 1; fits && i < q.x(0)->rank(); ++i) fits = q.x(0)->dim(i) == q.x(1)->dim(i);
  if (!fits) {
    return Fail(q, "E021", "input and output may differ in dimension 0 only", Text(q.x(0)),
                Text(q.x(1)));
  }
  for (int i = 2; i < 6; ++i) {
    if (!IsInteger(q.x(i)->element_type()) || q.x(i)->rank() == 0) {
      return Fail(q, "E021", absl::StrCat("operand ", i, " must hold offsets or sizes"), "s32[n]",
                  Text(q.x(i)));
    }
    if (!WantSameDims(q, 2, i) || !WantSameType(q, 2, i) || !WantSameDynamic(q, 2, i)) {
      return nullptr;
    }
  }
  return q.x(1);
}

// The last operand may be the root's number.
const Shape* InferCollectiveBroadcast(const Query& q) {
  if (!WantCollective(q)) return nullptr;
  if (q.as<CollectiveAttrs>().has_dynamic_root <= 0) return OperandsShape(q);
  if (!WantAtLeast(q, 2)) return nullptr;
  return OneOrTuple(q, q.operands.subspan(0, q.operands.size() - 1));
}

namespace {

// Offsets into a buffer: one scalar per dimension in a tuple, or several such
// tuples.
bool WantOffsets(const Query& q, int operand, const Shape* buffer, const Shape* offsets) {
  bool ok = offsets->IsTuple() && !offsets->tuple().empty() && buffer->IsArray();
  if (ok && offsets->tuple()[0]->IsTuple()) {
    for (const Shape* copy : offsets->tuple()) {
      ok = ok && copy->IsTuple() && copy->tuple().size() == buffer->rank();
    }
  } else if (ok) {
    ok = offsets->tuple().size() == buffer->rank();
    for (const Shape* offset : offsets->tuple()) ok = ok && offset->IsArray();
  }
  if (ok) return true;
  Fail(q, "E021", absl::StrCat("operand ", operand, " must hold one offset per dimension"),
       absl::StrCat("a tuple of ", buffer->IsArray() ? buffer->rank() : 1,
                    " scalars, or a tuple of such"),
       Text(offsets));
  return false;
}

// (input, output, input offsets, output offsets), each perhaps a tuple of as
// many parts.
bool WantSlices(const Query& q) {
  if (!WantOperands(q, 4)) return false;
  if (q.x(0)->IsArray() && q.x(1)->IsArray()) {
    return WantOffsets(q, 2, q.x(0), q.x(2)) && WantOffsets(q, 3, q.x(1), q.x(3));
  }
  const size_t parts = q.x(0)->tuple().size();
  for (int i = 0; i < 4; ++i) {
    if (q.x(i)->IsTuple() && q.x(i)->tuple().size() == parts) continue;
    Fail(q, "E021", absl::StrCat("operands 0 and ", i, " do not have as many parts"), Text(q.x(0)),
         Text(q.x(i)));
    return false;
  }
  for (size_t k = 0; k < parts; ++k) {
    if (!WantOffsets(q, 2, q.x(0)->tuple()[k], q.x(2)->tuple()[k]) ||
        !WantOffsets(q, 3, q.x(1)->tuple()[k], q.x(3)->tuple()[k])) {
      return false;
    }
  }
  return true;
}

}  // namespace

const Shape* InferPermute(const Query& q) {
  if (!WantAtLeast(q, 1)) return nullptr;
  if (!q.as<PermuteAttrs>().slice_sizes.empty()) return WantSlices(q) ? q.x(1) : nullptr;
  return WantArrays(q) ? OperandsShape(q) : nullptr;
}

// (operand, result, extra..).
const Shape* InferPermuteStart(const Query& q) {
  const Shape* result = InferPermute(q);
  if (result == nullptr) return nullptr;
  const Shape* d = q.declared;
  const Shape* from = q.as<PermuteAttrs>().slice_sizes.empty() ? result : q.x(0);
  if (d == nullptr) return q.context.MakeTuple({from, result});
  if (!d->IsTuple() || d->tuple().size() < 2 || !CompatibleShapes(d->tuple()[0], from) ||
      !CompatibleShapes(d->tuple()[1], result)) {
    return Fail(q, "E021", "the result must be (operand, result, ..)",
                absl::StrCat("(", Text(from), ", ", Text(result), ", ..)"), Text(d));
  }
  return d;
}

// The results of an asynchronous op's start, which is a tuple (operands, results, extra..).
const Shape* InferPartOfStart(const Query& q) { return PartOfStart(q, 1, 2); }

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
