// SPDX-License-Identifier: Apache-2.0
// How each field of an attribute record is read and written: a row of attributes.inc as types,
// from which the readers and writers of text (ir/text) and messages (ir/proto) follow.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_

#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/attributes.h"

namespace shardcall::inline internal {

// What the type of a member does not say of it, the form column.
namespace field_forms {

struct Plain {};
struct OneInt {};    // text has a list with that one number
struct TriState {};  // -1: not written; else 0 or 1
struct String {};    // in quotes; other text is kept as it is written, or in a canonical form
struct Word {        // an enumerator, or the word itself
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

// Schema<Record>::Visit(f) calls f(row) for the fields of the record that have a row, in the
// order of text, while it returns true; whether all did.
template <typename Record>
struct Schema;

// The rows of attributes.inc as specializations of `Table`, whose Visit calls f for each.
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

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_SCHEMA_H_
