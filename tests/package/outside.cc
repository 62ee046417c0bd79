// SPDX-License-Identifier: Apache-2.0
// A user's program: a target of its own, its rule proven, and a program with it
// partitioned and run over four devices.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace {

using shardcall::BufferView;

absl::Status Double(const shardcall::HandlerContext&, absl::Span<const BufferView> in,
                    absl::Span<const BufferView> out) {
  if (in[0].dims != out[0].dims) return absl::InvalidArgumentError("shapes differ");
  for (int64_t i = 0; i < in[0].num_elements(); ++i) {
    static_cast<float*>(out[0].data)[i] = 2 * static_cast<const float*>(in[0].data)[i];
  }
  return absl::OkStatus();
}

constexpr char kProgram[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[6,4] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[6,4] custom-call(x), custom_call_target="double", api_version=API_VERSION_TYPED_FFI
}
)";

absl::Status Run() {
  shardcall::TargetRegistry targets;
  shardcall::HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterRule("double", {.rule = "... -> ..."}));
  SHARDCALL_RETURN_IF_ERROR(handlers.Register({.target = "double", .host = Double}));
  SHARDCALL_ASSIGN_OR_RETURN(const auto calls,
                             shardcall::CallsOfTarget("double", targets, handlers));
  SHARDCALL_ASSIGN_OR_RETURN(
      const shardcall::RuleCheck check,
      shardcall::CheckRule(calls, 0, {.targets = &targets, .handlers = &handlers}));
  std::printf("rule: %s\n", std::string(shardcall::RuleVerdictName(check.verdict)).c_str());

  SHARDCALL_ASSIGN_OR_RETURN(shardcall::Module module,
                             shardcall::ParseModule(std::make_shared<const std::string>(kProgram),
                                                    std::make_shared<shardcall::Context>(), "m"));
  shardcall::RunOptions options;
  options.handlers = &handlers;
  options.partition.targets = &targets;
  SHARDCALL_ASSIGN_OR_RETURN(const shardcall::VerifyResult result,
                             shardcall::Verify(std::move(module), options, 0, {}, nullptr));
  std::printf("devices: %d, %s\n", static_cast<int>(result.num_partitions),
              result.status == shardcall::VerifyResult::Status::kOk ? "ok" : "mismatch");
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
