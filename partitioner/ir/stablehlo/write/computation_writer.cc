// SPDX-License-Identifier: Apache-2.0
// Computations as blocks of operations, and what all ops share.
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/plain_ops.h"
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

constexpr int kMaxDepth = 60;  // of regions; readers of bytecode stop at 64

}  // namespace

WriteFn FindWriter(Opcode opcode) {
  const auto& writers = MadeAtFirstUse([] {
    auto* all = new std::array<WriteFn, kNumOpcodes>{};
    for (absl::Span<const WriteRow> rows :
         {WriteShapingRows(), WriteCombiningRows(), WriteControlRows(), WriteCallRows()}) {
      for (const WriteRow& row : rows) (*all)[static_cast<size_t>(row.opcode)] = row.write;
    }
    return all;
  });
  return writers[static_cast<size_t>(opcode)];
}

absl::StatusOr<ModuleWriter::Values> ModuleWriter::NewValues(InstrId id) {
  const Shape* shape = m_.instr(id).shape;
  Values values;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    const Shape* leaf = shape->leaf(k);
    if (!AttributePool::HasType(leaf)) {
      return Cannot(id, absl::StrCat("a value ", leaf->ToString(false)));
    }
    values.push_back(static_cast<uint32_t>(value_types_.size()));
    value_types_.push_back(pool_.Type(leaf));
  }
  SetValues(id, values);
  return values;
}

absl::Status ModuleWriter::AddArguments(CompId comp, WrittenBlock* block) {
  for (InstrId p : m_.comp(comp).parameters) {
    SHARDCALL_ASSIGN_OR_RETURN(const Values values, NewValues(p));
    block->arguments.insert(block->arguments.end(), values.begin(), values.end());
    block->argument_locations.resize(block->arguments.size(), locations_.Of(m_.instr(p).metadata));
  }
  return absl::OkStatus();
}

absl::Status ModuleWriter::WriteBody(CompId comp, absl::string_view terminator,
                                     WrittenBlock* block) {
  const Computation& c = m_.comp(comp);
  WrittenBlock* const around = std::exchange(block_, block);
  block->operations.reserve(c.instructions.size() + 1);
  for (InstrId id : c.instructions) {
    if (m_.instr(id).opcode != Opcode::kParameter) SHARDCALL_RETURN_IF_ERROR(Write(id));
  }
  WrittenOperation last;
  last.name = pool_.OpName(terminator);
  last.location = pool_.UnknownLocation();
  last.operands.assign(values(c.root).begin(), values(c.root).end());
  block->operations.push_back(std::move(last));
  block_ = around;
  return absl::OkStatus();
}

absl::StatusOr<WrittenRegion> ModuleWriter::WriteRegion(InstrId user, CompId comp, bool arguments) {
  if (depth_ >= kMaxDepth) return Cannot(user, "computations nested too deeply");
  ++depth_;
  WrittenRegion region;
  if (arguments) SHARDCALL_RETURN_IF_ERROR(AddArguments(comp, &region.block));
  SHARDCALL_RETURN_IF_ERROR(WriteBody(comp, "stablehlo.return", &region.block));
  --depth_;
  return region;
}

absl::StatusOr<WrittenRegion> ModuleWriter::RegionOf(InstrId user, CompId comp) {
  return WriteRegion(user, comp, /*arguments=*/true);
}

absl::StatusOr<WrittenRegion> ModuleWriter::RegionOver(InstrId user, CompId comp,
                                                       absl::Span<const uint32_t> values) {
  for (InstrId p : m_.comp(comp).parameters) {
    const size_t count = static_cast<size_t>(m_.instr(p).shape->num_leaves());
    SetValues(p, Values(values.begin(), values.begin() + count));
    values.remove_prefix(count);
  }
  return WriteRegion(user, comp, /*arguments=*/false);
}

absl::Status ModuleWriter::Write(InstrId id) {
  const Instruction& i = m_.instr(id);
  if (const RareAttributes* rare = m_.rare(i)) {
    if (!rare->control_predecessors.empty()) return Cannot(id, "control edges");
    if (!rare->result_accuracy.empty()) return Cannot(id, "a result_accuracy");
  }
  if (!i.backend_config.empty() && i.opcode != Opcode::kCustomCall) {
    return Cannot(id, "a backend_config");
  }
  if (const WriteFn write = FindWriter(i.opcode); write != nullptr) return write(*this, id);
  const OpcodeInfo& info = GetOpcodeInfo(i.opcode);
  if (!IsPlain(info)) return Cannot(id, absl::StrCat("an op ", info.text));
  if (info.attrs == AttrKind::kResultAccuracy &&
      !i.as<ResultAccuracyAttrs>().result_accuracy.empty()) {
    return Cannot(id, "a result_accuracy");
  }
  return Emit(id);
}

absl::Status ModuleWriter::Emit(InstrId id, Attrs attributes, std::vector<WrittenRegion> regions) {
  absl::InlinedVector<uint32_t, 8> operands;
  for (InstrId o : m_.operands(id)) {
    operands.insert(operands.end(), values(o).begin(), values(o).end());
  }
  return EmitOver(id, GetOpcodeInfo(m_.instr(id).opcode).stablehlo, operands, std::move(attributes),
                  std::move(regions));
}

absl::Status ModuleWriter::EmitOver(InstrId id, absl::string_view op,
                                    absl::Span<const uint32_t> operands, Attrs attributes,
                                    std::vector<WrittenRegion> regions) {
  const Instruction& i = m_.instr(id);
  WrittenOperation out;
  out.name = pool_.OpName(op);
  out.location = locations_.Of(i.metadata);
  out.operands.assign(operands.begin(), operands.end());
  SHARDCALL_ASSIGN_OR_RETURN(out.results, NewValues(id));
  Annotate(i, &attributes);
  if (!attributes.empty()) out.attributes = pool_.Dictionary(attributes);
  out.regions = std::move(regions);
  block_->operations.push_back(std::move(out));
  return absl::OkStatus();
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
