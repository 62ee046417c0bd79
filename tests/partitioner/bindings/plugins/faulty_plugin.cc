// SPDX-License-Identifier: Apache-2.0
// Handlers of one f32 operand and result, with one fault each; and two that are right for
// calls whose sizes or indices stand in a relation.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "shardcall/partitioner/bindings/c/shardcall_c.h"

namespace {

int Double(const Shardcall_Call* call, void*) {
  const Shardcall_Buffer& x = call->operands[0];
  int64_t n = 1;
  for (int d = 0; d < x.rank; ++d) n *= x.dims[d];
  for (int64_t k = 0; k < n; ++k) {
    static_cast<float*>(call->results[0].data)[k] = 2 * static_cast<const float*>(x.data)[k];
  }
  return 0;
}
int Prints(const Shardcall_Call* call, void* data) {
  std::printf("{ a kernel prints\n");
  return Double(call, data);
}
int Segv(const Shardcall_Call*, void*) {
  *static_cast<volatile int*>(nullptr) = 1;
  return 0;
}
int Abort(const Shardcall_Call*, void*) { std::abort(); }
int Throw(const Shardcall_Call*, void*) { throw std::runtime_error("thrown"); }
int Never(const Shardcall_Call*, void*) {
  while (true) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}
// Says on standard output that it runs.
int NeverAndSays(const Shardcall_Call* call, void* data) {
  std::puts("entered");
  std::fflush(stdout);
  return Never(call, data);
}
// On device 1 alone.
int NeverOnOne(const Shardcall_Call* call, void* data) {
  return call->device_ordinal == 1 ? Never(call, data) : Double(call, data);
}
int Late(const Shardcall_Call* call, void* data) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  return Double(call, data);
}

// x[b, h] plus the sum of its four gates in g[b, 4 h], whose extent it does not look at.
int Gates(const Shardcall_Call* call, void*) {
  const Shardcall_Buffer &x = call->operands[0], &g = call->operands[1];
  if (x.type != 11 || g.type != 11) return 3;
  const int64_t rows = x.dims[0], h = x.dims[1];
  for (int64_t i = 0; i < rows * h; ++i) {
    float sum = static_cast<const float*>(x.data)[i];
    for (int64_t k = 0; k < 4; ++k) {
      sum += static_cast<const float*>(g.data)[i / h * 4 * h + k * h + i % h];
    }
    static_cast<float*>(call->results[0].data)[i] = sum;
  }
  return 0;
}
// Rows of a table[s, d] by indices[n], which it trusts.
int Take(const Shardcall_Call* call, void*) {
  const Shardcall_Buffer &table = call->operands[0], &indices = call->operands[1];
  if (table.type != 11 || indices.type != 4 || indices.dims[0] != call->results[0].dims[0] ||
      table.dims[1] != call->results[0].dims[1]) {
    return 3;
  }
  const int64_t d = table.dims[1];
  for (int64_t i = 0; i < indices.dims[0]; ++i) {
    const int64_t row = static_cast<const int32_t*>(indices.data)[i];
    std::memcpy(static_cast<float*>(call->results[0].data) + i * d,
                static_cast<const float*>(table.data) + row * d, d * sizeof(float));
  }
  return 0;
}

int CrashInPartition(const Shardcall_PartitionContext*, void*) {
  raise(SIGSEGV);
  return 0;
}

int RegisterLimited(const Shardcall_Registrar* registrar) {
  static const char* const kWhole[] = {"h", "g", nullptr};
  static const Shardcall_RelatedSize kSizes[] = {{"g", "4 h"}};
  Shardcall_CallLimits sizes = SHARDCALL_INIT(Shardcall_CallLimits);
  sizes.sizes = kSizes;
  sizes.num_sizes = 1;
  Shardcall_Target gates = SHARDCALL_INIT(Shardcall_Target);
  gates.name = "limited_gates";
  gates.rule = "b h, b g -> b h";
  gates.need_replication = kWhole;
  gates.handler = Gates;
  gates.limits = &sizes;
  if (const int code = registrar->register_target(registrar, &gates)) return code;

  static const char* const kTable[] = {"s", nullptr};
  static const Shardcall_Range kRanges[] = {{1, nullptr, "s"}};
  static const Shardcall_Factor kPad[] = {{"n", nullptr, 0}, {nullptr, nullptr, 0}};
  Shardcall_CallLimits ranges = SHARDCALL_INIT(Shardcall_CallLimits);
  ranges.ranges = kRanges;
  ranges.num_ranges = 1;
  Shardcall_Target take = SHARDCALL_INIT(Shardcall_Target);
  take.name = "limited_take";
  take.rule = "s d, n -> n d";
  take.need_replication = kTable;
  take.pad = kPad;
  take.handler = Take;
  take.limits = &ranges;
  if (const int code = registrar->register_target(registrar, &take)) return code;

  static Shardcall_Partitioner partitioner = SHARDCALL_INIT(Shardcall_Partitioner);
  partitioner.partition = CrashInPartition;
  Shardcall_Target crashes = SHARDCALL_INIT(Shardcall_Target);
  crashes.name = "crashes_in_partition";
  crashes.partitioner = &partitioner;
  if (const int code = registrar->register_target(registrar, &crashes)) return code;

  // Rules of these come from a manifest.
  Shardcall_Target bare = SHARDCALL_INIT(Shardcall_Target);
  bare.name = "bare_gates";
  bare.handler = Gates;
  if (const int code = registrar->register_target(registrar, &bare)) return code;
  bare.name = "bare_take";
  bare.handler = Take;
  return registrar->register_target(registrar, &bare);
}

int Register(const Shardcall_Registrar* registrar) {
  const struct {
    const char* name;
    Shardcall_Handler* handler;
  } kTargets[] = {{"faulty_none", Double},
                  {"faulty_prints", Prints},
                  {"faulty_segv", Segv},
                  {"faulty_abort", Abort},
                  {"faulty_throw", Throw},
                  {"faulty_never", Never},
                  {"faulty_never_on_1", NeverOnOne},
                  {"faulty_late", Late},
                  {"faulty_never_and_says", NeverAndSays}};
  for (const auto& t : kTargets) {
    Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
    target.name = t.name;
    target.rule = "i j -> i j";
    target.handler = t.handler;
    if (const int code = registrar->register_target(registrar, &target)) return code;
  }
  return RegisterLimited(registrar);
}

}  // namespace

extern "C" const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "faulty_plugin";
  plugin.register_targets = Register;
  return &plugin;
}
