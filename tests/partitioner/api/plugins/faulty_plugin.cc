// SPDX-License-Identifier: Apache-2.0
// Handlers of one f32 operand and result, with one fault each.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "partitioner/api/shardcall_c.h"

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
int Segv(const Shardcall_Call*, void*) {
  *static_cast<volatile int*>(nullptr) = 1;
  return 0;
}
int Abort(const Shardcall_Call*, void*) { std::abort(); }
int Throw(const Shardcall_Call*, void*) { throw std::runtime_error("thrown"); }
int Never(const Shardcall_Call*, void*) {
  while (true) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}
// On device 1 alone.
int NeverOnOne(const Shardcall_Call* call, void* data) {
  return call->device_ordinal == 1 ? Never(call, data) : Double(call, data);
}
int Late(const Shardcall_Call* call, void* data) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  return Double(call, data);
}

int Register(const Shardcall_Registrar* registrar) {
  const struct {
    const char* name;
    Shardcall_Handler* handler;
  } kTargets[] = {{"faulty_none", Double}, {"faulty_segv", Segv},   {"faulty_abort", Abort},
                  {"faulty_throw", Throw}, {"faulty_never", Never}, {"faulty_never_on_1", NeverOnOne},
                  {"faulty_late", Late}};
  for (const auto& t : kTargets) {
    Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
    target.name = t.name;
    target.rule = "i j -> i j";
    target.handler = t.handler;
    if (const int code = registrar->register_target(registrar, &target)) return code;
  }
  return 0;
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
