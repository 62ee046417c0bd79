// SPDX-License-Identifier: Apache-2.0
// Checks that a callback's arguments belong to its call and its mesh and have fitting shapes.
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// ": dims 1 and 2 are swapped" if that is the only difference.
std::string SwapNote(const Shape* want, const Shape* have) {
  if (want->rank() != have->rank()) return "";
  std::vector<int> differ;
  for (int d = 0; d < want->rank(); ++d) {
    if (want->dim(d) != have->dim(d)) differ.push_back(d);
  }
  if (differ.size() != 2 || want->dim(differ[0]) != have->dim(differ[1]) ||
      want->dim(differ[1]) != have->dim(differ[0])) {
    return "";
  }
  return absl::StrCat(": dims ", differ[0], " and ", differ[1], " are swapped");
}

}  // namespace

absl::Status CallbackContext::CheckAllSet() const {
  for (size_t k = 0; k < values_.size(); ++k) {
    if (values_[k].valid()) continue;
    return view_.Misfit(absl::StrCat("partition(\"", view_.target, "\") set no result ", k),
                        absl::StrCat(values_.size(), " results"), absl::StrCat("none for ", k));
  }
  return absl::OkStatus();
}

absl::Status CallbackContext::CheckDim(const Shape* global, const Sharding* sharding,
                                       int dim) const {
  if (global != nullptr && global->IsArray() && sharding != nullptr && dim >= 0 &&
      dim < global->rank() && sharding->rank() == global->rank() &&
      sharding->mesh() == view_.mesh && !sharding->is_maximal()) {
    return absl::OkStatus();
  }
  return view_.Misfit("a tile is asked for that is of no array",
                      "an array, a sharding of its rank on the call's mesh, and a dimension",
                      absl::StrCat("dimension ", dim));
}

absl::Status CallbackContext::CheckIndex(int i, size_t size, absl::string_view what) const {
  if (i >= 0 && i < static_cast<int>(size)) return absl::OkStatus();
  return view_.Misfit(absl::StrCat("there is no ", what, " ", i),
                      absl::StrCat("an index below ", size), absl::StrCat(i));
}

absl::Status CallbackContext::CheckValue(LocalValue x) const {
  const Module& m = ops_.local();
  if (x.id.valid() && x.id.value < static_cast<uint32_t>(m.num_instructions()) &&
      m.instr(x.id).computation == builder_.computation()) {
    return absl::OkStatus();
  }
  return view_.Misfit("a value is used that was not made here", "a value of this context",
                      x.id.valid() ? absl::StrCat("number ", x.id.value) : "none");
}

absl::Status CallbackContext::Check(LocalValue x, Axes axes) const {
  SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
  SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
  const Shape* shape = ops_.builder().shape(x.id);
  if (shape->IsArray()) return absl::OkStatus();
  return view_.Misfit("a collective is about what is no array", "an array", shape->ToString(false));
}

absl::Status CallbackContext::CheckReduction(LocalValue x, PartialOp op) const {
  const ElementType type = ops_.builder().type(x.id);
  if (HasIdentity(op, type)) return absl::OkStatus();
  return view_.Misfit("a collective reduces what has no such reduction",
                      absl::StrCat("a type that has ", PartialOpName(op)),
                      std::string(ElementTypeName(type)));
}

absl::Status CallbackContext::Check(LocalValue x, Axes axes, int dim, int64_t parts) const {
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes));
  const Shape* shape = ops_.builder().shape(x.id);
  if (dim < 0 || dim >= shape->rank()) {
    return view_.Misfit("a collective is about a dimension that the value does not have",
                        absl::StrCat("a dimension of ", shape->ToString(false)), absl::StrCat(dim));
  }
  if (shape->dim(dim) % parts != 0) {
    return view_.Misfit(absl::StrCat("dimension ", dim, " is cut in ", parts, " parts"),
                        absl::StrCat("a multiple of ", parts), absl::StrCat(shape->dim(dim)));
  }
  return absl::OkStatus();
}

absl::Status CallbackContext::CheckAxes(Axes axes) const {
  for (size_t k = 0; k < axes.size(); ++k) {
    const AxisRef a = axes[k];
    const bool known = a.axis < view_.mesh->num_axes() && a.size > 0 && a.pre_size > 0 &&
                       view_.mesh->axis_size(a.axis) % (int64_t{a.pre_size} * a.size) == 0;
    if (known && !Overlaps({a}, view_.manual_axes) && !Overlaps({a}, axes.first(k))) continue;
    return view_.Misfit("a collective names an axis that is manual, not of the mesh, or twice",
                        "free axes of the mesh", absl::StrCat("axis ", a.axis));
  }
  return absl::OkStatus();
}

absl::Status CallbackContext::CheckWhole(const Sharding* s) const {
  if (s->partial().empty()) return absl::OkStatus();
  return view_.Misfit("a value is asked for as partial", "a sharding without partial axes",
                      s->ToString());
}

absl::Status CallbackContext::CheckShard(LocalValue x, const Shape* global, const Sharding* s,
                                         absl::string_view what) const {
  const Shape* want = LocalShape(ops_.context(), global, s);
  const Shape* have = ops_.builder().shape(x.id);
  if (want->bare() != have->bare()) {
    return view_.Misfit(absl::StrCat(what, ": the callback chose ", s->ToString()),
                        absl::StrCat("the local shape ", want->ToString(false)),
                        absl::StrCat(have->ToString(false), SwapNote(want, have)));
  }
  if (!s->partial().empty() && !HasIdentity(s->partial_op(), global->element_type())) {
    return view_.Misfit(absl::StrCat(what, " cannot be partial"),
                        "an element type that the reduction takes", s->ToString());
  }
  return absl::OkStatus();
}

absl::Status CallbackContext::CheckLike(const Shape* global, const Shape* local,
                                        absl::string_view what, size_t k) const {
  if (local != nullptr && local->IsArray() == global->IsArray() &&
      (global->IsArray() ? local->rank() == global->rank() : local->bare() == global->bare())) {
    return absl::OkStatus();
  }
  return view_.Misfit(absl::StrCat("the target is called with another ", what, " ", k),
                      absl::StrCat("a shard of ", global->ToString(false)),
                      local == nullptr ? "no shape" : local->ToString(false));
}

}  // namespace internal
}  // namespace shardcall
