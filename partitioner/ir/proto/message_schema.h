// SPDX-License-Identifier: Apache-2.0
// The rows of attributes.inc with the fields of HloInstructionProto that have them.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_

#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attribute_schema.h"

namespace shardcall::hlo_proto {

// AT and IN of the message column: functions of a HloInstructionProto.
template <typename Get, typename Set, typename Mutable>
struct MessageField {
  absl::string_view name;
  Get get;                // from the message
  Set set;                // the value, in the message's own type
  Mutable mutable_field;  // of a repeated field or a message
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

template <typename To, typename From>
To MessageValue(const From& from) {
  return static_cast<To>(from);
}

// MessageSchema<Record>::Visit(f) calls f(row, message) for each row, while it returns true;
// whether all did.
template <typename Record>
struct MessageSchema;

#define AT(f)                                                          \
  MessageField {                                                       \
    #f, [](const auto& p) -> decltype(auto) { return p.f(); },         \
        [](auto* p, const auto& v) {                                   \
          p->set_##f(MessageValue<std::decay_t<decltype(p->f())>>(v)); \
        },                                                             \
        [](auto* p) { return p->mutable_##f(); }                       \
  }
#define IN(m, f)                                                                          \
  MessageField {                                                                          \
    #m "." #f, [](const auto& p) -> decltype(auto) { return p.m().f(); },                 \
        [](auto* p, const auto& v) {                                                      \
          p->mutable_##m()->set_##f(MessageValue<std::decay_t<decltype(p->m().f())>>(v)); \
        },                                                                                \
        [](auto* p) { return p->mutable_##m()->mutable_##f(); }                           \
  }
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

#define SHARDCALL_RECORD(Record)                                \
  template <>                                                   \
  struct MessageSchema<Record##Attrs> {                         \
    using R = Record##Attrs;                                    \
    template <typename F>                                       \
    static constexpr bool Visit([[maybe_unused]] F&& f) {       \
      using namespace field_forms; /* NOLINT: of the columns */ \
      using namespace words;       /* NOLINT */                 \
      return true
#define SHARDCALL_FIELD(member, attr, form, presence, message) \
  &&f(FieldRow{&R::member, hlo_text::Attr::attr, hlo_text::Presence::presence, form}, message)
#define SHARDCALL_END_RECORD \
  ;                          \
  }                          \
  }                          \
  ;
#include "shardcall/partitioner/ir/attributes.inc"

#undef AT
#undef IN
#undef IF_ANY
#undef DIMENSION
#undef CALLED
#undef CHANNEL
#undef ALIASING
#undef OWN

}  // namespace shardcall::hlo_proto

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_MESSAGE_SCHEMA_H_
