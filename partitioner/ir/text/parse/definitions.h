// SPDX-License-Identifier: Apache-2.0
// The computations and instructions that a text has defined so far, by name.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_DEFINITIONS_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_DEFINITIONS_H_

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/build/name_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

// Names that XLA rejects, since it would change them: types, and names that start with `__`, except
// `__xla_`.
bool IsReservedName(absl::string_view name);

class Definitions {
 public:
  Definitions(Lexer* lex, const Module* module) : lex_(*lex), module_(*module), names_(module) {}

  void Reserve(size_t instructions) { names_.Reserve(instructions); }
  bool Has(CompId comp, absl::string_view name) const { return names_.Find(comp, name).valid(); }
  bool HasComputation(absl::string_view name) const { return computations_.contains(name); }
  // An instruction of the module, which has its name already.
  void Add(InstrId id) { names_.Insert(id); }
  void AddComputation(absl::string_view name, CompId id) { computations_.emplace(name, id); }

  // What `name` stands for, which is at `at` in the text. E008 if it is not defined.
  bool Find(CompId comp, absl::string_view name, const char* at, InstrId* out) {
    *out = names_.Find(comp, name);
    return out->valid() || FailUnknown(comp, name, at);
  }
  bool FindComputation(absl::string_view name, const char* at, CompId* out);

 private:
  bool FailUnknown(CompId comp, absl::string_view name, const char* at);

  Lexer& lex_;
  const Module& module_;
  NameTable names_;
  absl::flat_hash_map<absl::string_view, CompId> computations_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_DEFINITIONS_H_
