// SPDX-License-Identifier: Apache-2.0
// Makes the program of a fused step: registers, instructions, block size.
#include "shardcall/partitioner/runtime/fuse/fused_step.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/runtime/fuse/fuse.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"

namespace shardcall {
inline namespace internal {
namespace {

// Bytes that a block accesses: a third of a small L1 cache, which leaves room for prefetched lines.
constexpr int64_t kBlockBytes = 12 << 10;
constexpr int64_t kLeastFitting = 320;  // with fewer elements, calls of kernels cost too much
constexpr int64_t kLeastBlock = 256, kMostBlock = 4096;
constexpr int64_t kMostTableBytes = 64 << 10;

class FusedBuilder {
 public:
  FusedBuilder(ProgramComputation* comp, const StepSurvey& survey, const std::vector<bool>& needed)
      : comp_(*comp), survey_(survey), needed_(needed), data_(new FusedData) {}

  Step Build(const std::vector<int>& members) {
    data_->elements = survey_.elements(members[0]);
    step_.opcode = Opcode::kFusion;
    step_.fn = RunFused;
    step_.name = comp_.steps[members.back()].name;
    for (int s : members) {
      if (survey_.IsElementwise(s)) {
        Add(comp_.steps[s]);
      } else {
        AddReduction(comp_.steps[s]);
      }
    }
    FusePolynomials(data_.get());
    FindReuse();
    AllocateScratch();
    ChooseBlock();
    step_.data = std::move(data_);
    return std::move(step_);
  }

 private:
  using Computed = std::tuple<LaneFn, int, int, int, int64_t, int64_t, int, bool>;
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

  // The register that holds operand k of a step. Adds an instruction that fills it if it needs one.
  int Input(const Step& step, const ElementwiseData& data, int k) {
    ValueView value = survey_.Resolve(step.operands[k].slot);
    if (data.spread[k] && data_->elements > 1) value.whole = false;
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
    has_view_[load.operand] = true;
    data_->views_of_bf16 |= bf16;
    const int64_t period = Period(value.view);
    // A row of full elements is read in place.
    const bool direct = !bf16 && value.view.loops.size() == 2 && value.view.loops[1].stride == 1 &&
                        period >= kLeastBlock;
    if (period > 0 && !direct && period * bytes <= kMostTableBytes &&
        data_->elements >= 4 * period) {
      const int table = static_cast<int>(data_->tables.size());
      load.out = NewRegister(FusedRegister::kTable, table, bytes);
      data_->tables.push_back({load.operand, value.view, period, load.out});
      loads_.push_back({value.slot, value.view, load.out});
      return load.out;
    }
    load.out = NewRegister(FusedRegister::kScratch, -1, bytes);
    if (value.view.scalar() || value.view.loops.back().stride == 0) ++singles_;
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

  // The number of elements after which the view repeats itself; 0: never.
  static int64_t Period(const FusedView& view) {
    if (view.loops.size() < 2 || view.loops[0].stride != 0) return 0;
    int64_t period = 1;
    for (size_t k = 1; k < view.loops.size(); ++k) period *= view.loops[k].size;
    return period;
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
      whole_[slot] = compute.in[0];  // held as f32 already
      return;
    }
    compute.kernel = wide ? data.wide : kernel;
    compute.round = bf16 && kernel.encode;  // not for ops that move elements or work on bits
    const auto [same, first] = computed_.try_emplace(
        Computed{compute.kernel.fn, compute.in[0], compute.in[1], compute.in[2],
                 compute.kernel.params[0], compute.kernel.params[1],
                 static_cast<int>(kernel.out_type), compute.round},
        static_cast<int>(data_->registers.size()));
    if (!first && !needed_[slot]) {
      whole_[slot] = same->second;  // same op on the same operands
      return;
    }
    for (int k = 0; k < kernel.arity; ++k) {
      compute.same_form[k] = FindFusedForm(step.opcode, compute.kernel, k, compute.round);
    }
    compute.form = FindFusedForm(step.opcode, compute.kernel, -1, compute.round);
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

  void AddReduction(const Step& step) {
    const int32_t slot = step.results[0];
    if (!needed_[slot]) return;
    FusedReduceSpec reduction;
    reduction.data = static_cast<const MonoidReduceData&>(*step.data);
    reduction.init = Operand(step.operands[1].slot);
    has_view_[reduction.init] = true;
    reduction.result = static_cast<int>(step_.results.size());
    step_.results.push_back(slot);
    step_.shapes.push_back(step.shapes[0]);
    FusedInstr reduce;
    reduce.kind = FusedInstr::kReduce;
    reduce.in[0] = whole_.at(survey_.Resolve(step.operands[0].slot).slot);
    reduce.reduction = static_cast<int>(data_->reductions.size());
    data_->instrs.push_back(reduce);
    data_->reductions.push_back(std::move(reduction));
  }

  // A result may overwrite an operand that no later instruction reads, since elements have the same
  // width, and element i of both is at the same place.
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
      if (instr.out < 0) continue;
      const FusedRegister& out = data_->registers[instr.out];
      if (out.place != FusedRegister::kResult) continue;
      written[out.index] = static_cast<int>(i);
      result_width[out.index] = out.bytes;
    }
    data_->reuse.resize(step_.results.size());
    for (size_t r = 0; r < written.size(); ++r) {
      for (size_t k = 0; written[r] >= 0 && k < last_read.size(); ++k) {
        if (!has_view_[k] && width[k] == result_width[r] && last_read[k] <= written[r]) {
          data_->reuse[r].push_back(static_cast<int>(k));
        }
      }
    }
  }

  // Allocates scratch slots, each from the first write of a register to its last read.
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
    if (data_->views_of_bf16) data_->scratch_slot_bytes = 2;          // at least 2 bytes
    for (const FusedInstr& instr : data_->once) allocate(instr.out);  // for the whole run
    std::vector<bool> pinned(data_->registers.size());
    for (const FusedInstr& instr : data_->once) pinned[instr.out] = true;
    for (size_t i = 0; i < data_->instrs.size(); ++i) {
      const FusedInstr& instr = data_->instrs[i];
      if (instr.out >= 0) allocate(instr.out);
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
    // Slots of single elements are not counted, since they hardly use the cache.
    const int64_t slots = std::max(data_->scratch_slots - singles_, 1);
    int64_t bytes = slots * data_->scratch_slot_bytes;
    for (const FusedRegister& r : data_->registers) {
      if (r.place != FusedRegister::kScratch) bytes += r.bytes;
    }
    const int64_t fitting =
        std::clamp(kBlockBytes / std::max<int64_t>(bytes, 1) / 64 * 64, kLeastFitting, kMostBlock);
    data_->block = fitting;
    // Blocks are whole rows of a broadcast, or parts of one row, so that they can read the row in
    // place, or as one element.
    int64_t row = 0;
    for (const FusedInstr& instr : data_->instrs) {
      if (instr.kind != FusedInstr::kLoadView) continue;
      const FusedView::Loop inner = instr.view.loops.back();
      if (inner.stride <= 1) row = std::max(row, inner.size);
    }
    for (const FusedTable& table : data_->tables) row = std::max(row, table.period);
    if (row == 0) return;
    if (row <= fitting) {
      data_->block = fitting / row * row;
      return;
    }
    for (int64_t parts = (row + fitting - 1) / fitting; row / parts >= kLeastBlock / 2; ++parts) {
      if (row % parts != 0 || row / parts % 16 != 0) continue;
      data_->block = row / parts;
      return;
    }
    if (row <= kMostBlock) data_->block = row;
  }

  ProgramComputation& comp_;
  const StepSurvey& survey_;
  const std::vector<bool>& needed_;
  std::unique_ptr<FusedData> data_;
  Step step_;
  absl::flat_hash_map<int32_t, int> operand_, whole_;  // by slot: operand; register
  std::vector<bool> has_view_;                         // by operand
  std::vector<Load> loads_;
  absl::flat_hash_map<Computed, int> computed_;  // register
  int singles_ = 0;                              // registers that hold one element for most blocks
};

}  // namespace

Step MakeFusedStep(ProgramComputation* comp, const StepSurvey& survey,
                   const std::vector<int>& members, const std::vector<bool>& needed) {
  return FusedBuilder(comp, survey, needed).Build(members);
}

}  // namespace internal
}  // namespace shardcall
