// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/staged_call.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status Located(const HandlerContext& context, absl::string_view code,
                     const std::string& message, absl::StatusCode status, std::string fix = "") {
  Diagnostic d{.code = std::string(code), .message = message, .fix = std::move(fix)};
  if (!context.instruction.empty()) d.where = absl::StrCat("%", context.instruction);
  return ToStatus(d, status);
}

absl::Status DeviceFailed(const HandlerContext& context, absl::string_view what,
                          const absl::Status& status) {
  return Located(
      context, "E309",
      absl::StrCat(what, " of \"", context.target, "\" failed on the device: ", status.message()),
      status.code(), "See the driver and the device: nvidia-smi");
}

// The device memory of one call, freed at its end, once the stream is idle.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(HandlerDevice& device) : device_(device) {}
  ~DeviceBuffers() {
    for (void* memory : memory_) device_.Free(memory);
  }
  absl::StatusOr<void*> New(int64_t bytes) {
    SHARDCALL_ASSIGN_OR_RETURN(void* const memory, device_.Allocate(bytes));
    if (memory != nullptr) memory_.push_back(memory);
    return memory;
  }

 private:
  HandlerDevice& device_;
  std::vector<void*> memory_;
};

int64_t Bytes(const BufferView& b) { return b.type == ElementType::kToken ? 0 : b.byte_size(); }

// Converts between the handler's device pointers and the evaluator's host memory.
class StagedComputations final : public AttachedComputations {
 public:
  StagedComputations(const AttachedComputations& inner, HandlerDevice& device,
                     absl::Duration deadline)
      : inner_(inner), device_(device), deadline_(deadline) {}
  int size() const override { return inner_.size(); }
  absl::Status Call(int index, absl::Span<const BufferView> operands,
                    absl::Span<const BufferView> results) const override {
    SHARDCALL_RETURN_IF_ERROR(device_.Wait(deadline_));
    std::vector<std::vector<char>> memory;
    std::vector<BufferView> in(operands.begin(), operands.end()),
        out(results.begin(), results.end());
    for (std::vector<BufferView>* side : {&in, &out}) {
      for (BufferView& b : *side) {
        if (b.data == nullptr || Bytes(b) <= 0) continue;
        memory.emplace_back(Bytes(b));
        if (side == &in) {
          SHARDCALL_RETURN_IF_ERROR(device_.CopyOut(memory.back().data(), b.data, Bytes(b)));
        }
        b.data = memory.back().data();
      }
    }
    SHARDCALL_RETURN_IF_ERROR(inner_.Call(index, in, out));
    for (size_t k = 0; k < out.size(); ++k) {
      if (out[k].data == nullptr || Bytes(out[k]) <= 0) continue;
      SHARDCALL_RETURN_IF_ERROR(device_.CopyIn(results[k].data, out[k].data, Bytes(out[k])));
    }
    return device_.Wait(deadline_);  // before the host copies are freed
  }

 private:
  const AttachedComputations& inner_;
  HandlerDevice& device_;
  const absl::Duration deadline_;
};

}  // namespace

absl::Status CallStaged(const HandlerEntry& entry, const std::shared_ptr<HandlerDevice>& device,
                        HandlerContext context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  // A late handler may still use the memory on both sides, so it is kept alive.
  auto buffers = std::make_shared<DeviceBuffers>(*device);
  const auto wait = [&](absl::string_view what) {
    const absl::Status status = device->Wait(context.deadline);
    if (status.ok()) return status;
    if (context.keep_buffers) device->Hold(context.keep_buffers());
    if (!absl::IsDeadlineExceeded(status)) return DeviceFailed(context, what, status);
    return Located(context, "E319",
                   absl::StrCat(what, " of \"", context.target, "\" is not over on the stream ",
                                absl::FormatDuration(context.deadline), " after it was enqueued"),
                   absl::StatusCode::kDeadlineExceeded, "Give a longer deadline (--wait)");
  };
  const absl::Status active = device->Activate();
  if (!active.ok()) return DeviceFailed(context, "the call", active);

  std::vector<BufferView> in(operands.begin(), operands.end()), out(results.begin(), results.end());
  std::map<const void*, void*> staged;  // device buffers, by host memory
  for (std::vector<BufferView>* side : {&in, &out}) {
    for (BufferView& b : *side) {
      if (b.data == nullptr || Bytes(b) == 0) {
        b.data = nullptr;
        continue;
      }
      void*& memory = staged[b.data];
      if (memory == nullptr) {
        absl::StatusOr<void*> made = buffers->New(Bytes(b));
        if (!made.ok()) return DeviceFailed(context, "memory for the operands", made.status());
        memory = *made;
        const absl::Status copied =
            side == &in ? device->CopyIn(memory, b.data, Bytes(b)) : absl::OkStatus();
        if (!copied.ok()) {
          wait("the copy of the operands").IgnoreError();
          return DeviceFailed(context, "the copy of the operands", copied);
        }
      }
      b.data = memory;
    }
  }
  HandlerContext inner = context;
  inner.device = device;
  absl::optional<StagedComputations> computations;
  if (context.computations != nullptr) {
    computations.emplace(*context.computations, *device, context.deadline);
    inner.computations = &*computations;
  }
  // Keeps the device memory; the handler does not access that of the host.
  inner.keep_buffers = [buffers, device]() -> std::shared_ptr<const void> {
    return std::make_shared<
        std::pair<std::shared_ptr<HandlerDevice>, std::shared_ptr<DeviceBuffers>>>(device, buffers);
  };
  const absl::Status status = entry.host(inner, in, out);
  const absl::Status waited = wait("the work");
  if (!status.ok()) return status;
  SHARDCALL_RETURN_IF_ERROR(waited);
  for (size_t r = 0; r < results.size(); ++r) {
    if (out[r].data == nullptr) continue;
    const absl::Status copied = device->CopyOut(results[r].data, out[r].data, Bytes(out[r]));
    if (copied.ok()) continue;
    wait("the copy of the results").IgnoreError();  // the copy may still be running
    return DeviceFailed(context, "the copy of the results", copied);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
