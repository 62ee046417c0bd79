// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_call_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/c/c_attributes.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/bindings/manifest/partial_op_names.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

const AttributeMapView& AttributesOf(const Shardcall_CallView* view) {
  return ViewOf(view).attributes();
}

const Shardcall_Sharding* Given(const Shardcall_CallView* view, absl::StatusOr<const Sharding*> s) {
  CCallView& v = ViewOf(view);
  if (s.ok()) return v.Give(*s);
  v.Fail(s.status());
  return nullptr;
}

bool RankFits(const Shardcall_CallView* view, int32_t rank) {
  if (rank >= 0 && rank <= kMaxRank) return true;
  CCallView& v = ViewOf(view);
  v.Fail(v.call().Misfit("a sharding is asked for", absl::StrCat("a rank of 0 to ", kMaxRank),
                         absl::StrCat(rank)));
  return false;
}

const Shardcall_Sharding* ParseSharding(const Shardcall_CallView* view, const char* text,
                                        int32_t rank) {
  if (view == nullptr || !RankFits(view, rank)) return nullptr;
  return Given(view, ViewOf(view).call().ParseSharding(text == nullptr ? "" : text, rank));
}
const Shardcall_Sharding* Replicated(const Shardcall_CallView* view, int32_t rank) {
  if (view == nullptr || !RankFits(view, rank)) return nullptr;
  return ViewOf(view).Give(ViewOf(view).call().Replicated(rank));
}

absl::StatusOr<const Sharding*> Changed(CCallView& v, const Shardcall_Sharding* given, int32_t dim,
                                        const char* op, const char* const* names) {
  SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s, v.TakeOne(given));
  SHARDCALL_ASSIGN_OR_RETURN(const AxisList axes, v.Axes(names));
  ShardingBuilder b(*s);
  if (op == nullptr) {
    if (dim < 0 || dim >= s->rank()) {
      return v.call().Misfit("a dimension is to be sharded that does not exist",
                             absl::StrCat("below ", s->rank()), absl::StrCat(dim));
    }
    b.dims[dim] = axes;
  } else {
    if (!PartialOpFromName(op, &b.partial_op)) {
      return v.call().Misfit("there is no such reduction", std::string(kPartialOpNames), op);
    }
    b.partial = axes;
  }
  AxisList used(b.partial.begin(), b.partial.end());
  for (const AxisList& d : b.dims) {
    if (Overlaps(d, used)) {
      return v.call().Misfit("an axis would stand twice in one sharding", "each axis once",
                             s->ToString());
    }
    used.insert(used.end(), d.begin(), d.end());
  }
  return b.Intern(*v.call().context);
}
const Shardcall_Sharding* WithDim(const Shardcall_CallView* view, const Shardcall_Sharding* s,
                                  int32_t dim, const char* const* axes) {
  return view == nullptr ? nullptr : Given(view, Changed(ViewOf(view), s, dim, nullptr, axes));
}
const Shardcall_Sharding* WithPartial(const Shardcall_CallView* view, const Shardcall_Sharding* s,
                                      const char* op, const char* const* axes) {
  if (view == nullptr) return nullptr;
  return Given(view, Changed(ViewOf(view), s, 0, op == nullptr ? "" : op, axes));
}

// Null, and the reason kept, if `s` is not a sharding for this call.
const Sharding* Known(const Shardcall_CallView* view, const Shardcall_Sharding* s) {
  if (view == nullptr) return nullptr;
  const absl::StatusOr<const Sharding*> taken = ViewOf(view).TakeOne(s);
  if (taken.ok()) return *taken;
  ViewOf(view).Fail(taken.status());
  return nullptr;
}
const char* ShardingText(const Shardcall_CallView* view, const Shardcall_Sharding* s) {
  const Sharding* known = Known(view, s);
  return known == nullptr ? "" : ViewOf(view).Keep(known->ToString());
}
int32_t ShardingRank(const Shardcall_CallView* view, const Shardcall_Sharding* s) {
  const Sharding* known = Known(view, s);
  return known == nullptr ? -1 : known->rank();
}
int64_t NumShards(const Shardcall_CallView* view, const Shardcall_Sharding* s, int32_t dim) {
  const Sharding* known = Known(view, s);
  return known == nullptr || dim < 0 || dim >= known->rank() ? 0 : known->num_shards(dim);
}
void SetMessage(const Shardcall_CallView* view, const char* message) {
  if (view != nullptr) ViewOf(view).SetMessage(message);
}

}  // namespace

CCallView::CCallView(const CustomCallView& call) : call_(call), c_() {
  if (call.api_version == 4) attributes_ = AttributesOrNone(call.backend_config);
  for (const Shape* s : call.operands) operands_.push_back(ShapeOf(*s));
  for (const Shape* s : call.results) results_.push_back(ShapeOf(*s));
  for (const Shape* s : call.operand_layouts) operand_layouts_.push_back(ShapeOf(*s));
  for (CustomCallView::Axis& a : call.axes()) {
    axes_.push_back({sizeof(Shardcall_Axis), Keep(std::move(a.name)), a.size, a.manual});
  }
  if (call.frontend != nullptr) {
    for (const auto& [key, value] : call.frontend->entries) {
      frontend_.push_back(
          {sizeof(Shardcall_KeyValue), Keep(std::string(key)), Keep(std::string(value))});
    }
  }
  for (const CustomCallView::Alias& a : call.aliases) {
    aliases_.push_back({sizeof(Shardcall_Alias), a.result, a.operand});
  }
  c_.struct_size = sizeof(c_);
  c_.target = Keep(std::string(call.target));
  c_.instruction = Keep(std::string(call.instruction));
  c_.backend_config = Keep(std::string(call.backend_config));
  c_.backend_config_size = call.backend_config.size();
  c_.api_version = call.api_version;
  c_.has_side_effect = call.has_side_effect;
  c_.num_operands = static_cast<int32_t>(operands_.size());
  c_.num_results = static_cast<int32_t>(results_.size());
  c_.num_operand_layouts = static_cast<int32_t>(operand_layouts_.size());
  c_.num_axes = static_cast<int32_t>(axes_.size());
  c_.num_frontend_attributes = static_cast<int32_t>(frontend_.size());
  c_.num_aliases = static_cast<int32_t>(aliases_.size());
  c_.operands = operands_.data();
  c_.results = results_.data();
  c_.operand_layouts = operand_layouts_.data();
  c_.axes = axes_.data();
  c_.frontend_attributes = frontend_.data();
  c_.aliases = aliases_.data();
  CAttributes<Shardcall_CallView, AttributesOf>::Fill(&c_);
  c_.parse_sharding = ParseSharding;
  c_.replicated = Replicated;
  c_.with_dim = WithDim;
  c_.with_partial = WithPartial;
  c_.sharding_text = ShardingText;
  c_.sharding_rank = ShardingRank;
  c_.num_shards = NumShards;
  c_.set_message = shardcall::SetMessage;
  c_.reserved = this;
}

Shardcall_Shape CCallView::ShapeOf(const Shape& shape) {
  Shardcall_Shape c = SHARDCALL_INIT(Shardcall_Shape);
  c.type = static_cast<int32_t>(shape.IsArray() ? shape.element_type() : ElementType::kToken);
  if (!shape.IsArray()) return c;
  c.rank = shape.rank();
  c.dims = shape.dims().data();
  if (shape.has_layout()) {
    const auto order = shape.minor_to_major();
    layouts_.emplace_back(order.begin(), order.end());
    c.minor_to_major = layouts_.back().data();
  }
  return c;
}

const Shardcall_Sharding* CCallView::Give(const Sharding* s) {
  if (s != nullptr) given_.insert(s);
  return reinterpret_cast<const Shardcall_Sharding*>(s);
}

absl::StatusOr<const Sharding*> CCallView::Take(const Shardcall_Sharding* s) const {
  const auto* sharding = reinterpret_cast<const Sharding*>(s);
  if (s == nullptr || given_.contains(sharding)) return sharding;
  return call_.Misfit("a sharding is used that this callback was not given",
                      "one of this call's, such as parse_sharding gives", "another pointer");
}

absl::StatusOr<const Sharding*> CCallView::TakeOne(const Shardcall_Sharding* s) const {
  if (s != nullptr) return Take(s);
  return call_.Misfit("a sharding is null", "one of this call's, such as parse_sharding gives",
                      "null, which a function that failed returns");
}

absl::StatusOr<AxisList> CCallView::Axes(const char* const* names) const {
  std::vector<std::string> list;
  for (int i = 0; names != nullptr && i < 64 && names[i] != nullptr; ++i) list.push_back(names[i]);
  return call_.AxesNamed(list);
}

int CCallView::Fail(absl::Status status) {
  const int code = static_cast<int>(status.code());
  if (first_error_.ok()) first_error_ = std::move(status);
  return code;
}

absl::Status CCallView::Returned(int code) const {
  // The first error is returned even if the callback ignored its code.
  if (!first_error_.ok() && (code == 0 || message_.empty())) return first_error_;
  return code == 0 ? absl::OkStatus() : StatusOfC(code, message_);
}

}  // namespace internal
}  // namespace shardcall
