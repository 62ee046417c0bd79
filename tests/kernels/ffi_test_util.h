// SPDX-License-Identifier: Apache-2.0
// What tests of the typed FFI share: calls of an entry, and errors made and
// looked at through the table, as a handler does it.
#ifndef SHARDCALL_TESTS_KERNELS_FFI_TEST_UTIL_H_
#define SHARDCALL_TESTS_KERNELS_FFI_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

inline abi::Error* MakeError(const abi::CallFrame* frame, int code, const std::string& message) {
  abi::ErrorCreateArgs args = {{28, nullptr}, message.c_str(), code};
  return frame->api->error_create(&args);
}

// Answers the metadata query as a handler of version 0.`minor` does; false if
// the frame is no query.
inline bool AnswerMetadata(abi::CallFrame* frame, int minor, int64_t state_type = 0,
                           abi::Traits traits = 0) {
  if (frame->extension_start == nullptr) return false;
  auto* query = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start);
  query->metadata->api_version.major = 0;
  query->metadata->api_version.minor = minor;
  query->metadata->traits = traits;
  if (minor >= 2) query->metadata->state_type.id = state_type;
  return true;
}

template <typename T>
BufferView View(std::vector<T>& values, std::vector<int64_t> dims, ElementType type) {
  return {type, std::move(dims), values.data()};
}
inline BufferView F32(std::vector<float>& values) {
  return View(values, {static_cast<int64_t>(values.size())}, ElementType::kF32);
}

// A context for one call; the attributes are MLIR text.
struct TestCall {
  explicit TestCall(const std::string& attributes = "{}")
      : map(*AttributeMapView::Parse(attributes)) {
    context.target = "t";
    context.instruction = "call.1";
    context.attributes = &map;
  }
  absl::Status Run(const HandlerEntry& entry, std::vector<BufferView> operands,
                   std::vector<BufferView> results) {
    return entry.host(context, operands, results);
  }
  AttributeMapView map;
  HandlerContext context;
};

inline HandlerEntry Entry(abi::Handler* execute) {
  auto entry = MakeTypedEntry("t", "Host", {nullptr, nullptr, nullptr, execute}, "test");
  EXPECT_TRUE(entry.ok()) << entry.status();
  return *std::move(entry);
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_KERNELS_FFI_TEST_UTIL_H_
