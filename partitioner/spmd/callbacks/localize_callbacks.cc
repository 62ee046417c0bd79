// SPDX-License-Identifier: Apache-2.0
// Calls whose target has a partition callback. The callback runs once for equal calls, and is
// replayed for the others.
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status AskAuthor(const CustomCallView& call, absl::string_view what,
                       absl::FunctionRef<absl::Status()> ask) {
  std::string failed;
  absl::StatusCode code = absl::StatusCode::kInternal;
  try {
    const absl::Status status = ask();
    if (!DiagnosticCode(status).empty()) {
      return In(status,
                absl::StrCat("the ", what, " of \"", call.target, "\", %", call.instruction));
    }
    if (status.ok()) return status;
    failed = FailedText(status.message());
    code = status.code();
  } catch (const std::exception& thrown) {
    failed = absl::StrCat("threw: ", thrown.what());
  } catch (...) {
    failed = "threw";
  }
  return ToStatus({.code = "E121",
                   .message = absl::StrCat(what, " of \"", call.target, "\" (%", call.instruction,
                                           ") ", failed),
                   .fix = absl::StrCat("correct the target's ", what)},
                  code);
}

absl::Status Localizer::VerifyCallbacks() {
  const InstrId first = ops_.unverified();
  if (!first.valid()) return absl::OkStatus();
  const absl::Status status = VerifyModule(local(), "the local program");
  if (status.ok()) return status;
  const CustomCallView view =
      ViewCustomCall(global_, first, program_.mesh, program_.manual_axes(first));
  return view.Misfit(absl::StrCat("what its callback, or one behind it, built does not verify: ",
                                  status.message()),
                     "", "");
}

absl::Status Localizer::LocalizeCallbacks(InstrId id, const Decision& d) {
  std::vector<std::pair<InstrId, int>> leaves;  // of the operands
  for (InstrId o : global_.operands(id)) {
    for (int k = 0; k < global_.instr(o).shape->num_leaves(); ++k) leaves.push_back({o, k});
  }
  const auto operand = [&](int i, const Sharding* sharding) {
    return Get(leaves[i].first, leaves[i].second, sharding,
               {CollectiveCause::Kind::kOperand, id, i});
  };
  emitter().set_cause({CollectiveCause::Kind::kCallback, id, 0});
  CallbackContext context(ops_, id, d, operand);
  if (callback_memo_ == nullptr) callback_memo_ = std::make_shared<CallbackMemo>();
  std::vector<const Sharding*> states(d.operands.begin(), d.operands.end());
  states.insert(states.end(), d.final.begin(), d.final.end());
  const CallbackMemo::Key key{ops_.rules().kind(id), program_.region_of[id.value],
                              builder().computation(), std::move(states)};
  auto known = callback_memo_->known.find(key);
  const bool for_effect = global_.instr(id).as<CustomCallAttrs>().has_side_effect;
  if (!for_effect && known != callback_memo_->known.end()) {
    const CallbackRecord& record = known->second;
    const std::vector<InstrId> results = Replay(record, global_, id, emitter(), operand);
    Decision made = d;
    made.produced = record.states;
    StoreResults(id, made, results);
    return ops_.status();
  }
  SHARDCALL_RETURN_IF_ERROR(AskAuthor(context.call(), "partition callback", [&] {
    return ops_.rules().target(id)->callbacks.partition(context);
  }));
  SHARDCALL_RETURN_IF_ERROR(context.CheckAllSet());
  if (context.structure_open()) ops_.NoteUnverified(id);
  const CallbackRecord record = context.TakeRecord();
  if (!for_effect && !record.ambiguous) callback_memo_->known.emplace(key, record);
  Decision made = d;
  made.produced = record.states;
  StoreResults(id, made, record.results);
  return ops_.status();
}

}  // namespace internal
}  // namespace shardcall
