// SPDX-License-Identifier: Apache-2.0
// Which element types a checked call is tried with.
#ifndef SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_
#define SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/checked_call.h"

namespace shardcall::inline internal {

// Types of all tensors that a TypeSignature text allows, the usual ones first.
absl::StatusOr<std::vector<std::vector<ElementType>>> TypesOfSignature(const std::string& text);

// call.type_tries; where it is empty, whatever a kernel might take: f32, then one
// other type for all tensors, then mixtures of it with its real or complex form
// and with s32. Narrow types come last, since a kernel that looks at no type
// reads them as wider ones.
std::vector<std::vector<ElementType>> TypesToTry(const CheckedCall& call);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_
