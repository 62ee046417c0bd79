// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/manual_computation.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/xla/for_xla.h"
#include "shardcall/partitioner/bindings/xla/manual_edge.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/build/embed.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

absl::Status Refused(absl::string_view what) {
  return ToStatus({.code = "E336",
                   .message = absl::StrCat("the program has ", what),
                   .expected = "arrays of even shards, and one tuple of them as the result",
                   .fix = "Compile the function with one parameter for each array, and shard "
                          "dimensions over axes that divide them"});
}

class Writer {
 public:
  Writer(const LocalProgram& local, ManualEdge& edge)
      : local_(local),
        from_(local.module),
        context_(local.module.context()),
        edge_(edge),
        to_(local.module.shared_context()) {}

  absl::StatusOr<Module> Write() && {
    to_.header = from_.header;
    const CompId body = EmbedComputations(from_, &to_);
    NameOrders();
    FreeName("main");
    SHARDCALL_RETURN_IF_ERROR(edge_.Start(body, &to_));
    const CompId entry = AddNamedComputation("main", &to_);
    to_.set_entry(entry);
    MonoidTable monoids(&to_);
    GraphBuilder b(&to_, entry, &monoids);
    b.set_value_numbering(false);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> shards, Parameters(&b));
    const InstrId call = b.Call(body, shards);
    Instruction& instr = to_.mutable_instr(call);
    instr.frontend = import_internal::WithAttribute(context_, nullptr, "inlineable", "false");
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId root, Result(call, &b));
    b.SetRoot(root);
    return std::move(to_);
  }

 private:
  // Gives each control dependency as a call, of which XLA's compiler makes one again. StableHLO has
  // none, so that it would be lost on the way.
  void NameOrders() {
    CustomCallAttrs attrs;
    attrs.target = KnownTargetText(KnownTarget::kControlDep);
    attrs.has_side_effect = true;
    attrs.api_version = kTypedFfiCall;
    Instruction call;
    call.opcode = Opcode::kCustomCall;
    call.shape = context_.MakeTuple({});
    call.attrs = InternAttributes(context_, attrs);
    for (int k = 0, n = to_.num_instructions(); k < n; ++k) {
      const InstrId after(k);
      if (to_.rare(to_.instr(after)) == nullptr) continue;
      const std::vector<InstrId> all =
          std::exchange(to_.mutable_rare(after).control_predecessors, {});
      for (InstrId before : all) {
        const InstrId first = ArrayOf(before), second = ArrayOf(after);
        if (!first.valid() || !second.valid()) continue;
        to_.Add(to_.instr(after).computation, call, {first, second});
      }
    }
  }

  // A value that stands for the instruction in a call with one operand for it: StableHLO has an
  // operand for each element of a tuple. A start is one value there. Invalid if there is no array.
  InstrId ArrayOf(InstrId id) {
    const AsyncForms* const forms = FormsStartedBy(to_.instr(id).opcode);
    if (forms != nullptr) return forms->start == forms->whole ? InstrId() : id;
    while (to_.instr(id).shape->IsTuple()) {
      const absl::Span<const Shape* const> elements = to_.instr(id).shape->tuple();
      const auto element = absl::c_find_if(elements, HasArray);
      if (element == elements.end()) return InstrId();
      MonoidTable monoids(&to_);
      GraphBuilder b(&to_, to_.instr(id).computation, &monoids);
      id = b.GetTupleElement(id, element - elements.begin());
    }
    return to_.instr(id).shape->IsArray() ? id : InstrId();
  }

  // Renames the computation of that name, if there is one. XLA calls the entry main, and numbers it
  // if the name is taken; the framework then does not find it.
  void FreeName(absl::string_view name) {
    absl::flat_hash_set<absl::string_view> taken;
    for (int c = 0; c < to_.num_computations(); ++c) taken.insert(to_.comp(CompId(c)).name);
    if (!taken.contains(name)) return;
    std::string free;
    for (int k = 1; free.empty() || taken.contains(free); ++k) free = absl::StrCat(name, ".", k);
    for (int c = 0; c < to_.num_computations(); ++c) {
      Computation& comp = to_.mutable_comp(CompId(c));
      if (comp.name == name) comp.name = context_.Intern(free);
    }
  }

  // `shape` with the dimensions of the global shape, and its own layout.
  const Shape* WithWholeDims(const Shape* shape, const Shape* whole) {
    return shape->IsArray() ? context_.WithDims(shape, whole->dims()) : shape;
  }
  absl::StatusOr<const Shape*> Whole(const Shape* shard, const LocalState* state,
                                     const Shape* whole) {
    if (shard->IsTuple()) return Refused("a tuple among its parameters, or within its result");
    for (int d = 0; shard->IsArray() && !state->sharding->is_maximal() && d < shard->rank(); ++d) {
      if (shard->dim(d) * AxesSize(state->sharding->dim(d)) == whole->dim(d)) continue;
      return Refused(absl::StrCat("a parameter or result ", whole->bare()->ToString(),
                                  " whose shards are not even"));
    }
    return WithWholeDims(shard, whole);
  }

  absl::StatusOr<std::vector<InstrId>> Parameters(GraphBuilder* b) {
    std::vector<InstrId> wholes;
    std::vector<const Shape*> shapes;
    std::vector<const Shape*>& layouts = to_.header.entry_parameter_layouts;
    for (InstrId p : from_.comp(from_.entry()).parameters) {
      const Instruction& old = from_.instr(p);
      const size_t k = wholes.size();
      SHARDCALL_ASSIGN_OR_RETURN(
          const Shape* whole, Whole(old.shape, local_.parameters[k], local_.parameter_shapes[k]));
      wholes.push_back(b->Parameter(static_cast<int64_t>(k), whole));
      to_.mutable_instr(wholes.back()).metadata = old.metadata;
      shapes.push_back(old.shape);
      if (!layouts.empty()) layouts[k] = WithWholeDims(layouts[k], whole);
    }
    return edge_.Enter(wholes, shapes, b);
  }

  absl::StatusOr<InstrId> Result(InstrId call, GraphBuilder* b) {
    // The edge may give the results of the call other shapes.
    const Shape* shape = from_.instr(from_.comp(from_.entry()).root).shape;
    const Shape*& layout = to_.header.entry_result_layout;
    const bool tuple = shape->IsTuple();
    std::vector<InstrId> shards;
    std::vector<const Shape*> wholes, layouts;
    for (size_t k = 0; k < (tuple ? shape->tuple().size() : 1); ++k) {
      const Shape* leaf = tuple ? shape->tuple()[k] : shape;
      SHARDCALL_ASSIGN_OR_RETURN(const Shape* whole,
                                 Whole(leaf, local_.outputs[k], local_.output_shapes[k]));
      shards.push_back(tuple ? b->GetTupleElement(call, static_cast<int64_t>(k)) : call);
      wholes.push_back(whole);
      if (layout == nullptr) continue;
      layouts.push_back(WithWholeDims(tuple ? layout->tuple()[k] : layout, whole));
    }
    if (layout != nullptr) layout = tuple ? context_.MakeTuple(layouts) : layouts[0];
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> results, edge_.Leave(shards, wholes, b));
    return tuple ? b->Tuple(results) : results[0];
  }

  const LocalProgram& local_;
  const Module& from_;
  Context& context_;
  ManualEdge& edge_;
  Module to_;
};

}  // namespace

absl::StatusOr<ManualComputation> AsManualComputation(const LocalProgram& local,
                                                      absl::string_view platform) {
  std::unique_ptr<ManualEdge> edge = MakeShardyEdge(local);
  const bool shardy = edge != nullptr;
  if (!shardy) edge = MakeGspmdEdge(local);
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Writer(local, *edge).Write());
  SHARDCALL_ASSIGN_OR_RETURN(std::optional<Module> for_xla, ForXla(module, platform));
  if (for_xla.has_value()) module = *std::move(for_xla);
  return ManualComputation{std::move(module), shardy};
}

}  // namespace shardcall
