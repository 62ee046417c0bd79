// SPDX-License-Identifier: Apache-2.0
// Makes an HLO module from the operations of a StableHLO module.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/partitioner/ir/stablehlo/read/locations.h"

namespace shardcall::inline internal::stablehlo {

class ModuleReader {
 public:
  ModuleReader(const Bytecode& bytecode, Module* module);
  absl::Status Run();

  const Bytecode& code() const { return code_; }
  Module& module() { return module_; }
  Context& context() { return module_.context(); }
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

  // The instruction of a value, invalid before its operation is read.
  InstrId InstrOf(uint32_t value) const { return instr_of_[value]; }
  void SetInstr(uint32_t value, InstrId id) { instr_of_[value] = id; }
  // The operation that gives a value, null for arguments of blocks.
  const Operation* Giver(uint32_t value) const { return givers_[value]; }

  // Adds entries to the instruction's frontend attributes, in the place of those of equal names.
  using Entries = std::vector<std::pair<absl::string_view, absl::string_view>>;
  void AddFrontend(InstrId id, const Entries& entries);
  void AddFrontend(InstrId id, absl::string_view key, absl::string_view value) {
    AddFrontend(id, Entries{{key, value}});
  }
  // The frontend attributes of a program or an operation: a dictionary of strings.
  absl::StatusOr<Entries> FrontendEntries(const Attribute& dictionary) const;
  // "#sdy.sharding<..>", of one value, as "#sdy.sharding_per_value<[<..>]>".
  static absl::StatusOr<std::string> PerValue(const Attribute& sharding);
  // Annotations of the dictionary of an operation or an argument: sharding, frontend attributes.
  absl::Status Annotate(const Attribute& dictionary, InstrId id);

  // Names of attributes that annotate any operation.
  static constexpr absl::string_view kAnnotations[] = {kMhloFrontendAttributes, kMhloSharding,
                                                       kDialectSharding, kDialectShardingRule};

  // `text` as the name of an instruction; `otherwise` if nothing is left of it.
  static std::string LegalName(absl::string_view text, absl::string_view otherwise);

  // E035 (kUnimplemented) for `what`.
  static absl::Status Cannot(absl::string_view what);

 private:
  absl::Status ReadHeader();
  // E035 (kUnimplemented) for an entry of the dictionary that is not known. Null: it is absent.
  absl::Status CheckKnown(const Attribute* dictionary, absl::string_view of,
                          absl::Span<const absl::string_view> known) const;
  absl::Status CheckFunction(const Operation& function) const;
  absl::Status ReadMesh(const Operation& op);
  absl::Status PlaceOpWithoutResults(absl::string_view text, InstrId id);
  absl::Status ReadMain(const Operation& function);
  absl::Status ReadEntryLayouts();
  // Gives the shapes the layouts that the module's attribute has, if it is there.
  absl::Status WithLayouts(absl::string_view layouts, absl::string_view tiles,
                           std::vector<const Shape*>* shapes);
  absl::StatusOr<InstrId> Parameter(const Operation& function, CompId comp, size_t k);
  // The value of a result of main, with the sharding that it has.
  absl::StatusOr<InstrId> Result(const Operation& function, CompId comp, size_t k, InstrId value);
  // Gives the root the GSPMD shardings of main's results.
  absl::Status ShardRoot(CompId comp, size_t results, InstrId* root);

  const Bytecode& code_;
  Module& module_;
  Locations locations_;
  UniqueNames names_, comp_names_;
  std::vector<InstrId> instr_of_;
  std::vector<const Operation*> givers_;
  absl::flat_hash_map<absl::string_view, const Operation*> functions_;
  absl::flat_hash_map<absl::string_view, CompId> read_;
  absl::flat_hash_map<uint32_t, const Shape*> shapes_;
  std::vector<std::pair<std::string, std::string>> meshes_;
  std::vector<absl::string_view> result_shardings_;  // of GSPMD
  int depth_ = 0;                                    // of calls and regions
};

}  // namespace shardcall::inline internal::stablehlo

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MODULE_READER_H_
