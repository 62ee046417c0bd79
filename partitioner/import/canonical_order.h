// SPDX-License-Identifier: Apache-2.0
// An order of instructions that follows from the values alone, not from the text, so that equal
// programs are planned alike however they are written.
#ifndef SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_
#define SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_

#include <memory>
#include <vector>

#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/analysis/needs_first.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

class CanonicalOrder {
 public:
  // Refers to the module.
  explicit CanonicalOrder(const Module& module);
  // Parameters by number, then what has effects, in its own order, then the root, each right behind
  // what it needs, operand by operand, and that was not there yet; then annotations that nothing
  // reads. A scheduled module has the order of its schedule. Takes time linear in the module for
  // all computations together.
  const std::vector<InstrId>& Of(CompId comp);

 private:
  const Module& module_;
  const Effects effects_;
  std::vector<std::unique_ptr<std::vector<InstrId>>> orders_;  // by computation
  NeedsFirst needs_first_;
};

// The module in this order, and its computations in that of the first calls. The same where it is.
InlinedModule InCanonicalOrder(InlinedModule inlined);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_
