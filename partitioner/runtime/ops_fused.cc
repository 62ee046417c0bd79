// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "partitioner/runtime/fused_reduce.h"
#include "partitioner/runtime/fused_step.h"
#include "partitioner/runtime/step_run.h"
#include "partitioner/runtime/strided.h"

namespace shardcall {
namespace {

template <typename T>
void CopyLine(const T* src, int64_t stride, T* dst, int64_t n) {
  if (stride == 1) {
    std::memcpy(dst, src, n * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(dst, n, *src);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * stride];
  }
}

// Elements [begin, begin + n) of a view; the source itself where they lie
// together there, else `scratch`.
template <typename T>
const void* LoadView(const FusedView& view, const void* source, int64_t begin, int64_t n,
                     void* scratch) {
  const T* src = static_cast<const T*>(source) + view.offset;
  T* dst = static_cast<T*>(scratch);
  const int last = static_cast<int>(view.loops.size()) - 1;
  if (last < 0) {
    std::fill_n(dst, n, *src);
    return dst;
  }
  absl::InlinedVector<int64_t, 4> index(last + 1);
  int64_t rest = begin;
  for (int k = last; k >= 0; --k) {
    index[k] = rest % view.loops[k].size;
    rest /= view.loops[k].size;
    src += index[k] * view.loops[k].stride;
  }
  const FusedView::Loop inner = view.loops[last];
  if (inner.stride == 1 && index[last] + n <= inner.size) return src;
  while (true) {
    const int64_t count = std::min(n, inner.size - index[last]);
    CopyLine(src, inner.stride, dst, count);
    dst += count;
    n -= count;
    if (n == 0) return scratch;
    src -= index[last] * inner.stride;
    index[last] = 0;
    for (int k = last - 1; k >= 0; --k) {
      src += view.loops[k].stride;
      if (++index[k] < view.loops[k].size) break;
      src -= view.loops[k].stride * view.loops[k].size;
      index[k] = 0;
    }
  }
}

struct Word128 {
  uint64_t low, high;
};
const void* LoadView(int bytes, const FusedView& view, const void* source, int64_t begin, int64_t n,
                     void* scratch) {
  switch (bytes) {
    case 1:
      return LoadView<uint8_t>(view, source, begin, n, scratch);
    case 2:
      return LoadView<uint16_t>(view, source, begin, n, scratch);
    case 4:
      return LoadView<uint32_t>(view, source, begin, n, scratch);
    case 8:
      return LoadView<uint64_t>(view, source, begin, n, scratch);
    default:
      return LoadView<Word128>(view, source, begin, n, scratch);
  }
}

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
  // Results' memory is known later than operands'.
  void SetResults(absl::Span<char* const> results) {
    const int slots = data_.scratch_slots + (data_.views_of_bf16 ? 1 : 0);
    block_ = std::min(data_.block, data_.elements);
    // Slots begin at odd distances of 64 bytes: at powers of two they would all
    // fall into the same few lines of the cache.
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
        case FusedRegister::kScratch:
          address_[r] = memory + reg.index * slot_bytes_;
          break;
        case FusedRegister::kResult:
          address_[r] = results[reg.index];
          break;
        case FusedRegister::kTable:
          address_[r] = memory + table_at_[reg.index];
          break;
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
    for (const FusedInstr& instr : data_.once) LoadSingle(instr, 0);
    pinned_ = single_;
    for (int64_t begin = 0; begin < data_.elements; begin += block_) {
      const int64_t n = std::min(block_, data_.elements - begin);
      for (size_t r = 0; r < address_.size(); ++r) {
        const FusedRegister& reg = data_.registers[r];
        if (reg.place == FusedRegister::kScratch) continue;
        const int64_t at =
            reg.place == FusedRegister::kTable ? begin % data_.tables[reg.index].period : begin;
        address_[r] = base_[r] + at * reg.bytes;
      }
      for (const FusedInstr& instr : data_.instrs) RunInstr(instr, begin, n);
    }
  }

 private:
  struct Source {
    const void* data;
    ElementType type;
  };

  static int64_t OddLines(int64_t bytes) { return (bytes + 127) / 128 * 128 + 64; }
  int64_t TableElements(const FusedTable& table) const {
    return table.period % block_ == 0 ? table.period
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

  // One element for the block from `begin` on.
  void LoadSingle(const FusedInstr& instr, int64_t begin) {
    const Source& source = sources_[instr.operand];
    char* to = base_[instr.out];
    const void* from = LoadView(ElementTypeBytes(source.type), instr.view, source.data, begin, 1,
                                source.type == ElementType::kBF16 ? raw_ : to);
    if (source.type == ElementType::kBF16) {
      DecodeBf16(static_cast<const uint16_t*>(from), reinterpret_cast<float*>(to), 1);
    } else if (from != to) {
      std::memcpy(to, from, ElementTypeBytes(source.type));
    }
    address_[instr.out] = to;
    single_[instr.out] = true;
  }
  void LoadBlock(const FusedInstr& instr, int64_t begin, int64_t n) {
    if (!instr.view.scalar()) {
      const FusedView::Loop inner = instr.view.loops.back();
      if (inner.stride == 0 && begin % inner.size + n <= inner.size) {
        return LoadSingle(instr, begin);
      }
    }
    single_[instr.out] = false;
    const Source& source = sources_[instr.operand];
    char* scratch = base_[instr.out];
    const int bytes = ElementTypeBytes(source.type);
    if (source.type == ElementType::kBF16) {
      const void* raw = LoadView(bytes, instr.view, source.data, begin, n, raw_);
      DecodeBf16(static_cast<const uint16_t*>(raw), reinterpret_cast<float*>(scratch), n);
      return;
    }
    address_[instr.out] = static_cast<char*>(
        const_cast<void*>(LoadView(bytes, instr.view, source.data, begin, n, scratch)));
  }

  // Makes the block of a register that holds one element for all.
  void Spread(int reg, int64_t n) {
    if (!single_[reg]) return;
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
    if (same) return instr.same_form[single](in, out, n, instr.kernel.params);
    if (instr.form != nullptr) return instr.form(in, out, n, instr.kernel.params);
    instr.kernel.Run(in, out, n);
    if (instr.round) RoundToBf16(reinterpret_cast<float*>(out), n);
  }

  void RunInstr(const FusedInstr& instr, int64_t begin, int64_t n) {
    switch (instr.kind) {
      case FusedInstr::kCompute:
        return Compute(instr, n);
      case FusedInstr::kLoadView:
        return LoadBlock(instr, begin, n);
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
    }
  }

  const FusedData& data_;
  absl::InlinedVector<Source, 8> sources_;
  // By register: its memory for this block, and for all; whether it holds one
  // element; whether it did before the first block.
  absl::InlinedVector<char*, 24> address_, base_;
  absl::InlinedVector<bool, 24> single_, pinned_;
  absl::InlinedVector<int64_t, 4> table_at_;  // by table: offset in scratch_
  std::vector<FusedReduction> reductions_;
  Tensor scratch_;
  int64_t block_ = 0, slot_bytes_ = 0;
  char* raw_ = nullptr;
};

}  // namespace

absl::Status RunFused(StepRun& run) {
  const auto& data = run.data<FusedData>();
  BlockRunner runner(data, run);
  // A buffer that is taken over stays where it is: it is the result's now.
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

}  // namespace shardcall
