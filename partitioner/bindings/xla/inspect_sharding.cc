// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"

#include <cstring>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/synchronized.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
namespace {

constexpr absl::string_view kTarget = "InspectSharding";

// The content of the callback's 16 bytes.
struct Callback {
  Shardcall_InspectSharding* call;
  void* data;
};
static_assert(sizeof(Callback) == 16);

// The callbacks that are alive. One set per process, since a program refers to a callback only by
// those bytes.
Synchronized<std::multiset<std::string>>& Living() {
  return MadeAtFirstUse([] { return new Synchronized<std::multiset<std::string>>; });
}

void FreeText(Shardcall_InspectShardingArgs* args) {
  delete static_cast<std::string*>(args->error_scratch);
}

// Has the signature of XLA's callback: `data` is an InspectShardingCallback::Function.
void CallFunction(void* data, Shardcall_InspectShardingArgs* args) {
  absl::Status status;
  try {
    status = (*static_cast<InspectShardingCallback::Function*>(data))(
        {args->sharding_spec, args->sharding_spec_size});
  } catch (const std::exception& e) {
    status = absl::InternalError(absl::StrCat("it threw: ", e.what()));
  } catch (...) {
    status = absl::InternalError("it threw");
  }
  if (status.ok()) return;
  auto* text = new std::string(status.message());
  args->error_scratch = text;
  args->error_txt = text->data();
  args->free_error = FreeText;
}

absl::Status PassOn(PartitionContext& context) {
  if (context.call().results.empty()) return absl::OkStatus();
  if (context.call().operands.size() != 1 || context.call().results.size() != 1) {
    return absl::InvalidArgumentError("it takes one array, and gives it back or nothing");
  }
  const Sharding* sharding = context.operand_sharding(0);
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, context.Operand(0, sharding));
  return context.SetResult(0, x, sharding);
}

absl::Status Inspect(PartitionContext& context) {
  SHARDCALL_RETURN_IF_ERROR(PassOn(context));
  const std::string config(context.call().backend_config);
  if (!Living().Lock()->contains(config)) return absl::OkStatus();
  if (context.call().operands.size() != 1 || context.operand_sharding(0) == nullptr) {
    return absl::InvalidArgumentError("it takes one array");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding sharding,
                             ToHloSharding(*context.operand_sharding(0)));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string bytes, WriteShardingProto(sharding));
  Callback callback;
  std::memcpy(&callback, config.data(), sizeof callback);
  if (callback.call == nullptr) return absl::InvalidArgumentError("its function is null");
  Shardcall_InspectShardingArgs args = {};
  args.sharding_spec = bytes.data();
  args.sharding_spec_size = bytes.size();
  callback.call(callback.data, &args);
  if (args.error_txt == nullptr) return absl::OkStatus();
  absl::Status failed = absl::InternalError(args.error_txt);
  if (args.free_error != nullptr) args.free_error(&args);
  return failed;
}

}  // namespace

std::string EncodeInspectShardingCallback(Shardcall_InspectSharding* function, void* data) {
  const Callback callback = {function, data};
  std::string bytes(sizeof callback, '\0');
  std::memcpy(bytes.data(), &callback, sizeof callback);
  Living().Lock()->insert(bytes);
  return bytes;
}

InspectShardingCallbacksOf::InspectShardingCallbacksOf(const Module& module) {
  for (int id = 0; id < module.num_instructions(); ++id) {
    const Instruction& i = module.instr(InstrId(id));
    if (i.opcode != Opcode::kCustomCall || i.as<CustomCallAttrs>().target != kTarget) continue;
    if (i.backend_config.size() == sizeof(Callback)) encoded_.emplace_back(i.backend_config);
  }
  Living().Lock()->insert(encoded_.begin(), encoded_.end());
}

InspectShardingCallbacksOf::~InspectShardingCallbacksOf() {
  for (const std::string& bytes : encoded_) ForgetInspectShardingCallback(bytes);
}

bool ForgetInspectShardingCallback(absl::string_view backend_config) {
  const auto living = Living().Lock();
  const auto it = living->find(std::string(backend_config));
  if (it == living->end()) return false;
  living->erase(it);
  return true;
}

InspectShardingCallback::InspectShardingCallback(Function function)
    : function_(std::make_unique<Function>(std::move(function))) {
  backend_config_ = EncodeInspectShardingCallback(CallFunction, function_.get());
}

InspectShardingCallback::InspectShardingCallback(Shardcall_InspectSharding* function, void* data)
    : backend_config_(EncodeInspectShardingCallback(function, data)) {}

InspectShardingCallback::~InspectShardingCallback() {
  SHARDCALL_CHECK(ForgetInspectShardingCallback(backend_config_));
}

absl::Status RegisterInspectSharding(TargetRegistry& registry) {
  PartitionerCallbacks callbacks;
  callbacks.partition = Inspect;
  callbacks.can_side_effecting_have_replicated_sharding = true;
  callbacks.infer_sharding_from_operands = [](const CustomCallView& call,
                                              absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    if (operands.empty()) return absl::InvalidArgumentError("it takes one array");
    return std::vector<const Sharding*>(call.results.size(), operands[0]);
  };
  return registry.RegisterCustomCallPartitioner(std::string(kTarget), std::move(callbacks), "",
                                                "built in");
}

}  // namespace shardcall
