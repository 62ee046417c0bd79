// SPDX-License-Identifier: Apache-2.0
// Handlers that write where they must not. A guarded call hands the handler copies of
// its buffers with guards around them, and looks afterwards whether the guards, or an
// operand that no result is in, have changed: E318, with the target, the buffer and the
// place. In a build with AddressSanitizer every call of a handler is guarded, and the
// guards are poisoned: code that was compiled with the sanitizer stops at the line that
// leaves its buffer, and the report ends with the target's name; code that was not is
// found by E318.
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

// Whether this build guards all handlers.
bool GuardsHandlers();

// What `host` returns, or E318 where it is done and has written elsewhere than into its
// results. Buffers with one address, and an element at least, are one in the copy too.
// A guard has `guard_bytes`, on either side.
inline constexpr size_t kGuardBytes = 256;
absl::Status CallGuarded(const HostHandler& host, const HandlerContext& context,
                         absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results, size_t guard_bytes = kGuardBytes);

// The same handlers, each guarded by as many bytes as all buffers of its call have: one
// that takes an extent from another buffer touches nothing else. For whoever calls
// handlers with shapes that they may not expect.
HandlerRegistry GuardedHandlers(const HandlerRegistry& handlers);

// Where pages that may not be touched meet a buffer. It begins at a multiple of 64
// bytes, so that up to 63 bytes may stand between its end and the fence: those are
// filled and looked at as a guard is.
enum class FenceSide : uint8_t { kBefore, kAfter };

// The same handlers on copies of their buffers between pages whose first touched byte is
// SIGSEGV, for a process that is made to end so. What stands around the data, and in
// results before the call, are bytes that differ by the side: a handler whose results
// do, too, has read them.
HandlerRegistry FencedHandlers(const HandlerRegistry& handlers, FenceSide side);

// One handler, as those registries have it.
HostHandler Guarded(HostHandler host);
HostHandler Fenced(HostHandler host, FenceSide side);

// Says of an address which buffer of a fenced call under way it lies beside: "4 bytes
// past the end of operand 1, f32[4,16]". False, and `text` empty, if it lies in no fence.
// May be called by a handler of signals.
bool DescribeFence(const void* address, char* text, size_t size);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_GUARDED_CALL_H_
