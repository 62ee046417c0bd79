// SPDX-License-Identifier: Apache-2.0
// Detects handlers that write out of bounds. A guarded call gives the handler copies of its
// buffers with guards around them, and checks afterwards whether the guards, or an operand that
// shares no memory with a result, have changed: E318, with the target, the buffer and the place.
// In a build with AddressSanitizer every call of a handler is guarded, and the guards are
// poisoned: code that was compiled with the sanitizer stops at the line that leaves its buffer,
// and the report ends with the target's name; other code is detected by E318.
//
//   cmake --preset asan && cmake --build --preset asan
//   build-asan/bin/shardcall verify program.hlo --plugin=K.so
#ifndef SHARDCALL_KERNELS_FFI_GUARD_GUARDED_CALL_H_
#define SHARDCALL_KERNELS_FFI_GUARD_GUARDED_CALL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// Whether this build guards all handlers.
bool GuardsHandlers();

// Returns the result of `host`, or E318 if it has finished and has written outside its results.
// Buffers with the same address and at least one element share memory in the copy too. Guards have
// `guard_bytes` on either side.
inline constexpr size_t kGuardBytes = 256;
absl::Status CallGuarded(const HostHandler& host, const HandlerContext& context,
                         absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results, size_t guard_bytes = kGuardBytes);

// The same handlers, each guarded on either side by as many bytes as all buffers of its call have,
// so that one that takes an extent from the wrong buffer damages nothing. For code that calls
// handlers with shapes that they may not expect.
HandlerRegistry GuardedHandlers(const HandlerRegistry& handlers);

// The side of a buffer that touches inaccessible pages (a fence). A buffer begins at a multiple of
// 64 bytes, so up to 63 bytes may be between its end and the fence: those are filled and checked
// like a guard.
enum class FenceSide : uint8_t { kBefore, kAfter };

// The same handlers on copies of their buffers between inaccessible pages, where the first access
// out of bounds is SIGSEGV. This is for a process that may end that way. The bytes around the
// data, and results before the call, are filled with a value that depends on `side`: a handler
// whose results depend on it has read them.
HandlerRegistry FencedHandlers(const HandlerRegistry& handlers, FenceSide side);

// The same for one handler.
HostHandler Guarded(HostHandler host);
HostHandler Fenced(HostHandler host, FenceSide side);

// Whether a run's call of a target works in a fork of this process: it does not on a GPU that this
// process uses.
bool RunsInFork(const HandlerRegistry& handlers, absl::string_view target,
                absl::string_view backend_config);

// Describes an address next to a buffer of a fenced call in progress: "4 bytes past the end of
// operand 1, f32[4,16]". False, and `text` empty, if it is in no fence. May be called in a signal
// handler.
bool DescribeFence(const void* address, char* text, size_t size);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_GUARDED_CALL_H_
