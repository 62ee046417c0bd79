// SPDX-License-Identifier: Apache-2.0
// Makes the operations of a StableHLO module from an HLO module.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_MODULE_WRITER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_MODULE_WRITER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_writer.h"
#include "shardcall/partitioner/ir/stablehlo/write/location_writer.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class ModuleWriter {
 public:
  ModuleWriter(const Module& module, const StablehloOptions& options);
  absl::StatusOr<std::string> Run();

  const Module& module() const { return m_; }
  const StablehloOptions& options() const { return options_; }
  AttributePool& pool() { return pool_; }

  // The values of an instruction, one for each leaf of its shape. Those of a computation that is
  // written more than once are the last ones.
  using Values = absl::InlinedVector<uint32_t, 2>;
  const Values& values(InstrId id) const { return values_[id.value]; }
  void SetValues(InstrId id, Values values) { values_[id.value] = std::move(values); }

  // Appends the operation that the table of ops names, over the values of the operands. Its results
  // become the values of the instruction. Annotations and metadata of the instruction are added.
  absl::Status Emit(InstrId id, Attrs attributes = {}, std::vector<WrittenRegion> regions = {});
  // The same over other operands, with a name of its own.
  absl::Status EmitOver(InstrId id, absl::string_view op, absl::Span<const uint32_t> operands,
                        Attrs attributes = {}, std::vector<WrittenRegion> regions = {});

  // The computation as a region with an argument for each leaf of its parameters.
  absl::StatusOr<WrittenRegion> RegionOf(InstrId user, CompId comp);
  // The computation as a region without arguments, whose parameters have the values given.
  absl::StatusOr<WrittenRegion> RegionOver(InstrId user, CompId comp,
                                           absl::Span<const uint32_t> values);
  // The computation as a private function: a reference to it.
  uint32_t FunctionOf(CompId comp);

  // E149 for the instruction, which has `what`.
  absl::Status Cannot(InstrId id, absl::string_view what) const;

 private:
  absl::Status CheckHeader() const;
  uint32_t ModuleAttributes();
  void AddLayouts(absl::Span<const Shape* const> shapes, absl::string_view layouts,
                  absl::string_view tiles, Attrs* attributes);
  absl::Status AddFunction(CompId comp, absl::string_view name);
  absl::StatusOr<uint32_t> ArgumentAttributes(InstrId parameter, int64_t number);
  absl::StatusOr<uint32_t> ResultAttributes(CompId comp, size_t results);
  // Adds sharding and frontend attributes.
  void Annotate(const Instruction& i, Attrs* attributes);
  // `frontend` may be null.
  void AddFrontend(const FrontendAttributes* frontend, Attrs* attributes);
  // Arguments of the block, which become the values of the parameters.
  absl::Status AddArguments(CompId comp, WrittenBlock* block);
  absl::Status WriteBody(CompId comp, absl::string_view terminator, WrittenBlock* block);
  absl::Status Write(InstrId id);
  // A region whose parameters have their values already, or `arguments` in its block.
  absl::StatusOr<WrittenRegion> WriteRegion(InstrId user, CompId comp, bool arguments);
  // A value for each leaf of the instruction's shape, which become the instruction's.
  absl::StatusOr<Values> NewValues(InstrId id);

  const Module& m_;
  const StablehloOptions& options_;
  AttributePool pool_;
  LocationWriter locations_;
  UniqueNames function_names_;
  std::vector<Values> values_;  // by instruction
  std::vector<uint32_t> value_types_;
  std::vector<WrittenOperation> functions_;
  std::vector<std::pair<CompId, absl::string_view>> to_write_;
  absl::flat_hash_map<uint32_t, absl::string_view> function_of_;  // by computation
  WrittenBlock* block_ = nullptr;                                 // that operations are appended to
  int depth_ = 0;                                                 // of regions
};

// Writes one instruction.
using WriteFn = absl::Status (*)(ModuleWriter& w, InstrId id);
struct WriteRow {
  Opcode opcode;
  WriteFn write;
};
// Null for ops that have only operands, and for those that are not written.
WriteFn FindWriter(Opcode opcode);

// The rows of the families of ops (write_*.cc).
absl::Span<const WriteRow> WriteShapingRows();
absl::Span<const WriteRow> WriteCombiningRows();
absl::Span<const WriteRow> WriteControlRows();
absl::Span<const WriteRow> WriteCallRows();

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITE_MODULE_WRITER_H_
