// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/plain_ops.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/simplify/batch_norms.h"
#include "shardcall/partitioner/ir/simplify/merged_dims.h"
#include "shardcall/partitioner/ir/simplify/placed_windows.h"
#include "shardcall/partitioner/ir/simplify/separate_reduces.h"
#include "shardcall/partitioner/ir/simplify/sliced_pads.h"
#include "shardcall/partitioner/ir/simplify/transposed_operands.h"

namespace shardcall {
inline namespace internal {
namespace {

// The first reader of an op that gives something counts.
struct Reader {
  Opcode opcode;
  std::optional<CallExpansion> (*read)(const Module& module, InstrId id);
};
constexpr Reader kReaders[] = {
    {Opcode::kSlice, ReadSliceOfRow},
    {Opcode::kSlice, ReadSliceOfPad},
    {Opcode::kDynamicSlice, ReadPlacedSlice},
    {Opcode::kDynamicUpdateSlice, ReadUpdateOfAll},
    {Opcode::kGather, ReadGatherOfRows},
    {Opcode::kGather, ReadGatherOfParts},
    {Opcode::kScatter, ReadPlacedScatter},
    {Opcode::kScatter, ReadScatterOfRows},
    {Opcode::kScatter, ReadScatterOfParts},
    {Opcode::kReduce, ReadSeparateReduces},
    {Opcode::kReduce, ReadReduceOfMerged},
    {Opcode::kDot, ReadDotOfMerged},
    {Opcode::kDot, ReadDotOfTransposed},
    {Opcode::kBatchNormTraining, ReadBatchNormTraining},
    {Opcode::kBatchNormGrad, ReadBatchNormGrad},
};

std::optional<CallExpansion> Read(const Module& m, InstrId id) {
  for (const Reader& r : kReaders) {
    if (r.opcode != m.instr(id).opcode) continue;
    std::optional<CallExpansion> plainer = r.read(m, id);
    if (plainer.has_value()) return plainer;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rewritten> InPlainOps(const Module& m) {
  absl::flat_hash_map<InstrId, CallExpansion> plainer;
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (auto read = Read(m, InstrId(k))) plainer[InstrId(k)] = *std::move(read);
  }
  return Expand(m, std::move(plainer));
}

}  // namespace internal
}  // namespace shardcall
