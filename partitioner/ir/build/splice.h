// SPDX-License-Identifier: Apache-2.0
// Inlines a whole module into a computation of another one: its entry's instructions are appended
// there with values for its parameters, and the computations they call are copied.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct SpliceResult {
  InstrId root;
  std::vector<InstrId> collectives;  // among the appended instructions
};

// Both modules have one Context, and `from` has passed VerifyModule. E021 if `operands` do not
// match the entry's parameters in number and shapes. Each channel id is replaced by a new one,
// counted from *next_channel. Instructions get their names when they are printed, shardings are
// dropped, and every instruction gets `metadata`, which may be null.
absl::StatusOr<SpliceResult> Splice(const Module& from, absl::Span<const InstrId> operands,
                                    const Metadata* metadata, int64_t* next_channel, Module* to,
                                    CompId computation);

// `attrs` with a new channel id if it has one, for copies of a collective: the new id in
// `*channels` for the old one, or else *next_channel, which is then added there.
const Attributes* WithNewChannel(Context& context, const Attributes* attrs,
                                 absl::flat_hash_map<int64_t, int64_t>* channels,
                                 int64_t* next_channel);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_
