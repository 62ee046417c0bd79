// SPDX-License-Identifier: Apache-2.0
// A library of one handler of version 0.4 of the typed FFI, written against our
// declarations of the layout: its state of prepare, and the device extension.
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/shardcall_ffi.h"

using namespace shardcall;  // NOLINT: a library of its own

namespace {

abi::TypeId state_type = {0};
void DeleteState(void* state) { delete static_cast<float*>(state); }

abi::Error* Wrong(const abi::CallFrame* frame, const char* message) {
  abi::ErrorCreateArgs args = {{28, nullptr}, message, 3};
  return frame->api->error_create(&args);
}

// True if the frame asks for the version, and is answered.
bool Answered(abi::CallFrame* frame) {
  if (frame->extension_start == nullptr) return false;
  abi::Metadata* metadata =
      reinterpret_cast<abi::MetadataExtension*>(frame->extension_start)->metadata;
  metadata->api_version.major = 0;
  metadata->api_version.minor = 4;
  metadata->state_type = state_type;
  return true;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) abi::TypeId* OwnStateType() { return &state_type; }
__attribute__((visibility("default"))) abi::TypeInfo OwnStateInfo = {24, nullptr, DeleteState};

// Leaves the number that the sums are scaled with.
__attribute__((visibility("default"))) abi::Error* OwnPrepare(abi::CallFrame* frame) {
  if (Answered(frame)) return nullptr;
  if (frame->stage != abi::Stage::kPrepare) return Wrong(frame, "stage");
  abi::StateArgs set = {{48, nullptr}, frame->ctx, frame->stage, &state_type, new float(2)};
  return frame->api->state_set(&set);
}

// out = 2 * the sum of x over all devices.
__attribute__((visibility("default"))) abi::Error* OwnExecute(abi::CallFrame* frame) {
  if (Answered(frame)) return nullptr;
  if (frame->struct_size != 168 || frame->api->header.struct_size < 200)
    return Wrong(frame, "size");
  abi::FindExtensionArgs find = {{40, nullptr}, frame->ctx, SHARDCALL_FFI_DEVICE, nullptr};
  if (abi::Error* error = frame->api->find_extension(&find)) return error;
  const auto* device = static_cast<const Shardcall_FfiDevice*>(find.extension);
  if (device->extension_type != SHARDCALL_FFI_DEVICE || device->version_major != 1) {
    return Wrong(frame, "another extension");
  }
  abi::StateArgs get = {{48, nullptr}, frame->ctx, abi::Stage::kPrepare, &state_type, nullptr};
  if (abi::Error* error = frame->api->state_get(&get)) return error;
  const auto* x = static_cast<const abi::Buffer*>(frame->args.args[0]);
  const auto* y = static_cast<const abi::Buffer*>(frame->rets.rets[0]);
  int64_t count = 1;
  for (int64_t k = 0; k < x->rank; ++k) count *= x->dims[k];
  if (device->all_reduce(device, nullptr, 0, SHARDCALL_FFI_SUM, x->dtype, x->data, y->data,
                         count) != 0) {
    return Wrong(frame, device->message(device));
  }
  for (int64_t k = 0; k < count; ++k) {
    static_cast<float*>(y->data)[k] *= *static_cast<const float*>(get.state);
  }
  return nullptr;
}

}  // extern "C"
