// SPDX-License-Identifier: Apache-2.0
// What the examples of targets share: partition a program, show the collectives
// and who asked for them, run it on one thread per device, and compare the
// results with those of one device.
#ifndef SHARDCALL_EXAMPLES_PROVE_H_
#define SHARDCALL_EXAMPLES_PROVE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

inline absl::Status Prove(Module module, const TargetRegistry& targets,
                          const HandlerRegistry& handlers) {
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(module), /*seed=*/1);
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> want, Evaluate(module, inputs, &handlers));

  RunOptions options;
  options.partition.targets = &targets;
  options.handlers = &handlers;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  std::printf("%s", Explain(*program, options.partition.spmd, ExplainFormat::kText).c_str());

  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> got,
                             RunPartitioned(*program, inputs, options, /*communicator=*/nullptr));
  for (size_t k = 0; k < want.size(); ++k) {
    if (!Compare(want[k], got[k], /*exact=*/true).ok) {
      return absl::InternalError("result " + std::to_string(k) + " differs from one device");
    }
  }
  std::printf("equal to one device\n");
  return absl::OkStatus();
}

inline absl::Status Prove(const char* text, const TargetRegistry& targets,
                          const HandlerRegistry& handlers) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(text),
                                         std::make_shared<Context>(), "example", &targets));
  return Prove(std::move(module), targets, handlers);
}

inline int Finish(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace shardcall

#endif  // SHARDCALL_EXAMPLES_PROVE_H_
