// SPDX-License-Identifier: Apache-2.0
// Polynomials in a fused step. Chains of x * z + c with scalars c, which functions like erf consist
// of, become one instruction that keeps its sum in registers. Each product and sum is rounded as
// before, so results are bitwise equal.
#include <cstring>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"

namespace shardcall {
inline namespace internal {
namespace {

#if defined(__GNUC__)
using Lanes = float __attribute__((vector_size(64), aligned(4), may_alias));
#endif

// in: x (one element if params[1]), z, coefficients (params[0] of them).
void Horner(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const float* x = static_cast<const float*>(in[0]);
  const float* z = static_cast<const float*>(in[1]);
  const float* c = static_cast<const float*>(in[2]);
  float* o = static_cast<float*>(out);
  const int64_t count = params[0], step = params[1] != 0 ? 0 : 1;
  int64_t i = 0;
#if defined(__GNUC__)
  constexpr int64_t kWidth = sizeof(Lanes) / sizeof(float), kRows = 4;
  for (; i + kRows * kWidth <= n; i += kRows * kWidth) {
    Lanes sum[kRows], by[kRows];
    for (int r = 0; r < kRows; ++r) {
      by[r] = *reinterpret_cast<const Lanes*>(z + i + r * kWidth);
      sum[r] = step == 0 ? x[0] - Lanes{} : *reinterpret_cast<const Lanes*>(x + i + r * kWidth);
    }
    for (int64_t k = 0; k < count; ++k) {
      for (int r = 0; r < kRows; ++r) sum[r] = sum[r] * by[r];
      for (int r = 0; r < kRows; ++r) sum[r] = sum[r] + c[k];
    }
    for (int r = 0; r < kRows; ++r) *reinterpret_cast<Lanes*>(o + i + r * kWidth) = sum[r];
  }
#endif
  for (; i < n; ++i) {
    float sum = x[i * step];
    for (int64_t k = 0; k < count; ++k) {
      sum = sum * z[i];
      sum = sum + c[k];
    }
    o[i] = sum;
  }
}

class Chains {
 public:
  explicit Chains(FusedData* data) : data_(*data) {
    const ElementType f32[] = {ElementType::kF32, ElementType::kF32};
    add_ = FindLaneKernel(Opcode::kAdd, nullptr, f32, f32[0]).fn;
    multiply_ = FindLaneKernel(Opcode::kMultiply, nullptr, f32, f32[0]).fn;
    scalar_.resize(data_.registers.size());
    reads_.resize(data_.registers.size());
    reader_.resize(data_.registers.size(), -1);
    for (const FusedInstr& i : data_.once) scalar_[i.out] = i.view.scalar();
    for (size_t i = 0; i < data_.instrs.size(); ++i) {
      for (int reg : data_.instrs[i].in) {
        if (reg < 0) continue;
        ++reads_[reg];
        reader_[reg] = static_cast<int>(i);
      }
    }
  }

  void Fuse() {
    std::vector<bool> gone(data_.instrs.size());
    for (size_t i = 0; i < data_.instrs.size(); ++i) {
      if (gone[i] || !Is(data_.instrs[i], multiply_)) continue;
      FusedInstr chain;
      chain.kind = FusedInstr::kHorner;
      int x = data_.instrs[i].in[0], z = data_.instrs[i].in[1];
      bool settled = false;  // whether it is known which of the two is z
      std::vector<int> members;
      for (int product = static_cast<int>(i); product >= 0;) {
        const int sum = OnlyReader(product);
        const int c = sum < 0 || !Is(data_.instrs[sum], add_)
                          ? -1
                          : Other(data_.instrs[sum], data_.instrs[product].out);
        if (c < 0 || !scalar_[c]) break;
        members.insert(members.end(), {product, sum});
        chain.coefficients.push_back(c);
        chain.out = data_.instrs[sum].out;
        product = OnlyReader(sum);
        if (product < 0 || !Is(data_.instrs[product], multiply_)) break;
        const int by = Other(data_.instrs[product], chain.out);
        if (by < 0 || (by != z && (settled || by != x))) break;
        if (!settled && by == x && by != z) std::swap(x, z);
        settled = true;
      }
      if (!settled && scalar_[z]) std::swap(x, z);
      if (members.empty() || scalar_[z] || chain.coefficients.size() > kMost) continue;
      chain.in[0] = x;
      chain.in[1] = z;
      chain.kernel.fn = BestWideForCpu<Horner>();
      chain.kernel.arity = 3;
      chain.kernel.in_type[0] = chain.kernel.out_type = ElementType::kF32;
      chain.kernel.params[0] = static_cast<int64_t>(chain.coefficients.size());
      chain.kernel.params[1] = scalar_[x];
      for (int m : members) gone[m] = true;
      gone[members.back()] = false;
      data_.instrs[members.back()] = std::move(chain);
    }
    size_t to = 0;
    for (size_t i = 0; i < gone.size(); ++i) {
      if (gone[i]) continue;
      if (to != i) data_.instrs[to] = std::move(data_.instrs[i]);
      ++to;
    }
    data_.instrs.resize(to);
  }

 private:
  static constexpr size_t kMost = kMostCoefficients;

  static bool Is(const FusedInstr& i, LaneFn fn) {
    return i.kind == FusedInstr::kCompute && i.kernel.fn == fn && !i.round && !i.kernel.decode &&
           !i.kernel.encode;
  }
  // The only instruction that reads the scratch value of instruction i, or -1.
  int OnlyReader(int i) const {
    const int out = data_.instrs[i].out;
    if (reads_[out] != 1 || data_.registers[out].place != FusedRegister::kScratch) return -1;
    return reader_[out];
  }
  // The other operand of a two-operand instruction than `reg`, or -1 if both are `reg`.
  static int Other(const FusedInstr& i, int reg) {
    if (i.in[0] == i.in[1]) return -1;
    return i.in[0] == reg ? i.in[1] : i.in[0];
  }

  FusedData& data_;
  LaneFn add_, multiply_;
  std::vector<bool> scalar_;
  std::vector<int> reads_, reader_;
};

}  // namespace

void FusePolynomials(FusedData* data) { Chains(data).Fuse(); }

}  // namespace internal
}  // namespace shardcall
