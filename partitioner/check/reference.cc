// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/reference.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/rules/resize.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/made_once.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ManyDims = std::vector<std::vector<int64_t>>;

absl::StatusOr<Module> Resized(const std::string& hlo, const ManyDims& dims,
                               const TargetRegistry* targets) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(hlo),
                                         std::make_shared<Context>(), "reference", targets));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "reference"));
  return ResizeModule(std::move(module), dims, targets);
}

// Caches programs by the dims of their operands; a check runs a few programs many times.
class ReferencePrograms {
 public:
  ReferencePrograms(std::string hlo, const TargetRegistry* targets, const HandlerRegistry* handlers)
      : hlo_(std::move(hlo)), targets_(targets), handlers_(handlers) {}

  absl::Status Run(absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
    ManyDims dims;
    for (const BufferView& v : operands) dims.push_back(v.dims);
    SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceProgram> program,
                               programs_.GetOrMake(dims, [&] { return Make(dims); }));
    std::vector<Tensor> inputs;
    for (const BufferView& v : operands) {
      inputs.push_back(Tensor::FromBytes(v.type, v.dims, v.data));
    }
    DeviceContext device;
    device.handlers = handlers_;
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                               Execute(*program, std::move(inputs), device));
    if (out.size() != results.size()) {
      return Differs("number of results", absl::StrCat(out.size()), absl::StrCat(results.size()));
    }
    for (size_t r = 0; r < out.size(); ++r) {
      const Dims have(results[r].dims.begin(), results[r].dims.end());
      if (out[r].type() != results[r].type || out[r].dims() != have) {
        return Differs(absl::StrCat("shape of result ", r), TypeAndDims(out[r]),
                       results[r].ToString());
      }
      if (out[r].byte_size() > 0) {
        std::memcpy(results[r].data, out[r].data(), static_cast<size_t>(out[r].byte_size()));
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Differs(std::string what, std::string expected, std::string found) {
    return ToStatus({.code = "E115",
                     .message = absl::StrCat("the reference gives another ", what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Call the target as its reference is written"});
  }

  absl::StatusOr<std::shared_ptr<const DeviceProgram>> Make(const ManyDims& dims) const {
    SHARDCALL_ASSIGN_OR_RETURN(const Module module, Resized(hlo_, dims, targets_));
    return Lower(module);
  }

  static constexpr size_t kMostPrograms = 256;
  const std::string hlo_;
  const TargetRegistry* targets_;
  const HandlerRegistry* handlers_;
  MadeOnce<ManyDims, std::shared_ptr<const DeviceProgram>> programs_{kMostPrograms};
};

}  // namespace

absl::Status RegisterPartitionLike(std::string target, std::string hlo, TargetRegistry* targets,
                                   std::string source) {
  SHARDCALL_ASSIGN_OR_RETURN(RuleAlternative rule, RuleOfReference(hlo, *targets));
  SHARDCALL_RETURN_IF_ERROR(targets->RegisterRules(target, {std::move(rule)}, "", source));
  return targets->RegisterReference(std::move(target), std::move(hlo));
}

absl::StatusOr<CheckRegistries> RegistriesForCheck(const std::string& target,
                                                   const TargetRegistry& targets,
                                                   const HandlerRegistry& handlers) {
  CheckRegistries out{handlers, std::nullopt};
  const TargetFacts* facts = targets.Facts(target);
  if (facts == nullptr || facts->reference == nullptr) return out;
  SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry,
                             ReferenceHandler(target, *facts->reference, &targets, &handlers));
  HandlerRegistry* into = &out.handlers;
  if (handlers.Find(target, "Host").ok()) into = &out.reference.emplace();
  SHARDCALL_RETURN_IF_ERROR(into->Register(std::move(entry)));
  return out;
}

absl::StatusOr<HandlerEntry> ReferenceHandler(absl::string_view target, const std::string& hlo,
                                              const TargetRegistry* targets,
                                              const HandlerRegistry* handlers) {
  auto programs = std::make_shared<ReferencePrograms>(hlo, targets, handlers);
  HandlerEntry entry;
  entry.target = std::string(target);
  entry.source = "reference";
  entry.host = [programs](const HandlerContext&, absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results) {
    return programs->Run(operands, results);
  };
  return entry;
}

}  // namespace shardcall
