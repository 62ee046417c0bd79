// SPDX-License-Identifier: Apache-2.0
// PartitionContext for partition callbacks: what a callback may see and do.
#include <exception>

#include "absl/strings/str_cat.h"
#include "partitioner/spmd/localizer.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

class CallbackContext : public PartitionContext {
 public:
  CallbackContext(Localizer& l, InstrId id, const Decision& d)
      : l_(l),
        id_(id),
        decision_(d),
        builder_(&l.local(), l.builder().computation(), &l.emitter().shared().monoids) {
    builder_.set_metadata(l.builder().metadata());
    const Instruction& instr = l.global().instr(id);
    view_.context = &l.context();
    const auto& attrs = instr.as<CustomCallAttrs>();
    view_.target = attrs.target;
    view_.instruction = instr.name;
    view_.backend_config = instr.backend_config;
    view_.frontend = instr.frontend;
    for (InstrId o : l.global().operands(id)) {
      const Shape* shape = l.global().instr(o).shape;
      for (int k = 0; k < shape->num_leaves(); ++k) {
        view_.operands.push_back(shape->leaf(k));
        sources_.push_back({o, k});
      }
    }
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      view_.results.push_back(instr.shape->leaf(k));
    }
    view_.mesh = l.program().mesh;
    view_.manual_axes = l.program().manual_axes(id);
    values_.resize(view_.results.size());
    states_.resize(view_.results.size(), nullptr);
  }

  const CustomCallView& call() const override { return view_; }
  const Sharding* operand_sharding(int i) const override { return OnMesh(decision_.operands[i]); }
  const Sharding* result_sharding(int i) const override { return OnMesh(decision_.final[i]); }

  absl::StatusOr<LocalValue> Operand(int i, const Sharding* sharding) override {
    if (i < 0 || i >= static_cast<int>(sources_.size())) {
      return Error("E120", absl::StrCat("operand ", i, " was asked for"),
                   absl::StrCat("an index below ", sources_.size()), absl::StrCat(i));
    }
    if (sharding != nullptr && sharding->rank() != view_.operands[i]->rank()) {
      return Error("E120", absl::StrCat("operand ", i, " was asked for as ", sharding->ToString()),
                   absl::StrCat("a sharding of rank ", view_.operands[i]->rank()),
                   absl::StrCat("rank ", sharding->rank()));
    }
    return LocalValue{l_.Get(sources_[i].first, sources_[i].second, sharding,
                             {CollectiveCause::Kind::kOperand, id_, i})};
  }
  Module& module() override { return l_.local(); }
  CompId computation() override { return l_.builder().computation(); }
  CheckedBuilder& builder() override { return builder_; }

  absl::StatusOr<LocalValue> TileStart(const Shape* global, const Sharding* sharding,
                                       int dim) override {
    SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, dim));
    return LocalValue{l_.emitter().TileStart(*sharding, global, dim)};
  }
  absl::StatusOr<LocalValue> MaskPadding(LocalValue x, const Shape* global,
                                         const Sharding* sharding, absl::Span<const int> dims,
                                         LocalValue fill) override {
    for (int d : dims) SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, d));
    const Shape* want = LocalShape(l_.context(), global, sharding);
    const Shape* have = builder_.shape(x.id);
    const Shape* scalar = builder_.shape(fill.id);
    if (!have->IsArray() || want->dims() != have->dims() || !scalar->IsArray() ||
        scalar->rank() != 0 || scalar->element_type() != have->element_type()) {
      return Error("E120", "padding is filled in what is no shard of the array, or by no scalar",
                   absl::StrCat(want->ToString(false), " and a scalar of its type"),
                   absl::StrCat(have->ToString(false), " and ", scalar->ToString(false)));
    }
    return LocalValue{l_.emitter().MaskPadding(x.id, global, *sharding, dims, fill.id)};
  }

  absl::StatusOr<std::vector<LocalValue>> CallTarget(
      absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) override {
    const Instruction& instr = l_.global().instr(id_);
    if (results.size() != view_.results.size()) {
      return Error("E120", "the target was called with another number of results",
                   absl::StrCat(view_.results.size()), absl::StrCat(results.size()));
    }
    if (operands.size() != view_.operands.size()) {
      return Error("E120", "the target was called with another number of operands",
                   absl::StrCat(view_.operands.size()), absl::StrCat(operands.size()));
    }
    LocalOp op{id_, instr, decision_, {}, {}, {}};
    for (LocalValue v : operands) op.operands.push_back(v.id);
    op.operand_shapes.assign(view_.operands.begin(), view_.operands.end());
    op.result_shapes.assign(results.begin(), results.end());
    std::vector<LocalValue> out;
    for (InstrId v : HandleCustomCall(l_, op)) out.push_back({v});
    return out;
  }
  LocalValue PartitionId() override { return {l_.builder().PartitionId()}; }
  absl::StatusOr<LocalValue> AllReduce(LocalValue x, PartialOp op,
                                       absl::Span<const AxisRef> axes) override {
    SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    return LocalValue{l_.emitter().AllReduce(x.id, axes, op)};
  }
  absl::StatusOr<LocalValue> AllGather(LocalValue x, int dim,
                                       absl::Span<const AxisRef> axes) override {
    SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
    if (dim < 0 || dim >= l_.builder().shape(x.id)->rank()) {
      return Error("E120", "an all-gather names a dimension that the value does not have",
                   absl::StrCat("below ", l_.builder().shape(x.id)->rank()), absl::StrCat(dim));
    }
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    return LocalValue{l_.emitter().AllGather(x.id, dim, axes)};
  }
  absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) override {
    if (i < 0 || i >= static_cast<int>(values_.size())) {
      return Error("E120", absl::StrCat("result ", i, " was set"),
                   absl::StrCat("an index below ", values_.size()), absl::StrCat(i));
    }
    const Shape* global = view_.results[i];
    if (global->IsArray()) {
      if (sharding == nullptr || sharding->rank() != global->rank()) {
        return Error("E120", absl::StrCat("result ", i, " was set without a fitting sharding"),
                     absl::StrCat("a sharding of rank ", global->rank()),
                     sharding == nullptr ? "none" : absl::StrCat("rank ", sharding->rank()));
      }
      const Shape* want = LocalShape(l_.context(), global, sharding);
      const Shape* have = l_.builder().shape(value.id);
      if (want->bare() != have->bare()) {
        return Error("E120", absl::StrCat("partition(\"", view_.target, "\") result ", i,
                                          ": the callback chose ", sharding->ToString()),
                     absl::StrCat("the local shape ", want->ToString(false)),
                     have->ToString(false));
      }
    }
    values_[i] = value.id;
    states_[i] = sharding;
    return absl::OkStatus();
  }

  absl::Status CheckAllSet() const {
    for (size_t k = 0; k < values_.size(); ++k) {
      if (!values_[k].valid()) {
        return Error("E120", absl::StrCat("partition(\"", view_.target, "\") set no result ", k),
                     absl::StrCat(values_.size(), " results"), absl::StrCat("none for ", k));
      }
    }
    return absl::OkStatus();
  }
  absl::Span<const InstrId> values() const { return values_; }
  const std::vector<const Sharding*>& states() const { return states_; }

 private:
  // A callback's axes are those of the call's mesh; what lies on another base
  // mesh shows as whole.
  const Sharding* OnMesh(const Sharding* s) const {
    if (s == nullptr || s->mesh() == view_.mesh) return s;
    return ReplicatedSharding(*view_.context, view_.mesh, s->rank(), view_.manual_axes);
  }

  absl::Status Error(const char* code, std::string message, std::string expected,
                     std::string found) const {
    Diagnostic d;
    d.code = code;
    d.message = absl::StrCat("target \"", view_.target, "\" (%", view_.instruction, "): ", message);
    d.expected = std::move(expected);
    d.found = std::move(found);
    d.fix = "correct the target's partition callback";
    return ToStatus(d);
  }
  absl::Status CheckAxes(absl::Span<const AxisRef> axes) const {
    for (AxisRef a : axes) {
      if (a.axis >= view_.mesh->num_axes() || Overlaps({a}, view_.manual_axes)) {
        return Error("E120", "a collective names an axis that is manual or not of the mesh",
                     "free axes of the mesh", absl::StrCat("axis ", a.axis));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDim(const Shape* global, const Sharding* sharding, int dim) const {
    if (global != nullptr && global->IsArray() && sharding != nullptr && dim >= 0 &&
        dim < global->rank() && sharding->rank() == global->rank()) {
      return absl::OkStatus();
    }
    return Error("E120", "a tile is asked for that is of no array",
                 "an array, a sharding of its rank, and one of its dimensions",
                 absl::StrCat("dimension ", dim));
  }

  Localizer& l_;
  InstrId id_;
  const Decision& decision_;
  CheckedBuilder builder_;
  CustomCallView view_;
  std::vector<std::pair<InstrId, int>> sources_;
  std::vector<InstrId> values_;
  std::vector<const Sharding*> states_;
};

}  // namespace

absl::Status Localizer::LocalizeCallbacks(InstrId id, const Decision& d) {
  CallbackContext context(*this, id, d);
  const TargetRule* target = rules_.target(id);
  Diagnostic e;
  e.code = "E121";
  e.fix = "correct the target's partition callback";
  try {  // a user's function: the one place where a foreign throw may come by
    const absl::Status status = target->callbacks.partition(context);
    if (!status.ok()) {
      if (!DiagnosticCode(status).empty()) return status;
      e.message = absl::StrCat("partition callback of \"", target->target, "\" (%",
                               global_.instr(id).name, ") failed: ",
                               std::string(status.message()));
      return ToStatus(e, status.code());
    }
  } catch (const std::exception& thrown) {
    e.message = absl::StrCat("partition callback of \"", target->target, "\" (%",
                             global_.instr(id).name, ") threw: ", thrown.what());
    return ToStatus(e, absl::StatusCode::kInternal);
  } catch (...) {
    e.message = absl::StrCat("partition callback of \"", target->target, "\" (%",
                             global_.instr(id).name, ") threw");
    return ToStatus(e, absl::StatusCode::kInternal);
  }
  SHARDCALL_RETURN_IF_ERROR(context.CheckAllSet());
  Decision made = d;
  made.produced = context.states();
  StoreResults(id, made, context.values());
  return absl::OkStatus();
}

}  // namespace shardcall
