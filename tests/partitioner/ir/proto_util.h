// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of binary HLO.
#ifndef SHARDCALL_TESTS_PARTITIONER_IR_PROTO_UTIL_H_
#define SHARDCALL_TESTS_PARTITIONER_IR_PROTO_UTIL_H_

#include <functional>
#include <memory>
#include <string>

#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/proto/source.h"
#include "text_util.h"

namespace shardcall {

inline absl::StatusOr<Module> ReadBytes(const std::string& bytes) {
  return ReadModuleProto(bytes, std::make_shared<Context>(), "t.pb");
}

// The binary form of a program given as text.
inline std::string BytesOf(const std::string& text, ProtoForm form = ProtoForm::kModule) {
  const auto module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status().message();
  if (!module.ok()) return "";
  const auto bytes = WriteModuleProto(*module, form);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : "";
}

inline hlo_pb::HloModuleProto MessageOf(const std::string& text) {
  hlo_pb::HloModuleProto p;
  EXPECT_TRUE(p.ParseFromString(BytesOf(text)));
  return p;
}

inline std::string TextOfBytes(const std::string& bytes) {
  const auto module = ReadBytes(bytes);
  return module.ok() ? PrintModule(*module) : std::string(module.status().message());
}

// Read and written again.
inline std::string Again(const std::string& bytes, ProtoForm form = ProtoForm::kModule) {
  const auto module = ReadBytes(bytes);
  EXPECT_TRUE(module.ok()) << module.status().message();
  if (!module.ok()) return "";
  const auto out = WriteModuleProto(*module, form);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? *out : "";
}

// The error of the program after `change`; "ok" if there is none.
inline std::string ErrorAfter(const std::string& text,
                              const std::function<void(hlo_pb::HloModuleProto*)>& change) {
  hlo_pb::HloModuleProto p = MessageOf(text);
  change(&p);
  const auto module = ReadBytes(p.SerializeAsString());
  return module.ok() ? "ok" : std::string(module.status().message());
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_IR_PROTO_UTIL_H_
