// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/handler_traits.h"

#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
namespace {

// The dimension of operand 0 that factor `f` alone makes up, or -1.
int DimOf(const ShardingRule& rule, int f) {
  const TensorFactors& tensor = rule.operands[0];
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d].size() == 1 && tensor.dims[d][0] == f) return static_cast<int>(d);
  }
  return -1;
}

}  // namespace

bool HandlesPermutation(const Module& module, const Instruction& instr, const ShardingRule& rule,
                        int f) {
  const int d = rule.operands.empty() ? -1 : DimOf(rule, f);
  if (d < 0) return false;
  // There are no ranges of nothing to fetch.
  if (module.instr(module.operands(instr)[0]).shape->dim(d) == 0) return false;
  if (instr.shape->IsArray() && d < instr.shape->rank() && instr.shape->dim(d) == 0) return false;
  switch (instr.opcode) {
    case Opcode::kSlice:
    case Opcode::kReverse: return true;
    case Opcode::kPad: return instr.as<PadAttrs>().interior[d] == 0;
    case Opcode::kConcatenate: {
      // Every operand has a piece on every shard, so that one factor shards all.
      for (InstrId o : module.operands(instr)) {
        if (module.instr(o).shape->dim(d) == 0) return false;
      }
      return true;
    }
    default: return false;
  }
}

double HandlerBytes(const Module& module, const Instruction& instr, const Decision& d) {
  const absl::Span<const InstrId> operands = module.operands(instr);
  double bytes = 0;
  switch (instr.opcode) {
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kReverse: {
      const Shape* in = module.instr(operands[0]).shape;
      const Sharding& s = *d.operands[0];
      for (int dim = 0; dim < s.rank(); ++dim) {
        if (!s.IsDimSharded(dim)) continue;
        const int64_t n = s.num_shards(dim);
        if (instr.opcode == Opcode::kSlice) {
          const auto& a = instr.as<SliceAttrs>();
          if (IsWholeSlice(a, in, dim)) continue;
          bytes += FetchBytes(SliceFetch(a, in, instr.shape, dim, n), LocalBytes(in, s));
        } else if (instr.opcode == Opcode::kPad) {
          const auto& a = instr.as<PadAttrs>();
          if (a.low[dim] == 0 && a.high[dim] == 0) continue;
          bytes += FetchBytes(PadFetch(a, in, instr.shape, dim, n), LocalBytes(in, s));
        } else {
          for (int64_t r : instr.as<DimensionsAttrs>().dimensions) {
            if (r == dim) bytes += FetchBytes(ReverseFetch(in, dim, n), LocalBytes(in, s));
          }
        }
      }
      return bytes;
    }
    case Opcode::kConcatenate: {
      const int dim = static_cast<int>(instr.as<DimensionsAttrs>().dimensions[0]);
      if (!d.produced[0]->IsDimSharded(dim)) return 0;
      int64_t offset = 0;
      for (size_t k = 0; k < operands.size(); ++k) {
        const Shape* in = module.instr(operands[k]).shape;
        bytes += FetchBytes(
            ConcatenateFetch(in, instr.shape, dim, d.produced[0]->num_shards(dim), offset),
            LocalBytes(in, *d.operands[k]));
        offset += in->dim(dim);
      }
      return bytes;
    }
    default: return 0;
  }
}

bool IsDrawnOnce(const Instruction& instr) {
  return instr.opcode == Opcode::kRng || instr.opcode == Opcode::kRngGetAndUpdateState;
}

bool IsTransfer(Opcode opcode) { return GetOpcodeInfo(opcode).attrs == AttrKind::kSendRecv; }

InstrId TransferStart(const Module& module, InstrId end) {
  const Opcode opcode = module.instr(end).opcode;
  if (opcode != Opcode::kSendDone && opcode != Opcode::kRecvDone) return InstrId();
  const InstrId start = module.operand(end, 0);
  const Opcode started = opcode == Opcode::kSendDone ? Opcode::kSend : Opcode::kRecv;
  return module.instr(start).opcode == started ? start : InstrId();
}

bool IsFreeToGather(const Instruction& instr) {
  return HasTrait(instr.opcode, kCollectiveOp);
}

}  // namespace shardcall
