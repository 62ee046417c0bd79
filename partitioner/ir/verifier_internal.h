// SPDX-License-Identifier: Apache-2.0
// The parts of the verifier. Each fills `*error` (but for the file's name) at
// the first fault and returns false. Internal to partitioner/ir.
#ifndef SHARDCALL_PARTITIONER_IR_VERIFIER_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_VERIFIER_INTERNAL_H_

#include <string>

#include "partitioner/ir/module.h"
#include "sharding/status.h"

namespace shardcall::verifier {

// "%add.5 in %main", or the opcode and number of an unnamed instruction.
std::string Where(const Module& m, InstrId id);
// Fills the error; returns false.
bool Fail(Diagnostic* error, absl::string_view code, std::string message, std::string where,
          std::string expected = "", std::string found = "", std::string fix = "");

// Ids, order, roots, parameters, control predecessors, called computations,
// cycles. The other parts rely on it.
bool CheckStructure(const Module& m, Diagnostic* error);
// Counts, entry layout, aliases, donors.
bool CheckHeader(const Module& m, Diagnostic* error);

// Devices of the module; 0 if the header leaves the number open.
int64_t KnownDevices(const Module& m);
// Groups of a collective, pairs of a permute.
bool CheckGroups(const Module& m, const Instruction& i, Diagnostic* error);
// Device ids in the instruction's sharding.
bool CheckSharding(const Module& m, const HloSharding& sharding, Diagnostic* error);

}  // namespace shardcall::verifier

#endif  // SHARDCALL_PARTITIONER_IR_VERIFIER_INTERNAL_H_
