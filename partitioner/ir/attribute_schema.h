// SPDX-License-Identifier: Apache-2.0
// How each field of an attribute record is read and written: the rows of attributes.inc as types.
// The readers and writers of text (ir/text) and of messages (ir/proto) are generated from them.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_

#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/attributes.h"

namespace shardcall {
inline namespace internal {

// The form column: how a value is written, where its C++ type does not determine that.
namespace field_forms {

struct Plain {};
struct OneInt {};    // in text a list of one number
struct TriState {};  // -1: not written; else 0 or 1
struct String {};    // in quotes; otherwise text is kept as written, or in a canonical form
struct Word {        // an enumerator, or the word itself as text
  const WordList& list;
};

inline constexpr Plain kPlain;
inline constexpr OneInt kOneInt;
inline constexpr TriState kTriState;
inline constexpr String kString;

}  // namespace field_forms

template <typename Member, typename Record, typename Form>
struct FieldRow {
  Member Record::* member;
  hlo_text::Attr attr;
  hlo_text::Presence presence;
  Form form;
};
template <typename Member, typename Record, typename Form>
FieldRow(Member Record::*, hlo_text::Attr, hlo_text::Presence, Form)
    -> FieldRow<Member, Record, Form>;

// Schema<Record>::Visit(f) calls f(row) for each row of the record, in the order of text, until f
// returns false. Returns whether all calls returned true.
template <typename Record>
struct Schema;

// The rows of attributes.inc as specializations of `Table`, whose Visit calls f for each row.
#define SHARDCALL_BEGIN_ROWS(Table, Record)                     \
  template <>                                                   \
  struct Table<Record##Attrs> {                                 \
    using R = Record##Attrs;                                    \
    template <typename F>                                       \
    static constexpr bool Visit([[maybe_unused]] F&& f) {       \
      using namespace field_forms; /* NOLINT: of the columns */ \
      using namespace words;       /* NOLINT */                 \
      return true
#define SHARDCALL_ROW(member, attr, form, presence) \
  FieldRow { &R::member, hlo_text::Attr::attr, hlo_text::Presence::presence, form }
#define SHARDCALL_END_ROWS \
  ;                        \
  }                        \
  }                        \
  ;

#define SHARDCALL_RECORD(Record) SHARDCALL_BEGIN_ROWS(Schema, Record)
#define SHARDCALL_FIELD(member, attr, form, presence, message) \
  &&f(SHARDCALL_ROW(member, attr, form, presence))
#define SHARDCALL_END_RECORD SHARDCALL_END_ROWS
#include "shardcall/partitioner/ir/attributes.inc"

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_
