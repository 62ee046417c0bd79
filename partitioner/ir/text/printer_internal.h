// SPDX-License-Identifier: Apache-2.0
// The printer's state, shared by printer.cc (modules, computations, names), printer_attributes.cc
// (attributes of ops) and printer_common.cc (attributes that every instruction may have). All
// output goes to one string. Repeated values (shapes, shardings, frontend attributes) are copied
// from their first occurrence. There is one function for each kind of value; all append to that
// string.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_INTERNAL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class Printer {
 public:
  Printer(const Module& module, const PrintOptions& options)
      : module_(module),
        metadata_(options.metadata && !options.short_form),
        short_(options.short_form) {}
  std::string Module_();
  std::string OneInstruction(InstrId id);

 private:
  // printer.cc
  void MakeNames();
  void Header();
  void StackTables_();
  void PrintComputation(CompId id);
  void Signature(const Computation& c);
  void PrintInstruction(InstrId id, bool is_root);
  void Operands(const Instruction& i);
  absl::string_view NameOf(InstrId id) const;
  absl::string_view NameOf(CompId id) const;
  // With `%`, except in the short form, where only reserved words get it.
  void Name(absl::string_view name);
  // The wrapped op, if the async chain of `i` is printed in its short form.
  const Instruction* Sugar(const Instruction& i) const;
  bool OnlyParametersAndOneOp(CompId id) const;

  // printer_attributes.cc: `, name=value` for each attribute of the op
  void Attributes_(const Instruction& i);
  // By the schema; overloads are for records with fields that have no row there.
  template <typename Record>
  void RecordText(const Record& record, const Instruction& i);
  template <typename Record, typename Row>
  void FieldText(const Record& record, const Row& row);
  void RecordText(const ResultAccuracyAttrs&, const Instruction&) {}  // is a common attribute
  void RecordText(const CompareAttrs& a, const Instruction& i);
  void RecordText(const ParameterAttrs& a, const Instruction& i);
  void RecordText(const SliceAttrs& a, const Instruction& i);
  void RecordText(const PadAttrs& a, const Instruction& i);
  void RecordText(const ConditionalAttrs& a, const Instruction& i);
  void RecordText(const CustomCallAttrs& a, const Instruction& i);
  void RecordText(const OutfeedAttrs& a, const Instruction& i);
  void RecordText(const CollectiveAttrs& a, const Instruction& i);
  void RecordText(const PermuteAttrs& a, const Instruction& i);
  void RecordText(const AsyncAttrs& a, const Instruction& i);
  void GroupsText(const ReplicaGroups& groups);
  void WindowText(const Window& w);
  void LiteralWithShape(const Literal& literal);
  void IntsText(absl::string_view name, Ints values);
  void IntText(absl::string_view name, int64_t value);
  void Word(absl::string_view name, absl::string_view value);  // prints nothing if empty
  void Flag(absl::string_view name, bool value);               // prints nothing if false
  void StringText(absl::string_view name, absl::string_view value);
  void CompText(absl::string_view name, CompId id);
  void CompsText(absl::string_view name, absl::Span<const CompId> ids);
  void IntListValue(Ints values);

  // printer_common.cc
  void CommonAttributes(const Instruction& i);
  void ShapeText(const Shape* shape, bool with_layout);
  void ShardingText(const Instruction& i);
  void FrontendText(const FrontendAttributes& f);
  void MetadataText(const Metadata& m);
  void Escaped(absl::string_view text);  // in double quotes
  void RawOrQuoted(absl::string_view text);
  template <typename F>
  void Memoised(absl::flat_hash_map<const void*, std::pair<size_t, size_t>>* memo, const void* key,
                F print) {
    auto [it, fresh] = memo->try_emplace(key);
    if (!fresh) {
      const auto [begin, length] = it->second;
      const size_t end = out_.size();
      out_.resize(end + length);  // may reallocate, so the source is an offset
      std::char_traits<char>::copy(&out_[end], &out_[begin], length);
      return;
    }
    const size_t begin = out_.size();
    print();
    // `print` does not touch this memo, so `it` is still valid.
    it->second = {begin, out_.size() - begin};
  }

  const Module& module_;
  const bool metadata_, short_;
  std::string out_;
  absl::flat_hash_map<const void*, std::pair<size_t, size_t>> shapes_, bare_shapes_, shardings_,
      frontends_;
  std::vector<absl::string_view> instr_names_, comp_names_;  // empty unless names were made
  Arena made_names_;
  std::vector<bool> hidden_;  // computations inside short forms
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_INTERNAL_H_
