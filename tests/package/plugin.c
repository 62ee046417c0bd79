// SPDX-License-Identifier: Apache-2.0
/* A user's plugin: headers alone, nothing is linked. */
#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"

static int Double(const Shardcall_Call* call, void* data) {
  const Shardcall_Buffer* in = &call->operands[0];
  int64_t n = 1;
  for (int32_t d = 0; d < in->rank; ++d) n *= in->dims[d];
  for (int64_t i = 0; i < n; ++i) {
    ((float*)call->results[0].data)[i] = 2 * ((const float*)in->data)[i];
  }
  (void)data;
  return 0;
}

static int Register(const Shardcall_Registrar* registrar) {
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "outside_double";
  target.rule = "... -> ...";
  target.handler = Double;
  return registrar->register_target(registrar, &target);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "outside";
  plugin.register_targets = Register;
  return &plugin;
}
