// SPDX-License-Identifier: Apache-2.0
// Calls of the target itself, and programs in HLO text, in the local program.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/splice.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether the text is one dictionary in braces, with matching braces and quotes.
bool IsDictionary(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    if (quoted) {
      if (text[k] == '\\')
        ++k;
      else if (text[k] == '"')
        quoted = false;
      continue;
    }
    quoted = text[k] == '"';
    depth += (text[k] == '{') - (text[k] == '}');
    if (depth <= 0) return depth == 0 && k > 0 && k + 1 == text.size() && text[k] == '}';
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<LocalValue>> CallbackContext::CallTarget(
    absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) {
  return Call(ops_.global().instr(id_), operands, results);
}

absl::StatusOr<std::vector<LocalValue>> CallbackContext::CallTargetWith(
    absl::string_view backend_config, absl::Span<const LocalValue> operands,
    absl::Span<const Shape* const> results) {
  if (view_.api_version == 4 && !IsDictionary(backend_config)) {
    return view_.Misfit("the target is called with a backend_config that is no dictionary",
                        "{key = value, ..}", std::string(backend_config));
  }
  Instruction instr = ops_.global().instr(id_);
  instr.backend_config = ops_.context().arena().Copy(backend_config);
  return Call(instr, operands, results);
}

absl::StatusOr<std::vector<LocalValue>> CallbackContext::Call(
    const Instruction& instr, absl::Span<const LocalValue> operands,
    absl::Span<const Shape* const> results) {
  if (results.size() != view_.results.size() || operands.size() != view_.operands.size()) {
    return view_.Misfit("the target is called with another number of operands or results",
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
  for (InstrId v : kCustomCallStrategy.emit(ops_, op)) out.push_back({v});
  return out;
}

absl::StatusOr<std::vector<LocalValue>> CallbackContext::AddProgram(
    absl::string_view hlo, absl::Span<const LocalValue> operands) {
  std::vector<InstrId> ids;
  for (LocalValue x : operands) {
    SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
    ids.push_back(x.id);
  }
  const std::string file = absl::StrCat("program of ", view_.target);
  const TargetShapes* shapes = ops_.rules().shapes();
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(hlo),
                                         ops_.local().shared_context(), file, shapes));
  const int64_t n = ops_.program().num_partitions;
  if (module.header.has_num_partitions && module.header.num_partitions != n) {
    return view_.Misfit("the local program is for another number of devices", absl::StrCat(n),
                        absl::StrCat(module.header.num_partitions));
  }
  module.header.num_partitions = n;
  module.header.has_num_partitions = true;
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, file, shapes));
  SHARDCALL_ASSIGN_OR_RETURN(const SpliceResult spliced,
                             Splice(module, ids, builder_.metadata(), &ops_.shared().next_channel,
                                    &ops_.local(), ops_.builder().computation()));
  ops_.emitter().set_cause(cause_);
  for (InstrId c : spliced.collectives) ops_.emitter().RecordAsWritten(c, n);
  std::vector<LocalValue> out;
  for (InstrId leaf : ops_.Flatten(spliced.root)) out.push_back({leaf});
  return out;
}

}  // namespace internal
}  // namespace shardcall
