// SPDX-License-Identifier: Apache-2.0
// The first error in a message, and its place.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_FAULTS_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_FAULTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/attribute_words.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

class MessageFaults {
 public:
  // `at`: the current instruction, whose name is shown.
  MessageFaults(absl::string_view file, const hlo_pb::HloInstructionProto* at)
      : file_(file), at_(*at) {}

  // Keeps the first error; always returns false. The place is the current instruction or
  // computation and `field`.
  bool Fail(absl::string_view code, absl::string_view message, absl::string_view field = "",
            absl::string_view expected = "", absl::string_view found = "",
            absl::string_view fix = "");
  bool FailBytes(const google::protobuf::Descriptor* type, absl::string_view bytes);
  // E036 if the message has a field that is not known (FindUnknownField). Replaces an earlier
  // error, which may follow from it.
  bool RefuseUnknownFields(const google::protobuf::Descriptor* type, absl::string_view bytes);
  // E036: the current instruction has a field that its op does not have.
  bool FailForeignField(const google::protobuf::Descriptor* type, uint32_t number,
                        absl::string_view opcode);
  bool FailEnum(absl::string_view field, int64_t value, Words words);
  bool FailWord(absl::string_view field, absl::string_view word, Words words);

  const std::string& file() const { return file_; }
  const absl::Status& status() const { return status_; }
  void set_status(absl::Status status) { status_ = std::move(status); }

  int computation = -1, instruction = -1;  // positions; -1: none is current
  bool looks_like_text = false;

 private:
  const std::string file_;
  const hlo_pb::HloInstructionProto& at_;
  absl::Status status_;
};

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_FAULTS_H_
