// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/pass.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/rewrite.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {

absl::StatusOr<PassResult> RunPipeline(Module module,
                                       const std::vector<std::unique_ptr<Pass>>& passes,
                                       const PipelineOptions& options) {
  PassResult all(std::move(module));
  for (int i = 0; i < all.module.num_instructions(); ++i) all.moved_to.push_back(InstrId(i));
  for (int c = 0; c < all.module.num_computations(); ++c) all.comp_moved_to.push_back(CompId(c));
  for (const auto& pass : passes) {
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    SHARDCALL_ASSIGN_OR_RETURN(PassResult step, pass->Run(all.module));
    if (step.changed) Follow(std::move(step), &all);
    if (options.verify) {
      const absl::Status status = VerifyModule(all.module, "");
      if (!status.ok()) {
        return absl::InternalError(
            absl::StrCat("after pass ", pass->name(), ": ", std::string(status.message())));
      }
    }
    if (options.dump) options.dump(pass->name(), all.module);
  }
  return all;
}

}  // namespace shardcall
