// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_started.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/runtime/execute/started_calls.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// What the started call executes, over slots of its own: the operands, then the results.
struct StartData : OpData {
  Step inner;
};

// The call holds its own references to operands and results, so the device may free or overwrite
// its slots in the meantime.
absl::Status RunStart(StepRun& run) {
  const Step& inner = run.data<StartData>().inner;
  auto slots = std::make_shared<std::vector<Tensor>>(inner.operands.size() + inner.results.size());
  for (int k = 0; k < run.num_inputs(); ++k) (*slots)[k] = run.Take(k);
  const int64_t number = run.device().started->Start(
      [slots, &inner, &program = run.program(),
       device = run.device()](Communicator* comm) mutable -> absl::StatusOr<std::vector<Tensor>> {
        device.comm = comm;
        StepRun call(program, device, inner, *slots);
        SHARDCALL_RETURN_IF_ERROR(inner.fn(call));
        std::vector<Tensor> results;
        for (int32_t slot : inner.results) results.push_back(std::move((*slots)[slot]));
        return results;
      });
  run.Set(0, Tensor::IntScalar(ElementType::kS64, number));
  return absl::OkStatus();
}

absl::Status RunDone(StepRun& run) {
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                             run.device().started->Finish(IntElement(run.in(0), 0)));
  SHARDCALL_CHECK(results.size() == static_cast<size_t>(run.num_results()));
  for (size_t k = 0; k < results.size(); ++k) {
    run.Set(static_cast<int>(k), std::move(results[k]));
  }
  return absl::OkStatus();
}

bool Ends(Opcode start, Opcode user) {
  if (const AsyncForms* forms = FormsStartedBy(start)) return user == forms->done;
  return user == Opcode::kAsyncDone || user == Opcode::kAsyncUpdate;
}

bool IsStart(const Module& m, const Instruction& i) {
  return (HasTrait(i.opcode, kCollectiveOp) && FormsStartedBy(i.opcode) != nullptr) ||
         (i.opcode == Opcode::kAsyncStart && WrappedCollective(m, i).valid());
}

// The shape of the collective's results.
const Shape* ResultShape(const Instruction& start) {
  return start.opcode == Opcode::kAllReduceStart ? start.shape : start.shape->tuple()[1];
}

}  // namespace

std::vector<bool> FindStarted(const Module& m, const Computation& comp,
                              const std::vector<uint32_t>& position) {
  std::vector<bool> started;
  for (InstrId id : comp.instructions) {
    if (!IsStart(m, m.instr(id))) continue;
    started.resize(comp.instructions.size());
    break;
  }
  if (started.empty()) return started;
  // Users come later, so going backwards it is known for each instruction whether it leads to an
  // end.
  std::vector<int> ends(started.size()), users(started.size());
  ++users[position[comp.root.value]];
  for (size_t k = started.size(); k-- > 0;) {
    const Instruction& i = m.instr(comp.instructions[k]);
    const bool chain = IsStart(m, i) || i.opcode == Opcode::kAsyncUpdate;
    started[k] = chain && users[k] == 1 && ends[k] == 1;
    for (InstrId operand : m.operands(i)) {
      const uint32_t p = position[operand.value];
      ++users[p];
      if (i.opcode == Opcode::kAsyncUpdate && !started[k]) continue;
      if (Ends(m.instr(operand).opcode, i.opcode)) ++ends[p];
    }
  }
  // An async-update is asynchronous only if its start is.
  for (size_t k = 0; k < started.size(); ++k) {
    const InstrId id = comp.instructions[k];
    if (started[k] && m.instr(id).opcode == Opcode::kAsyncUpdate) {
      started[k] = started[position[m.operands(id)[0].value]];
    }
  }
  return started;
}

absl::Status LowerStart(const LowerContext& context, absl::Span<const int32_t> operands,
                        int32_t number, Step* step) {
  const Module& m = context.module;
  const Instruction& i = context.instr;
  if (i.opcode != Opcode::kAllReduceStart && (!i.shape->IsTuple() || i.shape->tuple().size() < 2)) {
    return context.Error("E311", "an asynchronous start must have a tuple of operands and results");
  }
  auto data = std::make_unique<StartData>();
  Step& inner = data->inner;
  inner.name = step->name;
  const InstrId wrapped = i.opcode == Opcode::kAsyncStart ? WrappedCollective(m, i) : context.id;
  inner.opcode = m.instr(wrapped).opcode;
  if (wrapped == context.id) {
    for (int32_t slot : operands) step->operands.push_back({slot, false});
  } else {  // parameters are arrays, so leaves and operands are the same
    for (InstrId id : m.operands(wrapped)) {
      const auto at = static_cast<size_t>(m.instr(id).as<ParameterAttrs>().number);
      if (at >= operands.size()) {
        return context.Error("E311", "the called computation does not fit the operands");
      }
      step->operands.push_back({operands[at], false});
    }
  }
  int32_t slot = 0;
  for (size_t k = 0; k < step->operands.size(); ++k) inner.operands.push_back({slot++, true});
  const Shape& result = *ResultShape(i);
  for (int k = 0; k < result.num_leaves(); ++k) {
    inner.shapes.push_back(MakeLeafShape(*result.leaf(k)));
    inner.results.push_back(slot++);
  }
  SHARDCALL_RETURN_IF_ERROR(LowerByOpcode(LowerContext(m, context.options, wrapped), &inner));
  step->results = {number};
  step->shapes = {LeafShape{ElementType::kS64, {}, {}}};
  step->fn = RunStart;
  step->data = std::move(data);
  return absl::OkStatus();
}

void LowerDone(int32_t number, Step* step) {
  step->operands = {{number, false}};
  step->fn = RunDone;
  step->data = std::make_unique<OpData>();
}

}  // namespace internal
}  // namespace shardcall
