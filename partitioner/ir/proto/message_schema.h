// SPDX-License-Identifier: Apache-2.0
// The rows of attributes.inc with their fields in HloInstructionProto.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_

#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attribute_schema.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

// AT and IN of the message column: accessors of a HloInstructionProto.
template <typename Get, typename Set, typename Mutable>
struct MessageField {
  absl::string_view name;
  Get get;                // from the message
  Set set;                // the value, in the message's own type
  Mutable mutable_field;  // for a repeated field or a message
};
template <typename Has, typename Message>
struct IfAny {
  Has has;
  Message field;
};
struct OnlyDimension {};
struct Called {
  int index;
};
struct Channel {};
struct OperandAliasing {};
struct Own {};

// MessageSchema<Record>::Visit(f) calls f(row, message) for each row, until f returns false.
// Returns whether all calls returned true.
template <typename Record>
struct MessageSchema;

#define SHARDCALL_MESSAGE_FIELD(name, path, mutable_path, f)                            \
  MessageField {                                                                        \
    name, [](const auto& p) -> decltype(auto) { return p.path f(); },                   \
        [](auto* p, const auto& v) {                                                    \
          p->mutable_path set_##f(static_cast<std::decay_t<decltype(p->path f())>>(v)); \
        },                                                                              \
        [](auto* p) { return p->mutable_path mutable_##f(); }                           \
  }
#define AT(f) SHARDCALL_MESSAGE_FIELD(#f, , , f)
#define IN(m, f) SHARDCALL_MESSAGE_FIELD(#m "." #f, m()., mutable_##m()->, f)
#define IF_ANY(f)                                    \
  IfAny {                                            \
    [](const auto& p) { return p.has_##f(); }, AT(f) \
  }
#define DIMENSION OnlyDimension()
#define CALLED(k) \
  Called { k }
#define CHANNEL Channel()
#define ALIASING OperandAliasing()
#define OWN Own()

#define SHARDCALL_RECORD(Record) SHARDCALL_BEGIN_ROWS(MessageSchema, Record)
#define SHARDCALL_FIELD(member, attr, form, presence, message) \
  &&f(SHARDCALL_ROW(member, attr, form, presence), message)
#define SHARDCALL_END_RECORD SHARDCALL_END_ROWS
#include "shardcall/partitioner/ir/attributes.inc"

#undef SHARDCALL_MESSAGE_FIELD
#undef AT
#undef IN
#undef IF_ANY
#undef DIMENSION
#undef CALLED
#undef CHANNEL
#undef ALIASING
#undef OWN

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_
