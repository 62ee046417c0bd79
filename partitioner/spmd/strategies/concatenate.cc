// SPDX-License-Identifier: Apache-2.0
// Concatenate along a sharded dimension: each device fetches from every operand the range that its
// tile of the result may need, and selects between them.
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"
#include "shardcall/partitioner/spmd/strategies/fetched.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {
namespace {

// No operand may be empty, since all share the factor of the sharded dimension.
bool Accepts(const Module& module, const Instruction& instr, int d) {
  for (InstrId o : module.operands(instr)) {
    if (module.instr(o).shape->dim(d) == 0) return false;
  }
  return true;
}

double Bytes(const Module& module, const Instruction& instr, const Decision& d) {
  const int dim = static_cast<int>(instr.as<DimensionsAttrs>().dimensions[0]);
  if (!d.produced[0]->IsDimSharded(dim)) return 0;
  const absl::Span<const InstrId> operands = module.operands(instr);
  double bytes = 0;
  int64_t offset = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape* in = module.instr(operands[k]).shape;
    bytes +=
        FetchBytes(ConcatenateFetch(in, instr.shape, dim, d.produced[0]->num_shards(dim), offset),
                   LocalBytes(in, *d.operands[k]));
    offset += in->dim(dim);
  }
  return bytes;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  const int d = static_cast<int>(op.instr.as<DimensionsAttrs>().dimensions[0]);
  const Sharding* out = op.decision.produced[0];
  if (!out->IsDimSharded(d)) return l.Clone(op, op.operands);
  const int64_t n = out->num_shards(d);
  InstrId result, index;
  int64_t offset = 0;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const InstrId part =
        FetchOperand(l, op, static_cast<int>(k), op.operands[k], d, out->dim(d),
                     ConcatenateFetch(op.operand_shapes[k], op.instr.shape, d, n, offset));
    if (k == 0) {
      result = part;
      index = ResultIndex(l, op, part, d);
    } else {
      result = b.Select(b.Compare(Direction::kLt, index, Splat(b, offset, index)), result, part);
    }
    offset += op.operand_shapes[k]->dim(d);
  }
  return {result};
}

}  // namespace

constexpr Strategy kConcatenateStrategy{
    .name = "fetch to concatenate", .accepts = Accepts, .bytes = Bytes, .emit = Emit};

}  // namespace shardcall::inline internal
