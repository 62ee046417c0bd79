// SPDX-License-Identifier: Apache-2.0
// Copies of a call's buffers with guards around them: see guarded_call.h.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_BUFFER_COPY_H_
#define SHARDCALL_KERNELS_FFI_GUARD_BUFFER_COPY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// The memory layout of a copy.
struct CopyPlace {
  size_t guard = kGuardBytes;              // bytes on either side
  std::optional<FenceSide> fence = {};     // inaccessible pages on both sides
  std::optional<unsigned char> fill = {};  // of guards and of new results
};

// A copy of a buffer: guard, data, padding for alignment, guard.
class BufferCopy {
 public:
  // `name`: "operand 1, f32[4,16]". `is_result`: the present contents have no meaning.
  BufferCopy(const BufferView& from, const CopyPlace& place, std::string name, bool is_result);
  BufferCopy(const BufferCopy&) = delete;
  BufferCopy& operator=(const BufferCopy&) = delete;
  ~BufferCopy();

  char* data() const { return data_; }  // null where there was no memory
  const BufferView& from() const { return from_; }
  // Removes the sanitizer's poison from the guards.
  void Open();
  void CopyBack() const;
  bool Changed() const;
  // "3 bytes from 4 past its end"; empty if the guards are whole.
  std::string Damage() const;

  // Whether the address is in a fence next to the data, at what distance and on which side. This
  // and `name` may be called in a signal handler.
  bool InFence(const char* address, size_t* bytes, bool* past_end) const;
  const std::string& name() const { return name_; }

 private:
  char GuardByte(size_t k) const;
  void Poison(bool poison);

  const BufferView from_;
  const size_t size_;
  const CopyPlace place_;
  const std::string name_;
  size_t before_ = 0, after_ = 0;  // bytes that are filled and checked
  std::unique_ptr<char[]> memory_;
  char* pages_ = nullptr;  // used instead of `memory_`
  size_t mapped_ = 0;
  char* data_ = nullptr;
};

using BufferCopies = std::vector<std::unique_ptr<BufferCopy>>;

// The copies of a call in progress, for DescribeFence.
class FencedCall {
 public:
  explicit FencedCall(const BufferCopies& copies);
  FencedCall(const FencedCall&) = delete;
  FencedCall& operator=(const FencedCall&) = delete;
  ~FencedCall();

 private:
  int slot_ = -1;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_BUFFER_COPY_H_
