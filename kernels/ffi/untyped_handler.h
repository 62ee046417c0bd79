// SPDX-License-Identifier: Apache-2.0
// Makes registry entries of handlers of the three ABIs before the typed FFI. For platform Host:
//   1 ORIGINAL                  void f(void* out, const void** in)
//   2 STATUS_RETURNING          void f(void* out, const void** in, XlaCustomCallStatus*)
//   3 STATUS_RETURNING_UNIFIED  void f(void* out, const void** in, const char* opaque,
//                                      size_t opaque_len, XlaCustomCallStatus*)
// For CUDA and other devices, as XLA:GPU calls them, 1 without and 2 and 3 with a status:
//   1  void f(cudaStream_t, void** buffers, const char* opaque, size_t opaque_len)
//   2, 3  ... , XlaCustomCallStatus*)
// `buffers` is the device memory of all operands' leaves, then of all results' leaves.
//
// `in` points to the operands' leaves. `out` is the result's buffer, or, for a tuple (even of one
// element), the table of its leaves' buffers. `opaque` is the call's backend_config as raw bytes.
// Elements of 1, 2 and 4 bits are packed (packed_buffers.h). No shapes are passed, so reads out of
// bounds cannot be detected.
//
// A library of such handlers sets its status through the two C functions below, which it leaves
// undefined: programs that link this library export them.
#ifndef SHARDCALL_KERNELS_FFI_UNTYPED_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_UNTYPED_HANDLER_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/base/public.h"

extern "C" {
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
__attribute__((visibility("default"))) void XlaCustomCallStatusSetSuccess(
    XlaCustomCallStatus* status);
// `message` need not end with a zero; it is copied.
__attribute__((visibility("default"))) void XlaCustomCallStatusSetFailure(
    XlaCustomCallStatus* status, const char* message, size_t message_len);
}

namespace shardcall SHARDCALL_PUBLIC {

// "API_VERSION_ORIGINAL" and so on for 1 to 4.
absl::string_view ApiVersionName(int api_version);

// An entry for a HandlerRegistry. With `api_version` 1, 2 or 3, calls of another version are E140;
// with 0 the call determines the ABI. E144 for a null function or another version. A failure that
// the function reports, or a throw, is E317.
absl::StatusOr<HandlerEntry> MakeUntypedEntry(absl::string_view target, absl::string_view platform,
                                              void* function, int api_version,
                                              absl::string_view source,
                                              std::shared_ptr<const void> library = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_UNTYPED_HANDLER_H_
