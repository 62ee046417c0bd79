// SPDX-License-Identifier: Apache-2.0
// The parts of the verifier. Each fills `*error` (except for the file's name) at the first fault
// and returns false. Internal to partitioner/ir.
#ifndef SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_INTERNAL_H_

#include <string>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace verifier {

// An error, and the instruction whose place in the text is shown.
struct Fault : Diagnostic {
  InstrId at;
};

// "%add.5 in %main", or the opcode and number of an unnamed instruction.
std::string Where(const Module& m, InstrId id);
// Fills the error; returns false.
bool Fail(Fault* error, absl::string_view code, std::string message, std::string where,
          std::string expected = "", std::string found = "", std::string fix = "");

// Without layout; large tuples as the number of their leaves.
std::string ShapeText(const Shape* shape);

// Ids, order, roots, parameters, control predecessors, called computations,
// cycles. The other parts rely on it.
bool CheckStructure(const Module& m, Fault* error);
// Partition and replica counts, entry layout, aliases, donors.
bool CheckHeader(const Module& m, Fault* error);

// The module's number of devices; 0 if the header does not give it.
int64_t KnownDevices(const Module& m);
// Every id in [0, devices), or 0 or more if `devices` is 0; none twice.
bool CheckIds(const char* attribute, absl::Span<const Ints> lists, int64_t devices, Fault* error);
// Groups of a collective, pairs of a permute.
bool CheckGroups(const Module& m, const Instruction& i, Fault* error);
// Parts, devices and dimensions of an instruction's sharding.
bool CheckSharding(const Module& m, const HloSharding& sharding, const Shape* shape, Fault* error);
// A loop and the parameters of its body and condition are one value, so their shardings must be
// equal where they have any. What a body or a branch ends with is another value, which may have
// another sharding: it is resharded at the root. Requires that CheckSharding has passed for them.
bool CheckLoopShardings(const Module& m, Fault* error);
// output_to_operand_aliasing: `{{0}: (1, {}), ..}`, parts of equal shape.
bool CheckAliasing(const Module& m, const Instruction& i, absl::string_view text, Fault* error);

// Checks that involve users: starts and their dones, sends and receives, fused and asynchronous
// computations.
bool CheckUses(const Module& m, Fault* error);

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_INTERNAL_H_
