// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

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

class BlockRunner {
 public:
  BlockRunner(const FusedData& data, const StepRun& run)
      : data_(data), address_(data.registers.size()) {
    for (int k = 0; k < run.num_inputs(); ++k) {
      sources_.push_back({run.in(k).data(), run.in(k).type()});
    }
  }
  // Results' memory is known later than operands'.
  void SetResults(absl::Span<char* const> results) {
    const int slots = data_.scratch_slots + (data_.views_of_bf16 ? 1 : 0);
    const int64_t block = std::min(data_.block, data_.elements);
    // Slots begin at odd distances of 64 bytes: at powers of two they would all
    // fall into the same few lines of the cache.
    slot_bytes_ = (data_.scratch_slot_bytes * block + 127) / 128 * 128 + 64;
    scratch_ = Tensor(ElementType::kU8, {slots * slot_bytes_});
    char* memory = scratch_.MutableData();
    raw_ = memory + data_.scratch_slots * slot_bytes_;
    for (size_t r = 0; r < address_.size(); ++r) {
      const FusedRegister& reg = data_.registers[r];
      address_[r] = reg.place == FusedRegister::kScratch ? memory + reg.index * slot_bytes_
                    : reg.place == FusedRegister::kResult
                        ? results[reg.index]
                        : const_cast<char*>(static_cast<const char*>(sources_[reg.index].data));
    }
    base_ = address_;
  }
  void Run() {
    if (data_.elements == 0) return;
    const int64_t first = std::min(data_.block, data_.elements);
    for (const FusedInstr& instr : data_.once) RunInstr(instr, 0, first);
    for (int64_t begin = 0; begin < data_.elements; begin += data_.block) {
      const int64_t n = std::min(data_.block, data_.elements - begin);
      for (size_t r = 0; r < address_.size(); ++r) {
        const FusedRegister& reg = data_.registers[r];
        if (reg.place != FusedRegister::kScratch) address_[r] = base_[r] + begin * reg.bytes;
      }
      for (const FusedInstr& instr : data_.instrs) RunInstr(instr, begin, n);
    }
  }

 private:
  struct Source {
    const void* data;
    ElementType type;
  };

  void RunInstr(const FusedInstr& instr, int64_t begin, int64_t n) {
    switch (instr.kind) {
      case FusedInstr::kCompute: {
        const void* in[3];
        for (int k = 0; k < instr.kernel.arity; ++k) in[k] = address_[instr.in[k]];
        instr.kernel.Run(in, address_[instr.out], n);
        if (instr.round) RoundToBf16(reinterpret_cast<float*>(address_[instr.out]), n);
        return;
      }
      case FusedInstr::kLoadView: {
        const Source& source = sources_[instr.operand];
        const int bytes = ElementTypeBytes(source.type);
        if (source.type == ElementType::kBF16) {
          const void* raw = LoadView(bytes, instr.view, source.data, begin, n, raw_);
          DecodeBf16(static_cast<const uint16_t*>(raw),
                     reinterpret_cast<float*>(address_[instr.out]), n);
          return;
        }
        char* scratch = base_[instr.out];
        address_[instr.out] = static_cast<char*>(
            const_cast<void*>(LoadView(bytes, instr.view, source.data, begin, n, scratch)));
        return;
      }
      case FusedInstr::kDecode:
        DecodeBf16(reinterpret_cast<const uint16_t*>(address_[instr.in[0]]),
                   reinterpret_cast<float*>(address_[instr.out]), n);
        return;
      case FusedInstr::kEncode:
        EncodeBf16(reinterpret_cast<const float*>(address_[instr.in[0]]),
                   reinterpret_cast<uint16_t*>(address_[instr.out]), n);
        return;
    }
  }

  const FusedData& data_;
  absl::InlinedVector<Source, 8> sources_;
  absl::InlinedVector<char*, 24> address_, base_;  // by register: of this block, of all
  Tensor scratch_;
  int64_t slot_bytes_ = 0;
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
