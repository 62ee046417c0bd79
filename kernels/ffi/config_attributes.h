// SPDX-License-Identifier: Apache-2.0
// The attributes that a call's backend_config states, in each of its forms: those of
// config_numbers.h.
#ifndef SHARDCALL_KERNELS_FFI_CONFIG_ATTRIBUTES_H_
#define SHARDCALL_KERNELS_FFI_CONFIG_ATTRIBUTES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/attributes.h"

namespace shardcall {
inline namespace internal {

// Those of a dictionary, also of one that stands in JSON, are as AttributeMapView::Parse reads
// them. Of any other JSON object they are its members: integers are s64, or u64 beyond that, other
// numbers f64. A member that is null is none. What is in lists and inner objects is left out: they
// are an empty array and an empty dictionary. E131 for text of no such form.
absl::StatusOr<AttributeMapView> AttributesOfConfig(absl::string_view config);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_CONFIG_ATTRIBUTES_H_
