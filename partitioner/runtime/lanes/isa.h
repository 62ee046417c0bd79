// SPDX-License-Identifier: Apache-2.0
// One binary for every x86-64: a loop is compiled for the baseline and again for AVX2, and is
// selected at run time.
//
//   void AddLanes(const float* a, const float* b, float* out, int64_t n) { .. }
//   const auto fn = BestForCpu<AddLanes>();
//
// Both copies are the same C++ without fused multiply-add, so results have the same bits on every
// processor. Everything the function calls is inlined into its copy; functions that are not
// visible here (libm) are called normally.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_ISA_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_ISA_H_

// Iterations of the next loop are independent: a result may be the same memory as an operand, but
// must not overlap one partially.
#if defined(__clang__)
#define SHARDCALL_LANES _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define SHARDCALL_LANES _Pragma("GCC ivdep")
#else
#define SHARDCALL_LANES
#endif

namespace shardcall {
inline namespace internal {

#if defined(__x86_64__) && defined(__GNUC__)

// Whether the processor supports what the second copies are compiled for.
inline bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

template <auto kFn>
struct Avx2Copy;
template <typename... Args, void (*kFn)(Args...)>
struct Avx2Copy<kFn> {
  __attribute__((target("avx2,bmi2,popcnt"), flatten)) static void Run(Args... args) {
    kFn(args...);
  }
};

inline bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
template <auto kFn>
struct Avx512Copy;
template <typename... Args, void (*kFn)(Args...)>
struct Avx512Copy<kFn> {
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,bmi2,popcnt,prefer-vector-width=512"),
                 flatten)) static void
  Run(Args... args) {
    kFn(args...);
  }
};

template <auto kFn>
auto BestForCpu() {
  return HasAvx2() ? &Avx2Copy<kFn>::Run : kFn;
}
// For long chains of arithmetic, for which a third copy with wider registers is worthwhile.
template <auto kFn>
auto BestWideForCpu() {
  return HasAvx512() ? &Avx512Copy<kFn>::Run : BestForCpu<kFn>();
}

#else

template <auto kFn>
auto BestForCpu() {
  return kFn;
}

#endif

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_ISA_H_
