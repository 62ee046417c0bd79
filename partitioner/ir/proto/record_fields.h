// SPDX-License-Identifier: Apache-2.0
// RecordReader::ReadFields: reads a record's fields from the message by the schema.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_RECORD_FIELDS_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_RECORD_FIELDS_H_

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/message_schema.h"
#include "shardcall/partitioner/ir/proto/record_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

template <typename Row, typename Message, typename T>
bool RecordReader::ReadWord(const Row& row, const Message& message, T* to) {
  const Words words = row.form.list.words;
  const auto& value = message.get(p_);
  int index;
  if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
    if (value.empty() && row.presence == hlo_text::Presence::kOptional) return true;
    index = IndexOf(value, words);
    if (index < 0) return faults_.FailWord(message.name, value, words);
  } else {
    if (!values_.WordNumber(message.name, value, words, &index)) return false;
    if (words[index].empty() && row.presence == hlo_text::Presence::kRequired) {
      return faults_.FailEnum(message.name, value, words);
    }
  }
  if constexpr (std::is_enum_v<T>) {
    *to = static_cast<T>(index);
  } else {
    *to = words[index];
  }
  return true;
}

template <typename Row, typename Message, typename T>
bool RecordReader::ReadField(const Row& row, const Message& message, T* to) {
  using Form = decltype(row.form);
  if constexpr (std::is_same_v<Message, Own>) {
    return true;
  } else if constexpr (std::is_same_v<Message, OnlyDimension>) {
    const bool none = row.presence == hlo_text::Presence::kOptional && p_.dimensions_size() == 0;
    return none || OneDimension(to);
  } else if constexpr (std::is_same_v<Message, Called>) {
    *to = called_[message.index];
    return true;
  } else if constexpr (std::is_same_v<Message, Channel>) {
    if (p_.channel_id() > 0) *to = p_.channel_id();
    return true;
  } else if constexpr (std::is_same_v<Message, OperandAliasing>) {
    return values_.Aliasing(p_.output_operand_aliasing(), to);
  } else if constexpr (requires { message.has(p_); }) {
    return !message.has(p_) || ReadField(row, message.field, to);
  } else if constexpr (std::is_same_v<Form, field_forms::Word>) {
    return ReadWord(row, message, to);
  } else if constexpr (std::is_same_v<Form, field_forms::TriState>) {
    const int64_t value = message.get(p_);
    if (value < 0 || value > 2) {
      return faults_.Fail("E019", "Unknown value", message.name, "0, 1 (true) or 2 (false)",
                          absl::StrCat(value));
    }
    *to = value == 0 ? -1 : value == 1;
    return true;
  } else if constexpr (std::is_same_v<T, Field<int64_t>>) {
    *to = IntsOf(message.get(p_));
    return true;
  } else if constexpr (std::is_same_v<T, Window>) {
    return values_.ReadWindow(message.get(p_), to);
  } else {
    *to = message.get(p_);
    return true;
  }
}

template <typename Record>
bool RecordReader::ReadFields(Record* record) {
  constexpr size_t kCalls = [] {
    size_t calls = 0;
    MessageSchema<Record>::Visit([&](const auto&, const auto& message) {
      calls += std::is_same_v<std::decay_t<decltype(message)>, Called>;
      return true;
    });
    return calls;
  }();
  if (kCalls > 0 && !Calls(kCalls)) return false;
  return MessageSchema<Record>::Visit([&](const auto& row, const auto& message) {
    return ReadField(row, message, &(record->*row.member));
  });
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_RECORD_FIELDS_H_
