// SPDX-License-Identifier: Apache-2.0
// Copies of computations that run whole on a device: those of reduce or sort, and of ops that one
// device runs. They are copied without sharding annotations.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_WHOLE_COPIES_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_WHOLE_COPIES_H_

#include <memory>

#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall {
inline namespace internal {

class WholeCopies {
 public:
  WholeCopies(const Program& program, Module* local) : program_(program), local_(*local) {}
  // The local copy of a computation and of its callees, made on first use.
  CompId Of(CompId global);

 private:
  void Copy(CompId comp);  // its callees are copied already

  const Program& program_;
  Module& local_;
  std::unique_ptr<ModuleCloner> cloner_;  // as large as the program; made when first needed
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_WHOLE_COPIES_H_
