// SPDX-License-Identifier: Apache-2.0
// Makes an HLO module from the operations of a StableHLO module: the header, functions, and what
// readers of computations ask for. Main and annotations have readers of their own.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/partitioner/ir/stablehlo/read/annotation_reader.h"
#include "shardcall/partitioner/ir/stablehlo/read/locations.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class ModuleReader {
 public:
  ModuleReader(const Bytecode& bytecode, Module* module);
  absl::Status Run();

  const Bytecode& code() const { return code_; }
  Module& module() { return module_; }
  Context& context() { return module_.context(); }
  AnnotationReader& annotations() { return annotations_; }
  Locations& locations() { return locations_; }
  UniqueNames& names() { return names_; }

  // With the default layout. E035 (kUnimplemented) for dynamic dimensions and unknown types.
  absl::StatusOr<const Shape*> ShapeOf(uint32_t type);
  absl::StatusOr<const Shape*> ShapeOfValue(uint32_t value) {
    return ShapeOf(code_.type_of(value));
  }
  // An array with the layout that dense elements say, minor to major; a token as it is.
  absl::StatusOr<const Shape*> WithLayout(const Shape* shape, const Attribute& layout);
  // Enters a computation within another one; Leave ends it. E035 (kUnimplemented) if there are too
  // many of them.
  absl::Status Enter();
  void Leave() { --depth_; }
  // The computation of a private function, which is read when it is first called.
  absl::StatusOr<CompId> Function(absl::string_view name);
  CompId AddComputation(absl::string_view name);
  // The parameter for an argument of a function.
  absl::StatusOr<InstrId> Parameter(const Operation& function, CompId comp, size_t k);
  // E035 (kUnimplemented) for an entry of the dictionary that is not known. Null: it is absent.
  absl::Status CheckKnown(const Attribute* dictionary, absl::string_view of,
                          absl::Span<const absl::string_view> known) const;
  absl::Status CheckFunction(const Operation& function) const;

  // The instruction of a value, invalid before its operation is read.
  InstrId InstrOf(uint32_t value) const { return instr_of_[value]; }
  void SetInstr(uint32_t value, InstrId id) { instr_of_[value] = id; }
  // The operation that gives a value, null for arguments of blocks.
  const Operation* Giver(uint32_t value) const { return givers_[value]; }

  // `text` as the name of an instruction; `otherwise` if nothing is left of it.
  static std::string LegalName(absl::string_view text, absl::string_view otherwise);

  // E035 (kUnimplemented) for `what`.
  static absl::Status Cannot(absl::string_view what);

 private:
  absl::Status ReadHeader();

  const Bytecode& code_;
  Module& module_;
  AnnotationReader annotations_;
  Locations locations_;
  UniqueNames names_, comp_names_;
  std::vector<InstrId> instr_of_;
  std::vector<const Operation*> givers_;
  absl::flat_hash_map<absl::string_view, const Operation*> functions_;
  absl::flat_hash_map<absl::string_view, CompId> read_;
  absl::flat_hash_map<uint32_t, const Shape*> shapes_;
  int depth_ = 0;  // of calls and regions
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_
