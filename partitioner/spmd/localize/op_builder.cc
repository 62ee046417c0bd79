// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/op_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/equal_values.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The result, or a part of the result, of an asynchronous op whose elements these are, all of them
// in order: what ends the op takes its result itself, not a tuple that is made anew.
InstrId AsyncResult(const Module& m, absl::Span<const InstrId> elements) {
  const auto is_element = [&](InstrId id) {
    return m.instr(id).opcode == Opcode::kGetTupleElement;
  };
  if (elements.empty() || !is_element(elements[0])) return InstrId();
  const InstrId result = m.operand(elements[0], 0);
  for (size_t k = 0; k < elements.size(); ++k) {
    if (!is_element(elements[k]) || m.operand(elements[k], 0) != result ||
        m.instr(elements[k]).as<TupleIndexAttrs>().index != static_cast<int64_t>(k)) {
      return InstrId();
    }
  }
  InstrId op = result;
  while (is_element(op)) op = m.operand(op, 0);
  const bool whole = m.instr(result).shape->tuple().size() == elements.size();
  return whole && HasTrait(m.instr(op).opcode, kAsyncForm) ? result : InstrId();
}

}  // namespace

OpBuilder::OpBuilder(const Program& program, RuleTable& rules, const SpmdOptions& options,
                     Module* local)
    : program_(program),
      rules_(rules),
      options_(options),
      local_(*local),
      shared_(local),
      whole_copies_(program, local) {}

void OpBuilder::StartComputation(CompId computation) {
  emitter_ = std::make_unique<Emitter>(&local_, computation, program_.mesh, &shared_);
}

void OpBuilder::CheckBytes(double bytes, absl::FunctionRef<std::string()> what) {
  if (bytes <= static_cast<double>(options_.max_reshard_bytes)) return;
  Diagnostic d;
  d.code = "E210";
  d.message = absl::StrCat(what(), " moves ", bytes, " bytes per device");
  d.expected = absl::StrCat("at most ", options_.max_reshard_bytes);
  d.found = absl::StrCat(bytes);
  d.fix = "constrain the value at its producer, or raise --max-reshard-bytes";
  Fail(ToStatus(d));
}

InstrId OpBuilder::ReshardInCall(const CollectiveCause& cause, InstrId x, const Shape* global,
                                 const Sharding* from, const Sharding* to) {
  if (from == to) return x;
  CheckBytes(PlanReshard(context(), global, from, to).bytes, [&] {
    return absl::StrCat("a reshard of a value within %", program_.module.instr(cause.consumer).name,
                        " from ", from->ToString(), " to ", to->ToString());
  });
  emitter().set_cause(cause);
  return emitter().Reshard(x, global, from, to);
}

LocalIds OpBuilder::Flatten(InstrId value) {
  LocalIds out;
  const Shape* shape = builder().shape(value);
  if (!shape->IsTuple()) return {value};
  for (size_t k = 0; k < shape->tuple().size(); ++k) {
    const LocalIds inner = Flatten(builder().GetTupleElement(value, static_cast<int64_t>(k)));
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

InstrId OpBuilder::Assemble(const Shape* global_shape, absl::Span<const InstrId> leaves) {
  if (!global_shape->IsTuple()) return leaves[0];
  LocalIds elements;
  size_t at = 0;
  for (const Shape* e : global_shape->tuple()) {
    elements.push_back(Assemble(e, leaves.subspan(at, e->num_leaves())));
    at += e->num_leaves();
  }
  const InstrId result = AsyncResult(local(), elements);
  return result.valid() ? result : builder().Tuple(elements);
}

const Shape* OpBuilder::ShapeFromLeaves(const Shape* like, absl::Span<const Shape* const> leaves) {
  if (!like->IsTuple()) return leaves[0];
  absl::InlinedVector<const Shape*, 6> elements;
  size_t at = 0;
  for (const Shape* e : like->tuple()) {
    elements.push_back(ShapeFromLeaves(e, leaves.subspan(at, e->num_leaves())));
    at += e->num_leaves();
  }
  return context().MakeTuple(elements);
}

const Attributes* OpBuilder::LocalAttributes(const LocalOp& op) {
  return MapComputations(global(), op.instr, [&](CompId c) { return CopyComputation(c); });
}

LocalIds OpBuilder::Clone(const LocalOp& op, absl::Span<const InstrId> operands,
                          const Attributes* attrs) {
  Instruction copy = op.instr;
  copy.sharding = nullptr;
  copy.frontend = WithoutSdy(context(), op.instr.frontend);
  copy.attrs = attrs != nullptr ? attrs : LocalAttributes(op);
  copy.extra = -1;
  copy.shape = ShapeFromLeaves(op.instr.shape, op.result_shapes);
  const InstrId id = local().Add(builder().computation(), copy, operands);
  return Flatten(id);
}

const ReadRows* OpBuilder::RowsRead(InstrId sort) {
  if (!read_rows_.has_value()) read_rows_ = ReadRowsOfSorts(global(), EqualValues(global()));
  const auto found = read_rows_->find(sort);
  return found == read_rows_->end() ? nullptr : &found->second;
}

CompId OpBuilder::AddBranch(absl::string_view name, const Shape* parameter,
                            absl::FunctionRef<LocalIds(const LocalIds&)> make) {
  const Metadata* metadata = builder().metadata();
  const CompId branch = local().AddComputation(name);
  std::unique_ptr<Emitter> outer = std::move(emitter_);
  emitter_ = std::make_unique<Emitter>(&local_, branch, program_.mesh, &shared_);
  builder().set_metadata(metadata);
  const LocalIds results = make(Flatten(builder().Parameter(0, parameter)));
  builder().SetRoot(builder().Tuple(results));
  emitter_ = std::move(outer);
  return branch;
}

LocalIds AssembleOperands(OpBuilder& ops, const LocalOp& op) {
  LocalIds out;
  size_t at = 0;
  for (InstrId o : ops.global().operands(op.id)) {
    const Shape* shape = ops.global().instr(o).shape;
    out.push_back(
        ops.Assemble(shape, absl::MakeConstSpan(op.operands).subspan(at, shape->num_leaves())));
    at += shape->num_leaves();
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
