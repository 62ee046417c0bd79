// SPDX-License-Identifier: Apache-2.0
// PartitionContext for partition callbacks: what a callback may see and do.
#include <algorithm>
#include <exception>
#include <memory>

#include "absl/strings/str_cat.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/splice.h"
#include "partitioner/ir/verifier.h"
#include "partitioner/spmd/callback_memo.h"
#include "partitioner/spmd/localizer.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;
using Axes = absl::Span<const AxisRef>;
using ValueOr = absl::StatusOr<LocalValue>;

// ": dims 1 and 2 are swapped" if that is all.
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

// Whether braces and quotes match, with nothing around the outer ones.
bool IsDictionary(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    if (quoted) {
      if (text[k] == '\\') ++k;
      else if (text[k] == '"') quoted = false;
      continue;
    }
    quoted = text[k] == '"';
    depth += (text[k] == '{') - (text[k] == '}');
    if (depth <= 0) return depth == 0 && k > 0 && k + 1 == text.size() && text[k] == '}';
  }
  return false;
}

class CallbackContext : public PartitionContext {
 public:
  CallbackContext(Localizer& l, InstrId id, const Decision& d)
      : l_(l),
        id_(id),
        decision_(d),
        view_(ViewCustomCall(l.global(), id, l.program().mesh, l.program().manual_axes(id))),
        builder_(&l.local(), l.builder().computation(), &l.emitter().shared().monoids) {
    builder_.set_metadata(l.global().instr(id).metadata);
    for (InstrId o : l.global().operands(id)) {
      for (int k = 0; k < l.global().instr(o).shape->num_leaves(); ++k) sources_.push_back({o, k});
    }
    values_.resize(view_.results.size());
    states_.resize(view_.results.size(), nullptr);
    PassOver();
  }

  const CustomCallView& call() const override { return view_; }
  const Sharding* operand_sharding(int i) const override { return At(decision_.operands, i); }
  const Sharding* result_sharding(int i) const override { return At(decision_.final, i); }

  ValueOr Operand(int i, const Sharding* sharding) override {
    SHARDCALL_RETURN_IF_ERROR(CheckIndex(i, sources_.size(), "operand"));
    if (view_.operands[i]->IsArray()) {
      SHARDCALL_ASSIGN_OR_RETURN(
          sharding, view_.Checked(sharding, view_.operands[i], absl::StrCat("operand ", i)));
      SHARDCALL_RETURN_IF_ERROR(CheckWhole(sharding));
    } else {
      sharding = nullptr;
    }
    NoteMade();
    const LocalValue x{Fetched(i, sharding)};
    for (const CallbackRecord::Step& step : record_.steps) {
      const bool same = step.operand == i && step.sharding == sharding;
      record_.ambiguous = record_.ambiguous || (step.value == x.id && !same);
    }
    record_.steps.push_back({i, sharding, x.id});
    PassOver();
    return x;
  }
  absl::StatusOr<const Shape*> ShapeOf(LocalValue x) override {
    SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
    return l_.builder().shape(x.id);
  }
  CheckedBuilder& builder() override { return builder_; }

  ValueOr TileStart(const Shape* global, const Sharding* sharding, int dim) override {
    SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, dim));
    return LocalValue{l_.emitter().TileStart(*sharding, global, dim)};
  }
  ValueOr MaskPadding(LocalValue x, const Shape* global, const Sharding* sharding,
                      absl::Span<const int> dims, LocalValue fill) override {
    SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
    SHARDCALL_RETURN_IF_ERROR(CheckValue(fill));
    for (int d : dims) SHARDCALL_RETURN_IF_ERROR(CheckDim(global, sharding, d));
    if (dims.empty()) return x;
    const Shape* want = LocalShape(l_.context(), global, sharding);
    const Shape* have = builder_.shape(x.id);
    const Shape* scalar = builder_.shape(fill.id);
    if (!have->IsArray() || want->dims() != have->dims() || !scalar->IsArray() ||
        scalar->rank() != 0 || scalar->element_type() != have->element_type()) {
      return view_.Misfit("padding is filled in what is no shard of the array, or by no scalar",
                          absl::StrCat(want->ToString(false), " and a scalar of its type"),
                          absl::StrCat(have->ToString(false), " and ", scalar->ToString(false)));
    }
    return LocalValue{l_.emitter().MaskPadding(x.id, global, *sharding, dims, fill.id)};
  }

  absl::StatusOr<std::vector<LocalValue>> CallTarget(
      absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) override {
    return Call(l_.global().instr(id_), operands, results);
  }
  absl::StatusOr<std::vector<LocalValue>> CallTargetWith(
      absl::string_view backend_config, absl::Span<const LocalValue> operands,
      absl::Span<const Shape* const> results) override {
    if (view_.api_version == 4 && !IsDictionary(backend_config)) {
      return view_.Misfit("the target is called with a backend_config that is no dictionary",
                          "{key = value, ..}", std::string(backend_config));
    }
    Instruction instr = l_.global().instr(id_);
    instr.backend_config = l_.context().arena().Copy(backend_config);
    return Call(instr, operands, results);
  }
  absl::StatusOr<std::vector<LocalValue>> Call(const Instruction& instr,
                                               absl::Span<const LocalValue> operands,
                                               absl::Span<const Shape* const> results) {
    if (results.size() != view_.results.size() || operands.size() != view_.operands.size()) {
      return view_.Misfit(
          "the target is called with another number of operands or results",
          absl::StrCat(view_.operands.size(), " and ", view_.results.size()),
          absl::StrCat(operands.size(), " and ", results.size()));
    }
    LocalOp op{id_, instr, decision_, {}, {}, {}};
    std::vector<const Shape*> shapes;
    for (size_t k = 0; k < operands.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, ShapeOf(operands[k]));
      SHARDCALL_RETURN_IF_ERROR(CheckLike(view_.operands[k], shape, "operand", k));
      op.operands.push_back(operands[k].id);
      shapes.push_back(shape);
    }
    for (size_t k = 0; k < results.size(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(CheckLike(view_.results[k], results[k], "result", k));
    }
    for (const CustomCallView::Alias& a : view_.aliases) {
      if (results[a.result]->bare() == shapes[a.operand]->bare()) continue;
      return view_.Misfit(absl::StrCat("result ", a.result, " aliases operand ", a.operand,
                                       ", and the target is called with other local shapes"),
                          shapes[a.operand]->ToString(false), results[a.result]->ToString(false));
    }
    op.operand_shapes.assign(view_.operands.begin(), view_.operands.end());
    op.result_shapes.assign(results.begin(), results.end());
    std::vector<LocalValue> out;
    for (InstrId v : HandleCustomCall(l_, op)) out.push_back({v});
    return out;
  }

  absl::StatusOr<std::vector<LocalValue>> AddProgram(
      absl::string_view hlo, absl::Span<const LocalValue> operands) override {
    std::vector<InstrId> ids;
    for (LocalValue x : operands) {
      SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
      ids.push_back(x.id);
    }
    const std::string file = absl::StrCat("program of ", view_.target);
    SHARDCALL_ASSIGN_OR_RETURN(Module module,
                               ParseModule(std::make_shared<const std::string>(hlo),
                                           l_.local().shared_context(), file));
    const int64_t n = l_.program().num_partitions;
    if (module.header.has_num_partitions && module.header.num_partitions != n) {
      return view_.Misfit("the local program is for another number of devices", absl::StrCat(n),
                          absl::StrCat(module.header.num_partitions));
    }
    module.header.num_partitions = n;
    module.header.has_num_partitions = true;
    SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, file));
    SHARDCALL_ASSIGN_OR_RETURN(
        const SpliceResult spliced,
        Splice(module, ids, builder_.metadata(), &l_.emitter().shared().next_channel, &l_.local(),
               l_.builder().computation()));
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    for (InstrId c : spliced.collectives) l_.emitter().RecordAsWritten(c, n);
    std::vector<LocalValue> out;
    for (InstrId leaf : l_.Flatten(spliced.root)) out.push_back({leaf});
    return out;
  }

  LocalValue PartitionId() override { return {l_.builder().PartitionId()}; }
  ValueOr AxisIndex(Axes axes) override {
    SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
    return LocalValue{l_.emitter().Coordinate(view_.mesh, axes)};
  }

  ValueOr AllReduce(LocalValue x, PartialOp op, Axes axes) override {
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes));
    if (AxesSize(axes) == 1) return x;
    const ReplicaGroups& groups = l_.emitter().Groups(axes);
    return Collective(builder_.AllReduce(x.id, groups, NextChannel(), MonoidOf(op)), groups);
  }
  ValueOr AllGather(LocalValue x, int dim, Axes axes) override {
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes, dim));
    if (AxesSize(axes) == 1) return x;
    const ReplicaGroups& groups = l_.emitter().Groups(axes);
    return Collective(builder_.AllGather(x.id, dim, groups, NextChannel()), groups);
  }
  ValueOr ReduceScatter(LocalValue x, int dim, PartialOp op, Axes axes) override {
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes, dim, AxesSize(axes)));
    if (AxesSize(axes) == 1) return x;
    const ReplicaGroups& groups = l_.emitter().Groups(axes);
    return Collective(builder_.ReduceScatter(x.id, dim, groups, NextChannel(), MonoidOf(op)),
                      groups);
  }
  ValueOr AllToAll(LocalValue x, int split, int join, Axes axes) override {
    const int64_t m = AxesSize(axes);
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes, split, m));
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes, join));
    if (m == 1) return x;
    const ReplicaGroups& groups = l_.emitter().Groups(axes);
    if (split == join) return Collective(builder_.AllToAll(x.id, split, groups, NextChannel()), groups);
    const Shape* shape = l_.builder().shape(x.id);
    Dims cut, permutation, merged;
    for (int d = 0; d < shape->rank(); ++d) {
      if (d == split) cut.push_back(m);
      cut.push_back(d == split ? shape->dim(d) / m : shape->dim(d));
      merged.push_back(d == split ? shape->dim(d) / m : d == join ? m * shape->dim(d) : shape->dim(d));
    }
    const int join_at = join < split ? join : join + 1;  // in `cut`
    for (int d = 0; d <= shape->rank(); ++d) {
      if (d == join_at) permutation.push_back(split);
      if (d != split) permutation.push_back(d);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId blocks, builder_.Reshape(x.id, cut));
    SHARDCALL_ASSIGN_OR_RETURN(
        const LocalValue moved,
        Collective(builder_.AllToAll(blocks, split, groups, NextChannel()), groups));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId turned, builder_.Transpose(moved.id, permutation));
    return Made(builder_.Reshape(turned, merged));
  }
  ValueOr CollectivePermute(LocalValue x, Axes axes,
                            absl::Span<const std::pair<int64_t, int64_t>> pairs) override {
    SHARDCALL_RETURN_IF_ERROR(Check(x, axes));
    const int64_t m = AxesSize(axes);
    std::vector<bool> sent(m), received(m);
    for (const auto& [from, to] : pairs) {
      if (from < 0 || to < 0 || from >= m || to >= m || sent[from] || received[to]) {
        return view_.Misfit("a permute names a device that does not exist, or twice",
                            absl::StrCat("sources and targets in [0,", m, "), each once"),
                            absl::StrCat("(", from, ",", to, ")"));
      }
      sent[from] = received[to] = true;
    }
    std::vector<int64_t> sources, targets;
    for (const std::vector<int64_t>& group : GroupsAsLists(*view_.mesh, axes)) {
      for (const auto& [from, to] : pairs) {
        sources.push_back(group[from]);
        targets.push_back(group[to]);
      }
    }
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue y, Made(builder_.CollectivePermute(
                                                       x.id, sources, targets, NextChannel())));
    l_.emitter().Record(y.id, view_.mesh->num_devices(), 1);
    return y;
  }
  ValueOr Reshard(LocalValue x, const Shape* global, const Sharding* from,
                  const Sharding* to) override {
    SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
    if (global == nullptr || !global->IsArray()) {
      return view_.Misfit("a reshard is asked for without a global shape", "an array's", "none");
    }
    SHARDCALL_ASSIGN_OR_RETURN(from, view_.Checked(from, global, "the value to reshard"));
    SHARDCALL_ASSIGN_OR_RETURN(to, view_.Checked(to, global, "the value to reshard"));
    SHARDCALL_RETURN_IF_ERROR(CheckWhole(to));
    SHARDCALL_RETURN_IF_ERROR(CheckShard(x, global, from, "the value to reshard"));
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    return LocalValue{l_.emitter().Reshard(x.id, global, from, to)};
  }

  absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) override {
    SHARDCALL_RETURN_IF_ERROR(CheckIndex(i, values_.size(), "result"));
    SHARDCALL_RETURN_IF_ERROR(CheckValue(value));
    const Shape* global = view_.results[i];
    const std::string which = absl::StrCat("partition(\"", view_.target, "\") result ", i);
    if (global->IsArray()) {
      SHARDCALL_ASSIGN_OR_RETURN(sharding, view_.Checked(sharding, global, which));
      SHARDCALL_RETURN_IF_ERROR(CheckShard(value, global, sharding, which));
    } else {
      const Shape* have = l_.builder().shape(value.id);
      if (have->bare() != global->bare()) {
        return view_.Misfit(absl::StrCat(which, " is another kind of value"), global->ToString(false),
                            have->ToString(false));
      }
      sharding = nullptr;
    }
    values_[i] = value.id;
    states_[i] = sharding;
    return absl::OkStatus();
  }

  absl::Status CheckAllSet() const {
    for (size_t k = 0; k < values_.size(); ++k) {
      if (values_[k].valid()) continue;
      return view_.Misfit(absl::StrCat("partition(\"", view_.target, "\") set no result ", k),
                          absl::StrCat(values_.size(), " results"), absl::StrCat("none for ", k));
    }
    return absl::OkStatus();
  }
  // Operand i as `sharding`.
  InstrId Fetched(int i, const Sharding* sharding) {
    return l_.Get(sources_[i].first, sources_[i].second, sharding,
                  {CollectiveCause::Kind::kOperand, id_, i});
  }
  // All that the callback did.
  CallbackRecord TakeRecord() {
    NoteMade();
    record_.call = id_;
    record_.results = values_;
    record_.states = states_;
    return std::move(record_);
  }

 private:
  // What was emitted since the last look is the callback's, or is not.
  void NoteMade() {
    const Module& m = l_.local();
    for (; seen_ < m.num_instructions(); ++seen_) {
      if (m.instr(InstrId(seen_)).computation == builder_.computation()) {
        record_.steps.push_back({-1, nullptr, InstrId(seen_)});
      }
    }
    const std::vector<CollectiveRecord>& records = l_.emitter().shared().records;
    for (; records_seen_ < records.size(); ++records_seen_) {
      record_.collectives.push_back(records[records_seen_]);
    }
  }
  void PassOver() {
    seen_ = l_.local().num_instructions();
    records_seen_ = l_.emitter().shared().records.size();
  }

  // A callback's axes are those of the call's mesh; what lies on another base
  // mesh shows as whole.
  const Sharding* At(Decision::States states, int i) const {
    if (i < 0 || i >= static_cast<int>(states.size()) || states[i] == nullptr) return nullptr;
    return states[i]->mesh() == view_.mesh ? states[i] : view_.Replicated(states[i]->rank());
  }
  int64_t NextChannel() { return l_.emitter().shared().next_channel++; }

  ValueOr Made(absl::StatusOr<InstrId> id) const {
    if (!id.ok()) return view_.Misfit(std::string(id.status().message()), "", "");
    return LocalValue{*id};
  }
  ValueOr Collective(absl::StatusOr<InstrId> id, const ReplicaGroups& groups) {
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, Made(std::move(id)));
    l_.emitter().set_cause({CollectiveCause::Kind::kCallback, id_, 0});
    l_.emitter().Record(x.id, groups.group_size, groups.num_groups);
    return x;
  }

  absl::Status CheckDim(const Shape* global, const Sharding* sharding, int dim) const {
    if (global != nullptr && global->IsArray() && sharding != nullptr && dim >= 0 &&
        dim < global->rank() && sharding->rank() == global->rank()) {
      return absl::OkStatus();
    }
    return view_.Misfit("a tile is asked for that is of no array",
                        "an array, a sharding of its rank, and one of its dimensions",
                        absl::StrCat("dimension ", dim));
  }
  absl::Status CheckIndex(int i, size_t size, absl::string_view what) const {
    if (i >= 0 && i < static_cast<int>(size)) return absl::OkStatus();
    return view_.Misfit(absl::StrCat("there is no ", what, " ", i),
                        absl::StrCat("an index below ", size), absl::StrCat(i));
  }
  absl::Status CheckValue(LocalValue x) const {
    const Module& m = l_.local();
    if (x.id.valid() && x.id.value < static_cast<uint32_t>(m.num_instructions()) &&
        m.instr(x.id).computation == builder_.computation()) {
      return absl::OkStatus();
    }
    return view_.Misfit("a value is used that was not made here", "a value of this context",
                        x.id.valid() ? absl::StrCat("number ", x.id.value) : "none");
  }
  // A collective's value, its axes, and the dimension it is about, which must be
  // a multiple of `parts`.
  absl::Status Check(LocalValue x, Axes axes, int dim = -1, int64_t parts = 1) const {
    SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
    SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
    const Shape* shape = l_.builder().shape(x.id);
    if (!shape->IsArray() || dim >= shape->rank() || (dim < 0 && dim != -1)) {
      return view_.Misfit("a collective is about a dimension that the value does not have",
                          absl::StrCat("a dimension of ", shape->ToString(false)),
                          absl::StrCat(dim));
    }
    if (dim >= 0 && shape->dim(dim) % parts != 0) {
      return view_.Misfit(absl::StrCat("dimension ", dim, " is cut in ", parts, " parts"),
                          absl::StrCat("a multiple of ", parts), absl::StrCat(shape->dim(dim)));
    }
    return absl::OkStatus();
  }
  absl::Status CheckAxes(Axes axes) const {
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
  absl::Status CheckWhole(const Sharding* s) const {
    if (s->partial().empty()) return absl::OkStatus();
    return view_.Misfit("a value is asked for as partial", "a sharding without partial axes",
                        s->ToString());
  }
  absl::Status CheckShard(LocalValue x, const Shape* global, const Sharding* s,
                          absl::string_view what) const {
    const Shape* want = LocalShape(l_.context(), global, s);
    const Shape* have = l_.builder().shape(x.id);
    if (want->bare() != have->bare()) {
      return view_.Misfit(absl::StrCat(what, ": the callback chose ", s->ToString()),
                          absl::StrCat("the local shape ", want->ToString(false)),
                          absl::StrCat(have->ToString(false), SwapNote(want, have)));
    }
    if (!s->partial().empty() &&
        IdentityLiteral(l_.context(), MonoidOf(s->partial_op()), global->element_type()) == nullptr) {
      return view_.Misfit(absl::StrCat(what, " cannot be partial"),
                          "an element type that the reduction takes", s->ToString());
    }
    return absl::OkStatus();
  }
  // A local shape in place of a global one: same kind, type and rank.
  absl::Status CheckLike(const Shape* global, const Shape* local, absl::string_view what,
                         size_t k) const {
    if (local != nullptr && local->IsArray() == global->IsArray() &&
        (global->IsArray() ? local->rank() == global->rank() : local->bare() == global->bare())) {
      return absl::OkStatus();
    }
    return view_.Misfit(absl::StrCat("the target is called with another ", what, " ", k),
                        absl::StrCat("a shard of ", global->ToString(false)),
                        local == nullptr ? "no shape" : local->ToString(false));
  }

  Localizer& l_;
  InstrId id_;
  const Decision& decision_;
  CustomCallView view_;
  CheckedBuilder builder_;
  std::vector<std::pair<InstrId, int>> sources_;
  std::vector<InstrId> values_;
  std::vector<const Sharding*> states_;
  CallbackRecord record_;
  int seen_ = 0;             // instructions
  size_t records_seen_ = 0;  // of collectives
};

}  // namespace

absl::Status Localizer::LocalizeCallbacks(InstrId id, const Decision& d) {
  CallbackContext context(*this, id, d);
  const TargetRule* target = rules_.target(id);
  if (callback_memo_ == nullptr) callback_memo_ = std::make_shared<CallbackMemo>();
  std::vector<const Sharding*> states(d.operands.begin(), d.operands.end());
  states.insert(states.end(), d.final.begin(), d.final.end());
  const CallbackMemo::Key key{rules_.kind(id), program_.region_of[id.value],
                              builder().computation(), std::move(states)};
  auto known = callback_memo_->known.find(key);
  const bool for_effect = global_.instr(id).as<CustomCallAttrs>().has_side_effect;
  if (!for_effect && known != callback_memo_->known.end()) {
    const CallbackRecord& record = known->second;
    const std::vector<InstrId> results =
        Replay(record, global_, id, emitter(), [&](int i, const Sharding* sharding) {
          return context.Fetched(i, sharding);
        });
    Decision made = d;
    made.produced = record.states;
    StoreResults(id, made, results);
    return status_;
  }
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
  const CallbackRecord record = context.TakeRecord();
  if (!for_effect && !record.ambiguous) callback_memo_->known.emplace(key, record);
  Decision made = d;
  made.produced = record.states;
  StoreResults(id, made, record.results);
  return status_;
}

}  // namespace shardcall
