// SPDX-License-Identifier: Apache-2.0
// The element types with which a call is checked.
#ifndef SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_
#define SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/checked_call.h"

namespace shardcall {
inline namespace internal {

// The types of all tensors that a TypeSignature text allows, common ones first.
absl::StatusOr<std::vector<std::vector<ElementType>>> TypesOfSignature(const std::string& text);

// call.type_tries. If empty, all that a kernel might take: f32, then one other type for all
// tensors, then mixtures of a type with its real or complex form and with s32. Narrow types come
// last, since a kernel that does not check types reads them as wider ones.
std::vector<std::vector<ElementType>> TypesToTry(const CheckedCall& call);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_TYPE_TRIES_H_
