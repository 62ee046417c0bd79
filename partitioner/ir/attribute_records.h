// SPDX-License-Identifier: Apache-2.0
// Maps the kind of an attribute record to its struct, for code that handles every kind.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_RECORDS_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_RECORDS_H_

#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

// A struct of attributes.h as an argument.
template <typename T>
struct RecordType {
  using Record = T;
};

// f(RecordType<T>()) for the struct T of that kind.
template <typename F>
auto ForRecordType(AttrKind kind, F&& f) {
  switch (kind) {
#define SHARDCALL_RECORD(Record) \
  case AttrKind::k##Record: return f(RecordType<Record##Attrs>());
#include "shardcall/partitioner/ir/attributes.inc"
  }
  SHARDCALL_CHECK(false);
}

// f(record) with the record as its own struct.
template <typename F>
auto ForRecord(const Attributes& attributes, F&& f) {
  return ForRecordType(attributes.kind, [&](auto type) {
    return f(static_cast<const typename decltype(type)::Record&>(attributes));
  });
}

// The channel of a collective, a send or a recv; -1 if there is none.
inline int64_t ChannelIdOf(const Attributes& attributes) {
  return ForRecord(attributes, [](const auto& record) -> int64_t {
    if constexpr (requires { record.channel_id; }) {
      return record.channel_id;
    } else {
      return -1;
    }
  });
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_RECORDS_H_
