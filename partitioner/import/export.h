// SPDX-License-Identifier: Apache-2.0
// Decided shardings back into a module, so that the text of one stage is the
// input of the next: importing it again without propagation gives the same
// program, with every constraint closed. Base meshes, which sharding texts do
// not show, stand in the header's frontend attribute `shardcall.meshes`.
#ifndef SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_
#define SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ExportOptions {
  // `sharding=` in the named form, {mesh['data'=4], [{'data'}]}, not in V2.
  bool named = false;
  // Keep what the header allows propagation to set; else nothing may be set.
  bool keep_propagation_flags = true;
};

// The imported module with `sharding={..}` on every instruction, and with the
// `xla.sdy.*` shardings rewritten where the program had such. `by_leaf` has an
// entry per leaf of program.leaves; null where there is nothing to say (tokens).
// E164 for what text cannot say (a value partial by an operation other than
// sum, maximum and minimum).
absl::StatusOr<Module> ExportShardings(const Program& program,
                                       absl::Span<const Sharding* const> by_leaf,
                                       const ExportOptions& options = {});

// `attributes` without the annotations of any stage (`xla.sdy.*`,
// `shardcall.*`): null if nothing is left.
const FrontendAttributes* WithoutSdy(Context& context, const FrontendAttributes* attributes);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_
