// SPDX-License-Identifier: Apache-2.0
// A whole module put into a computation of another one: its entry's instructions
// are appended there, its parameters being given values, and the computations
// they call are copied.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

struct SpliceResult {
  InstrId root;
  std::vector<InstrId> collectives;  // among what was appended to the computation
};

// Both modules are of one Context, and `from` has passed VerifyModule. E021 if
// `operands` are not as many as the entry's parameters, or of other shapes.
// Channel ids become new ones from *next_channel on, one for each of the text's.
// Names are left to printing, shardings are dropped, and every instruction has
// `metadata`, which may be null.
absl::StatusOr<SpliceResult> Splice(const Module& from, absl::Span<const InstrId> operands,
                                    const Metadata* metadata, int64_t* next_channel, Module* to,
                                    CompId computation);

// `attrs` with a new channel id where it has one, for copies of a collective:
// *next_channel, or what `*channels` has for it already.
const Attributes* WithNewChannel(Context& context, const Attributes* attrs,
                                 absl::flat_hash_map<int64_t, int64_t>* channels,
                                 int64_t* next_channel);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_SPLICE_H_
