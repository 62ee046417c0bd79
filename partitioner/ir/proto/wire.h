// SPDX-License-Identifier: Apache-2.0
// The bytes of protobuf messages: a scanner over the fields of one message, used to read large
// modules part by part; the place of the first fault, for diagnostics; and the fields of a message
// that the Module did not keep.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_WIRE_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_WIRE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace google::protobuf {
class Descriptor;
class MessageLite;
}  // namespace google::protobuf

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;         // of numbers
  absl::string_view payload;  // of kBytes
  absl::string_view record;   // tag and payload
};

// Iterates over the fields of one message in their order.
class WireScanner {
 public:
  explicit WireScanner(absl::string_view bytes) : begin_(bytes.data()), rest_(bytes) {}
  // False at the end, and at the first fault, when `fault` is not empty.
  bool Next(WireField* field);
  // What is wrong at offset(), as in "a length of 9 bytes where 4 are left".
  const std::string& fault() const { return fault_; }
  size_t offset() const { return rest_.data() - begin_; }

 private:
  bool Fail(std::string what);
  const char* begin_;
  absl::string_view rest_;
  std::string fault_;
};

bool ReadVarint(absl::string_view* bytes, uint64_t* out);
void AppendVarint(uint64_t value, std::string* out);
// A field of length-delimited bytes.
void AppendBytesField(uint32_t number, absl::string_view payload, std::string* out);
// The integers of a repeated field, packed or one at a time; false on a fault.
bool AppendIntegers(const WireField& field, std::vector<int64_t>* out);

// Messages nested deeper are rejected: every level takes some stack.
inline constexpr int kMaxMessageDepth = 2048;

// Parses `bytes`; false if they are malformed or too deep.
bool ParseMessage(absl::string_view bytes, google::protobuf::MessageLite* message);

struct WireFault {
  std::string path;  // "shape.layout"; empty: the message itself
  size_t offset = 0;
  std::string what;
  bool too_deep = false;
  bool unknown = false;  // a field that is not known
};
// The first fault in `bytes` as a message of that type. `what` is empty if there
// is none.
WireFault FindWireFault(const google::protobuf::Descriptor* type, absl::string_view bytes);
// The first field of the message, or of a message in it, that hlo.proto does not have, or not with
// this wire type, and that may change what the program means (ignored_fields.h). `what` says which,
// as in "field 104 of HloInstructionProto (5 bytes)", and is empty if there is none.
WireFault FindUnknownField(const google::protobuf::Descriptor* type, absl::string_view bytes);

// The fields in which a message as read differs from the message as written back. Applied to a
// later version, it restores those fields whose written form is still the same, so unchanged
// information is not lost.
class Residue {
 public:
  // Both in canonical form: as the protobuf library serialises them.
  static Residue Between(absl::string_view read, absl::string_view written);
  bool empty() const { return fields_.empty(); }
  std::string Apply(absl::string_view written) const;
  // Numbers of the fields that differ.
  std::vector<uint32_t> Fields() const;
  // Those of them that were read and not written at all, unless they hold nothing.
  std::vector<uint32_t> Dropped() const;

 private:
  struct Field {
    uint32_t number;
    std::string read;       // all its records
    uint64_t written_hash;  // of all its records
  };
  std::vector<Field> fields_;
};

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_WIRE_H_
