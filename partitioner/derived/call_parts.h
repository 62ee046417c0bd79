// SPDX-License-Identifier: Apache-2.0
// What VJPs and batched forms of custom calls share: the parts of the call that they are derived
// from, and the errors.
#ifndef SHARDCALL_PARTITIONER_DERIVED_CALL_PARTS_H_
#define SHARDCALL_PARTITIONER_DERIVED_CALL_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"

namespace shardcall {
inline namespace internal {
namespace derived_calls {

using Ids = std::vector<InstrId>;
using Shapes = std::vector<const Shape*>;

// E118. `what` is "VJP" or "batched form".
absl::Status Cannot(absl::string_view what, absl::string_view target, std::string why,
                    std::string fix);
// E123, for arguments that do not fit the call.
absl::Status Misfit(absl::string_view what, absl::string_view target, std::string message,
                    std::string expected, std::string found, std::string fix);

// Flat results of a call with at most one level of tuple.
absl::StatusOr<Ids> Leaves(CheckedBuilder& b, InstrId value);
// The shape of a call with these flat results.
const Shape* ResultShape(Context& context, const Shapes& leaves);

// Operands and results of a custom call, which must be arrays.
struct CallParts {
  const Instruction* instr = nullptr;
  const CustomCallAttrs* attrs = nullptr;
  Shapes operands, results;
};
absl::StatusOr<CallParts> PartsOf(const Module& m, InstrId call, absl::string_view what);

// Whether the module that `b` builds has such an instruction.
bool Knows(const CheckedBuilder& b, InstrId id);

// The attributes of a derived call, which has none of the layouts and aliases of the original.
CustomCallAttrs PlainAttrs(const CustomCallAttrs& call, absl::string_view target);

}  // namespace derived_calls
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_DERIVED_CALL_PARTS_H_
