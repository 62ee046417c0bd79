// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/fuse/fused_reduce.h"
#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

void Fill(int bytes, const void* element, void* to, int64_t n) {
  FillElements(bytes, static_cast<const char*>(element), static_cast<char*>(to), n);
}

class BlockRunner {
 public:
  BlockRunner(const FusedData& data, const StepRun& run)
      : data_(data), address_(data.registers.size()), single_(data.registers.size()) {
    for (int k = 0; k < run.num_inputs(); ++k) {
      sources_.push_back({run.in(k).data(), run.in(k).type()});
    }
  }
  // Sets the memory of results, which is known later than that of operands.
  void SetResults(absl::Span<char* const> results) {
    const int slots = data_.scratch_slots + (data_.views_of_bf16 ? 1 : 0);
    block_ = std::min(data_.block, data_.elements);
    // Slots begin at odd multiples of 64 bytes: powers of two would map all of them to the same few
    // cache sets.
    slot_bytes_ = OddLines(data_.scratch_slot_bytes * block_);
    int64_t bytes = slots * slot_bytes_;
    for (const FusedTable& table : data_.tables) {
      table_at_.push_back(bytes);
      bytes += OddLines(TableElements(table) * data_.registers[table.reg].bytes);
    }
    scratch_ = Tensor(ElementType::kU8, {bytes});
    char* memory = scratch_.MutableData();
    raw_ = memory + data_.scratch_slots * slot_bytes_;
    for (size_t r = 0; r < address_.size(); ++r) {
      const FusedRegister& reg = data_.registers[r];
      switch (reg.place) {
        case FusedRegister::kScratch: address_[r] = memory + reg.index * slot_bytes_; break;
        case FusedRegister::kResult: address_[r] = results[reg.index]; break;
        case FusedRegister::kTable: address_[r] = memory + table_at_[reg.index]; break;
        case FusedRegister::kOperand:
          address_[r] = const_cast<char*>(static_cast<const char*>(sources_[reg.index].data));
      }
    }
    base_ = address_;
    for (const FusedReduceSpec& spec : data_.reductions) {
      reductions_.emplace_back(spec.data, sources_[spec.init].data, results[spec.result]);
    }
  }
  void Run() {
    if (data_.elements == 0) return;
    for (const FusedTable& table : data_.tables) FillTable(table);
    for (const FusedInstr& instr : data_.once) {
      const Source& source = sources_[instr.operand];
      LoadSingle(instr, static_cast<const char*>(source.data) +
                            instr.view.offset * ElementTypeBytes(source.type));
    }
    pinned_ = single_;
    cursors_.resize(data_.instrs.size());
    PlanAdvance();
    settled_ = std::none_of(data_.instrs.begin(), data_.instrs.end(),
                            [](const FusedInstr& i) { return i.kind == FusedInstr::kLoadView; });
    for (int64_t begin = 0; begin < data_.elements; begin += block_) {
      const int64_t n = std::min(block_, data_.elements - begin);
      if (settled_ && begin > 0) {
        if (begin == block_) PlanPrefetch();
        RunSettledBlock(n, begin + 2 * block_ <= data_.elements);
      } else {
        for (size_t k = 0; k < data_.instrs.size(); ++k) RunInstr(data_.instrs[k], k, begin, n);
      }
      Advance(n);
    }
  }

 private:
  // Plans prefetches of the operand and result lines of the next block while this one is computed,
  // since blocks are too short for the hardware prefetcher.
  void PlanPrefetch() {
    constexpr int64_t kLine = 64, kFewBlocks = 8;
    if (data_.elements < kFewBlocks * block_) return;
    for (size_t r = 0; r < address_.size(); ++r) {
      const FusedRegister& reg = data_.registers[r];
      if (reg.place != FusedRegister::kOperand && reg.place != FusedRegister::kResult) continue;
      for (int64_t at = 0; at < block_ * reg.bytes; at += kLine) {
        ahead_.emplace_back(static_cast<int>(r), block_ * reg.bytes + at);
      }
    }
    const size_t instrs = std::max<size_t>(settled_instrs_.size(), 1);
    ahead_each_ = (ahead_.size() + instrs - 1) / instrs;
  }

  struct Source {
    const void* data;
    ElementType type;
  };
  struct Moving {
    int reg;
    int64_t at;      // index of the element
    int64_t period;  // period of its table; 0: no table
  };

  // The address at which a view's next block begins, and the number of elements that the innermost
  // loop still has from there; 0 if unknown.
  struct Cursor {
    const char* at = nullptr;
    int64_t left = 0;
  };

  // An instruction as the first block ran it. If no view is loaded block by block, all later blocks
  // run the same, since the set of single-element registers does not change.
  struct Settled {
    const FusedInstr* instr;
    LaneFn fn;  // null: depends on the instruction's kind
    bool one;   // on one element
  };
  void RunSettled(const Settled& s, int64_t n) {
    const FusedInstr& instr = *s.instr;
    if (s.fn == nullptr) return RunOther(instr, s.one ? 1 : n);
    const void* in[3];
    for (int k = 0; k < instr.kernel.arity; ++k) in[k] = address_[instr.in[k]];
    s.fn(in, address_[instr.out], s.one ? 1 : n, instr.kernel.params);
  }
  // `more`: another whole block follows.
  void RunSettledBlock(int64_t n, bool more) {
    size_t next = 0;
    for (const Settled& s : settled_instrs_) {
      const size_t until = more ? std::min(ahead_.size(), next + ahead_each_) : 0;
      for (; next < until; ++next) {
        const auto [reg, at] = ahead_[next];
        __builtin_prefetch(address_[reg] + at);
      }
      RunSettled(s, n);
    }
  }
  // Runs instructions without a single function.
  void RunOther(const FusedInstr& instr, int64_t n) {
    if (instr.kind != FusedInstr::kCompute) return RunInstr(instr, 0, /*begin=*/1, n);
    const void* in[3];
    for (int k = 0; k < instr.kernel.arity; ++k) in[k] = address_[instr.in[k]];
    instr.kernel.Run(in, address_[instr.out], n);
    if (instr.round) RoundToBf16(reinterpret_cast<float*>(address_[instr.out]), n);
  }

  static int64_t OddLines(int64_t bytes) { return (bytes + 127) / 128 * 128 + 64; }
  int64_t TableElements(const FusedTable& table) const {
    return table.period % block_ == 0   ? table.period
           : block_ % table.period == 0 ? block_
                                        : table.period + block_;
  }
  void FillTable(const FusedTable& table) {
    const Source& source = sources_[table.operand];
    const int64_t total = TableElements(table);
    const int bytes = data_.registers[table.reg].bytes;
    for (int64_t at = 0; at < total; at += block_) {
      const int64_t n = std::min(block_, total - at);
      char* to = base_[table.reg] + at * bytes;
      const bool bf16 = source.type == ElementType::kBF16;
      const void* from = LoadView(ElementTypeBytes(source.type), table.view, source.data,
                                  at % table.period, n, bf16 ? raw_ : to);
      if (bf16) {
        DecodeBf16(static_cast<const uint16_t*>(from), reinterpret_cast<float*>(to), n);
      } else if (from != to) {
        std::memcpy(to, from, n * bytes);
      }
    }
  }

  // Finds registers outside of scratch, except tables, which every block reads from their
  // beginning.
  void PlanAdvance() {
    for (size_t r = 0; r < address_.size(); ++r) {
      const FusedRegister& reg = data_.registers[r];
      if (reg.place == FusedRegister::kScratch) continue;
      const int64_t period =
          reg.place == FusedRegister::kTable ? data_.tables[reg.index].period : 0;
      if (period == 0 || block_ % period != 0) {
        moving_.push_back({static_cast<int>(r), 0, period});
      }
    }
  }
  // Advances them by n elements.
  void Advance(int64_t n) {
    for (Moving& m : moving_) {
      m.at += n;
      if (m.period != 0 && m.at >= m.period) m.at %= m.period;
      address_[m.reg] = base_[m.reg] + m.at * data_.registers[m.reg].bytes;
    }
  }

  void LoadSingle(const FusedInstr& instr, const char* from) {
    const Source& source = sources_[instr.operand];
    address_[instr.out] = const_cast<char*>(from);
    if (source.type == ElementType::kBF16) {
      address_[instr.out] = base_[instr.out];
      DecodeBf16(reinterpret_cast<const uint16_t*>(from),
                 reinterpret_cast<float*>(base_[instr.out]), 1);
    }
    single_[instr.out] = true;
  }
  void LoadBlock(const FusedInstr& instr, Cursor* cursor, int64_t begin, int64_t n) {
    const Source& source = sources_[instr.operand];
    const int bytes = ElementTypeBytes(source.type);
    const FusedView::Loop inner = instr.view.loops.back();
    if (cursor->left == 0) {
      int64_t rest = begin, offset = instr.view.offset;
      for (size_t k = instr.view.loops.size(); k-- > 0;) {
        const FusedView::Loop& loop = instr.view.loops[k];
        offset += rest % loop.size * loop.stride;
        rest /= loop.size;
      }
      cursor->at = static_cast<const char*>(source.data) + offset * bytes;
      cursor->left = inner.size - begin % inner.size;
    }
    const char* from = cursor->at;
    const bool together = inner.stride <= 1 && n <= cursor->left;
    cursor->left = together ? cursor->left - n : 0;
    cursor->at += n * inner.stride * bytes;
    if (together && inner.stride == 0) return LoadSingle(instr, from);
    single_[instr.out] = false;
    const bool bf16 = source.type == ElementType::kBF16;
    const void* block = from;
    if (!together) {
      block = LoadView(bytes, instr.view, source.data, begin, n, bf16 ? raw_ : base_[instr.out]);
    }
    if (bf16) {
      DecodeBf16(static_cast<const uint16_t*>(block), reinterpret_cast<float*>(base_[instr.out]),
                 n);
    } else {
      address_[instr.out] = static_cast<char*>(const_cast<void*>(block));
    }
  }

  // Fills the block of a register that holds one element for all.
  void Spread(int reg, int64_t n) {
    if (!single_[reg]) return;
    settled_ = settled_ && pinned_[reg];  // others must be filled in each block
    Fill(data_.registers[reg].bytes, address_[reg], base_[reg], pinned_[reg] ? block_ : n);
    address_[reg] = base_[reg];
    single_[reg] = false;
  }

  void Compute(const FusedInstr& instr, int64_t n) {
    const int arity = instr.kernel.arity;
    int singles = 0, single = -1;
    for (int k = 0; k < arity; ++k) {
      if (!single_[instr.in[k]]) continue;
      ++singles;
      if (single < 0 || instr.same_form[k] != nullptr) single = k;
    }
    const bool scratch = data_.registers[instr.out].place == FusedRegister::kScratch;
    single_[instr.out] = scratch && singles == arity;
    const bool same = !single_[instr.out] && singles > 0 && instr.same_form[single] != nullptr;
    const void* in[3];
    for (int k = 0; k < arity; ++k) {
      if (!single_[instr.out] && !(same && k == single)) Spread(instr.in[k], n);
      in[k] = address_[instr.in[k]];
    }
    if (single_[instr.out]) n = 1;
    char* out = address_[instr.out];
    const LaneKernel& kernel = instr.kernel;
    const bool bare = !kernel.decode && !kernel.encode && !kernel.wrap && !instr.round;
    const LaneFn fn = same ? instr.same_form[single] : bare ? kernel.fn : instr.form;
    if (settled_) settled_instrs_.push_back({&instr, fn, single_[instr.out]});
    if (fn != nullptr) return fn(in, out, n, kernel.params);
    kernel.Run(in, out, n);
    if (instr.round) RoundToBf16(reinterpret_cast<float*>(out), n);
  }

  void Horner(const FusedInstr& instr, int64_t n) {
    float coefficients[kMostCoefficients];
    for (size_t k = 0; k < instr.coefficients.size(); ++k) {
      std::memcpy(&coefficients[k], address_[instr.coefficients[k]], sizeof(float));
    }
    if (instr.kernel.params[1] == 0) Spread(instr.in[0], n);
    Spread(instr.in[1], n);
    const void* in[] = {address_[instr.in[0]], address_[instr.in[1]], coefficients};
    single_[instr.out] = false;
    instr.kernel.fn(in, address_[instr.out], n, instr.kernel.params);
  }

  void RunInstr(const FusedInstr& instr, size_t k, int64_t begin, int64_t n) {
    if (settled_ && begin == 0 && instr.kind != FusedInstr::kCompute) {
      settled_instrs_.push_back({&instr, nullptr, false});
    }
    switch (instr.kind) {
      case FusedInstr::kCompute: return Compute(instr, n);
      case FusedInstr::kLoadView: return LoadBlock(instr, &cursors_[k], begin, n);
      case FusedInstr::kDecode:
        DecodeBf16(reinterpret_cast<const uint16_t*>(address_[instr.in[0]]),
                   reinterpret_cast<float*>(address_[instr.out]), n);
        return;
      case FusedInstr::kEncode:
        Spread(instr.in[0], n);
        EncodeBf16(reinterpret_cast<const float*>(address_[instr.in[0]]),
                   reinterpret_cast<uint16_t*>(address_[instr.out]), n);
        return;
      case FusedInstr::kReduce:
        Spread(instr.in[0], n);
        reductions_[instr.reduction].Feed(reinterpret_cast<const float*>(address_[instr.in[0]]), n);
        return;
      case FusedInstr::kHorner: return Horner(instr, n);
    }
  }

  const FusedData& data_;
  absl::InlinedVector<Source, 8> sources_;
  // By register: its memory for this block, and for all; whether it holds one
  // element; whether it did before the first block.
  absl::InlinedVector<char*, 24> address_, base_;
  absl::InlinedVector<bool, 24> single_, pinned_;
  absl::InlinedVector<int64_t, 4> table_at_;  // by table: offset in scratch_
  absl::InlinedVector<Moving, 16> moving_;
  std::vector<FusedReduction> reductions_;
  std::vector<Cursor> cursors_;  // by instruction
  bool settled_ = false;
  std::vector<Settled> settled_instrs_;
  std::vector<std::pair<int, int64_t>> ahead_;  // registers, and byte offsets from their blocks
  size_t ahead_each_ = 0;                       // number of prefetches before each instruction
  Tensor scratch_;
  int64_t block_ = 0, slot_bytes_ = 0;
  char* raw_ = nullptr;
};

}  // namespace

absl::Status RunFused(StepRun& run) {
  const auto& data = run.data<FusedData>();
  BlockRunner runner(data, run);
  // A reused buffer keeps its address: it becomes the result's.
  absl::InlinedVector<Tensor, 2> results;
  absl::InlinedVector<char*, 2> memory;
  for (int r = 0; r < run.num_results(); ++r) {
    results.push_back(run.ReuseOrNew(r, data.reuse[r]));
    memory.push_back(results.back().MutableData());
  }
  runner.SetResults(memory);
  runner.Run();
  for (int r = 0; r < run.num_results(); ++r) run.Set(r, std::move(results[r]));
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
