// SPDX-License-Identifier: Apache-2.0
/* row_sum: y[r] = sum over c of x[r, c]. */
#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"

static int RowSum(const Shardcall_Call* call, void* data) {
  const Shardcall_Buffer *x = &call->operands[0], *y = &call->results[0];
  (void)data;
  if (x->type != 11 || x->rank != 2) {
    call->set_message(call, "row_sum takes one f32 matrix");
    return 3; /* invalid argument */
  }
  for (int64_t r = 0; r < x->dims[0]; ++r) {
    float sum = 0;
    for (int64_t c = 0; c < x->dims[1]; ++c) sum += ((const float*)x->data)[r * x->dims[1] + c];
    ((float*)y->data)[r] = sum;
  }
  return 0;
}

static int Register(const Shardcall_Registrar* registrar) {
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "row_sum";
  target.handler = RowSum;
#ifdef WITH_RULE /* step 6: the rule moves in */
  const Shardcall_Factor reduction[] = {{"c", "add", 0}, {0}};
  const Shardcall_Factor pad[] = {{"c", 0, 0}, {0}};
  target.rule = "r c -> r";
  target.reduction = reduction;
  target.pad = pad;
#endif
  return registrar->register_target(registrar, &target);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "row_sum";
  plugin.register_targets = Register;
  return &plugin;
}
