// SPDX-License-Identifier: Apache-2.0
// Writes decided shardings back into a module, so that the text of one stage can be the input of
// the next: importing it again without propagation gives the same program, with every constraint
// closed. Sharding texts do not contain base meshes, so these are stored in the header's frontend
// attribute `shardcall.meshes`.
#ifndef SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_
#define SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ExportOptions {
  // Print `sharding=` in V3 form, {mesh['data'=4], [{'data'}]}, not V2.
  bool named = false;
  // Keep the header's flags that allow propagation to set shardings; else clear them.
  bool keep_propagation_flags = true;
};

// The imported module with `sharding={..}` on every instruction, and with new `xla.sdy.*`
// shardings where the program had such. `by_leaf` has an entry per leaf of program.leaves; null
// for leaves without a sharding (tokens). E164 for shardings that text cannot express (a value
// that is partial by an operation other than sum, maximum and minimum).
absl::StatusOr<Module> ExportShardings(const Program& program,
                                       absl::Span<const Sharding* const> by_leaf,
                                       const ExportOptions& options = {});

// `attributes` without the annotations of any stage (`xla.sdy.*`,
// `shardcall.*`): null if nothing is left.
const FrontendAttributes* WithoutSdy(Context& context, const FrontendAttributes* attributes);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_EXPORT_H_
