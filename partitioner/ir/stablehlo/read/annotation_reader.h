// SPDX-License-Identifier: Apache-2.0
// Shardings and frontend attributes of a StableHLO module, its operations and arguments, as HLO has
// them.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_ANNOTATION_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_ANNOTATION_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class AnnotationReader {
 public:
  // Names of attributes that annotate any operation.
  static constexpr absl::string_view kNames[] = {kMhloFrontendAttributes, kMhloSharding,
                                                 kDialectSharding, kDialectShardingRule};

  // Both must outlive this object.
  AnnotationReader(const Bytecode& bytecode, Module* module) : code_(bytecode), module_(*module) {}

  // Annotations of the module: an operation sdy.mesh, then the frontend attributes of the header.
  absl::Status ReadMesh(const Operation& op);
  absl::Status ReadHeader();
  // The mesh of an operation sdy.mesh. E035 if there is none of that name.
  absl::StatusOr<Mesh> MeshNamed(absl::string_view name) const;
  // Annotations of the dictionary of an operation or an argument: sharding, frontend attributes.
  absl::Status Annotate(const Attribute& dictionary, InstrId id);

  // Adds entries to the instruction's frontend attributes, in the place of those of equal names.
  using Entries = std::vector<std::pair<absl::string_view, absl::string_view>>;
  void AddFrontend(InstrId id, const Entries& entries);
  void AddFrontend(InstrId id, absl::string_view key, absl::string_view value) {
    AddFrontend(id, Entries{{key, value}});
  }
  // "#sdy.sharding<..>", of one value, as "#sdy.sharding_per_value<[<..>]>".
  static absl::StatusOr<std::string> PerValue(const Attribute& sharding);

 private:
  // The frontend attributes of a program or an operation: a dictionary of strings.
  absl::StatusOr<Entries> FrontendEntries(const Attribute& dictionary) const;
  absl::Status PlaceOpWithoutArrays(absl::string_view text, InstrId id);

  const Bytecode& code_;
  Module& module_;
  std::vector<std::pair<std::string, std::string>> meshes_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_ANNOTATION_READER_H_
