// SPDX-License-Identifier: Apache-2.0
// Makes the program of a fused step: registers, instructions, block size.
#include "partitioner/runtime/fused_step.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "partitioner/runtime/fuse.h"
#include "partitioner/runtime/fusible.h"

namespace shardcall {
namespace {

constexpr int64_t kBlockBytes = 24 << 10;  // of all that a block touches
constexpr int64_t kLeastBlock = 512, kMostBlock = 4096;

class FusedBuilder {
 public:
  FusedBuilder(ProgramComputation* comp, const StepSurvey& survey, const std::vector<bool>& needed)
      : comp_(*comp), survey_(survey), needed_(needed), data_(new FusedData) {}

  Step Build(const std::vector<int>& members) {
    data_->elements = survey_.elements(members[0]);
    step_.opcode = Opcode::kFusion;
    step_.fn = RunFused;
    step_.name = comp_.steps[members.back()].name;
    for (int s : members) Add(comp_.steps[s]);
    FindReuse();
    AllocateScratch();
    ChooseBlock();
    step_.data = std::move(data_);
    return std::move(step_);
  }

 private:
  struct Load {
    int32_t slot;
    FusedView view;
    int reg;
  };

  int NewRegister(FusedRegister::Place place, int index, int bytes) {
    data_->registers.push_back({place, index, bytes});
    return static_cast<int>(data_->registers.size()) - 1;
  }
  int Operand(int32_t slot) {
    const auto [it, added] = operand_.try_emplace(slot, static_cast<int>(step_.operands.size()));
    if (added) {
      step_.operands.push_back({slot, false});
      has_view_.push_back(false);
    }
    return it->second;
  }

  // The register that holds operand k of a step, with the instruction that fills
  // it where it has to be filled.
  int Input(const Step& step, const ElementwiseData& data, int k) {
    ValueView value = survey_.Resolve(step.operands[k].slot);
    if (data.spread[k]) value.whole = false;
    const ElementType type = data.kernel.in_type[k];
    const bool bf16 = type == ElementType::kBF16;
    const int bytes = bf16 ? 4 : ElementTypeBytes(type);
    if (value.whole) {
      const auto it = whole_.find(value.slot);
      if (it != whole_.end()) return it->second;
      const int operand = Operand(value.slot);
      int reg = NewRegister(FusedRegister::kOperand, operand, ElementTypeBytes(type));
      if (bf16) {
        FusedInstr decode;
        decode.kind = FusedInstr::kDecode;
        decode.in[0] = reg;
        decode.out = reg = NewRegister(FusedRegister::kScratch, -1, bytes);
        data_->instrs.push_back(decode);
      }
      whole_[value.slot] = reg;
      return reg;
    }
    for (const Load& load : loads_) {
      if (load.slot == value.slot && SameView(load.view, value.view)) return load.reg;
    }
    FusedInstr load;
    load.kind = FusedInstr::kLoadView;
    load.operand = Operand(value.slot);
    load.view = value.view;
    load.out = NewRegister(FusedRegister::kScratch, -1, bytes);
    has_view_[load.operand] = true;
    data_->views_of_bf16 |= bf16;
    loads_.push_back({value.slot, value.view, load.out});
    (value.view.scalar() ? data_->once : data_->instrs).push_back(load);
    return load.out;
  }
  static bool SameView(const FusedView& a, const FusedView& b) {
    return a.offset == b.offset &&
           std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                      [](const FusedView::Loop& x, const FusedView::Loop& y) {
                        return x.size == y.size && x.stride == y.stride;
                      });
  }

  void Add(const Step& step) {
    const auto& data = static_cast<const ElementwiseData&>(*step.data);
    const LaneKernel& kernel = data.kernel;
    const int32_t slot = step.results[0];
    const bool bf16 = kernel.out_type == ElementType::kBF16;
    bool wide = bf16;
    FusedInstr compute;
    for (int k = 0; k < kernel.arity; ++k) {
      compute.in[k] = Input(step, data, k);
      wide |= kernel.in_type[k] == ElementType::kBF16;
    }
    if (wide && !bf16 && step.opcode == Opcode::kConvert && kernel.out_type == ElementType::kF32 &&
        !needed_[slot]) {
      whole_[slot] = compute.in[0];  // is held as f32 already
      return;
    }
    compute.kernel = wide ? data.wide : kernel;
    compute.round = bf16 && kernel.encode;  // not what moves or works on bits
    const int bytes = bf16 ? 4 : ElementTypeBytes(kernel.out_type);
    const bool direct = needed_[slot] && !bf16;
    const int result = static_cast<int>(step_.results.size());
    compute.out = NewRegister(direct ? FusedRegister::kResult : FusedRegister::kScratch,
                              direct ? result : -1, bytes);
    whole_[slot] = compute.out;
    data_->instrs.push_back(compute);
    if (!needed_[slot]) return;
    step_.results.push_back(slot);
    step_.shapes.push_back(step.shapes[0]);
    if (bf16) {
      FusedInstr encode;
      encode.kind = FusedInstr::kEncode;
      encode.in[0] = compute.out;
      encode.out = NewRegister(FusedRegister::kResult, result, ElementTypeBytes(kernel.out_type));
      data_->instrs.push_back(encode);
    }
  }

  // A result may be written over an operand that no later instruction reads, as
  // elements are as wide and element i of both is at the same place.
  void FindReuse() {
    std::vector<int> last_read(step_.operands.size(), -1), width(step_.operands.size(), 0);
    std::vector<int> written(step_.results.size(), -1), result_width(step_.results.size(), 0);
    for (size_t i = 0; i < data_->instrs.size(); ++i) {
      const FusedInstr& instr = data_->instrs[i];
      for (int reg : instr.in) {
        if (reg < 0 || data_->registers[reg].place != FusedRegister::kOperand) continue;
        last_read[data_->registers[reg].index] = static_cast<int>(i);
        width[data_->registers[reg].index] = data_->registers[reg].bytes;
      }
      const FusedRegister& out = data_->registers[instr.out];
      if (out.place != FusedRegister::kResult) continue;
      written[out.index] = static_cast<int>(i);
      result_width[out.index] = out.bytes;
    }
    data_->reuse.resize(step_.results.size());
    for (size_t r = 0; r < written.size(); ++r) {
      for (size_t k = 0; k < last_read.size(); ++k) {
        if (!has_view_[k] && width[k] == result_width[r] && last_read[k] <= written[r]) {
          data_->reuse[r].push_back(static_cast<int>(k));
        }
      }
    }
  }

  // Scratch slots, each taken from the first write of a register to its last read.
  void AllocateScratch() {
    std::vector<int> last(data_->registers.size(), -1);
    for (size_t i = 0; i < data_->instrs.size(); ++i) {
      for (int reg : data_->instrs[i].in) {
        if (reg >= 0) last[reg] = static_cast<int>(i);
      }
    }
    std::vector<int> free;
    auto allocate = [&](int reg) {
      FusedRegister& r = data_->registers[reg];
      if (r.place != FusedRegister::kScratch) return;
      if (free.empty()) free.push_back(data_->scratch_slots++);
      r.index = free.back();
      free.pop_back();
      data_->scratch_slot_bytes = std::max<int64_t>(data_->scratch_slot_bytes, r.bytes);
    };
    for (const FusedInstr& instr : data_->once) allocate(instr.out);  // for the whole run
    std::vector<bool> pinned(data_->registers.size());
    for (const FusedInstr& instr : data_->once) pinned[instr.out] = true;
    for (size_t i = 0; i < data_->instrs.size(); ++i) {
      const FusedInstr& instr = data_->instrs[i];
      allocate(instr.out);
      for (int k = 0; k < 3; ++k) {
        const int reg = instr.in[k];
        const bool again = reg >= 0 && std::find(instr.in, instr.in + k, reg) != instr.in + k;
        if (reg >= 0 && !again && !pinned[reg] && last[reg] == static_cast<int>(i) &&
            data_->registers[reg].place == FusedRegister::kScratch) {
          free.push_back(data_->registers[reg].index);
        }
      }
    }
  }

  void ChooseBlock() {
    int64_t bytes = data_->scratch_slots * data_->scratch_slot_bytes;
    for (const FusedRegister& r : data_->registers) {
      if (r.place != FusedRegister::kScratch) bytes += r.bytes;
    }
    const int64_t fitting = kBlockBytes / std::max<int64_t>(bytes, 1) / 64 * 64;
    data_->block = std::clamp(fitting, kLeastBlock, kMostBlock);
    // A block that is one row of a broadcast reads the row where it lies.
    for (const FusedInstr& instr : data_->instrs) {
      if (instr.kind != FusedInstr::kLoadView) continue;
      const FusedView::Loop inner = instr.view.loops.back();
      if (inner.stride == 1 && inner.size >= kLeastBlock / 2 && inner.size <= kMostBlock) {
        data_->block = inner.size;
      }
    }
  }

  ProgramComputation& comp_;
  const StepSurvey& survey_;
  const std::vector<bool>& needed_;
  std::unique_ptr<FusedData> data_;
  Step step_;
  absl::flat_hash_map<int32_t, int> operand_, whole_;  // by slot: operand; register
  std::vector<bool> has_view_;                         // by operand
  std::vector<Load> loads_;
};

}  // namespace

Step MakeFusedStep(ProgramComputation* comp, const StepSurvey& survey,
                   const std::vector<int>& members, const std::vector<bool>& needed) {
  return FusedBuilder(comp, survey, needed).Build(members);
}

}  // namespace shardcall
