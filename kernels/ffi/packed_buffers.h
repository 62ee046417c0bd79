// SPDX-License-Identifier: Apache-2.0
// Elements of 1, 2 and 4 bits (s4, u2, f4e2m1fn, ..), as XLA gives them to handlers: packed,
// several in a byte, the first in its lowest bits, rows without gaps; the bits behind the last
// element are zero. u4[3] = {1, 2, 3} is 0x21 0x03. Our own buffers, and npz files, have one
// element in a byte (sharding/element_type.h). All conversions between the two are here.
#ifndef SHARDCALL_KERNELS_FFI_PACKED_BUFFERS_H_
#define SHARDCALL_KERNELS_FFI_PACKED_BUFFERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// Bytes of `count` elements, packed if the type is.
int64_t PackedBytes(ElementType type, int64_t count);

// `from` has a byte for each of the `count` elements, of which the low bits count; `to` gets
// PackedBytes(type, count) bytes.
void PackElements(ElementType type, int64_t count, const void* from, void* to);
// The reverse. Elements of signed types are sign-extended, others zero-extended.
void UnpackElements(ElementType type, int64_t count, const void* from, void* to);

// The buffers of a call, packed or not as `packed` says: those that are in the other form are
// replaced by copies. Buffers with the same address share one copy, so that a result which is
// computed in place stays so.
class ConvertedBuffers {
 public:
  ConvertedBuffers(bool packed, absl::Span<const BufferView> operands,
                   absl::Span<const BufferView> results);
  absl::Span<const BufferView> operands() const { return operands_; }
  absl::Span<const BufferView> results() const { return results_; }
  // Converts the results back into the given buffers, where they are copies.
  void CopyBack() const;
  // Keeps the copies alive; null if there are none.
  std::shared_ptr<const void> memory() const { return memory_; }

  // Whether some buffer has to be replaced.
  static bool Needed(bool packed, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results);

 private:
  using Memory = std::vector<std::unique_ptr<char[]>>;
  void Convert(bool packed, absl::Span<const BufferView> given, std::vector<BufferView>* out);

  const absl::Span<const BufferView> given_operands_, given_results_;
  std::vector<BufferView> operands_, results_;
  std::shared_ptr<Memory> memory_;
};

// `call` with the buffers of a call in the form that `packed` says. If it returns OK, the results
// are converted back.
absl::Status CallConverted(
    bool packed, const HandlerContext& context, absl::Span<const BufferView> operands,
    absl::Span<const BufferView> results,
    absl::FunctionRef<absl::Status(const HandlerContext&, absl::Span<const BufferView>,
                                   absl::Span<const BufferView>)>
        call);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_PACKED_BUFFERS_H_
