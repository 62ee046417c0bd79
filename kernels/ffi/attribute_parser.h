// SPDX-License-Identifier: Apache-2.0
// The parser of MLIR dictionary text behind AttributeMapView::Parse.
#ifndef SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_
#define SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/attributes.h"

namespace shardcall::inline internal {

absl::StatusOr<Attribute::Dictionary> ParseAttributeDictionary(absl::string_view text);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_ATTRIBUTE_PARSER_H_
