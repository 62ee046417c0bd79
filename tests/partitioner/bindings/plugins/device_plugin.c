// SPDX-License-Identifier: Apache-2.0
// Handlers and a partitioner in C that use what a device knows: collectives and mesh in
// a handler, attributes of the shard in a call of the target.
#include <stdio.h>

#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

// x summed over the devices along axis "model", with this device's coordinate added.
static int SumOver(const Shardcall_Call* call, void* data) {
  (void)data;
  const Shardcall_FfiDevice* device = call->device(call);
  int32_t group[64];
  const char* axis = "model";
  const int32_t size = device->devices_along(device, axis, group, 64);
  if (size < 0) {
    call->set_message(call, "the mesh has no axis model");
    return 3;
  }
  int64_t count = 1;
  for (int32_t d = 0; d < call->operands[0].rank; ++d) count *= call->operands[0].dims[d];
  float* y = (float*)call->results[0].data;
  const int32_t failed = device->all_reduce(device, group, size, SHARDCALL_FFI_SUM, 11,
                                            call->operands[0].data, y, count);
  if (failed != 0) return failed;
  for (int32_t a = 0; a < device->num_axes; ++a) {
    if (device->axis_names[a][0] != 'd') continue;
    for (int64_t k = 0; k < count; ++k) y[k] += 100 * (float)device->axis_coordinates[a];
  }
  return 0;
}

// Says it fails by the device, and gives no message.
static int Fails(const Shardcall_Call* call, void* data) {
  (void)data;
  const Shardcall_FfiDevice* device = call->device(call);
  const int32_t stranger[] = {device->device, 99};
  float x = 0, y;
  return device->all_reduce(device, stranger, 2, SHARDCALL_FFI_SUM, 11, &x, &y, 1);
}

// y = x, where "rows" is the number of rows that there are.
static int Counted(const Shardcall_Call* call, void* data) {
  (void)data;
  int64_t rows = -1;
  call->get_int(call, "rows", &rows);
  if (rows != call->operands[0].dims[0]) {
    call->set_message(call, "rows is not the number of rows");
    return 3;
  }
  const float* x = (const float*)call->operands[0].data;
  float* y = (float*)call->results[0].data;
  for (int64_t k = 0; k < rows * call->operands[0].dims[1]; ++k) y[k] = x[k];
  return 0;
}

static int PartitionCounted(const Shardcall_PartitionContext* c, void* data) {
  const Shardcall_CallView* v = c->call;
  const Shardcall_Sharding* s = c->operand_sharding(c, 0);
  Shardcall_Value x, y;
  Shardcall_Shape local = SHARDCALL_INIT(Shardcall_Shape);
  int code = c->operand(c, 0, s, &x);
  if (code == 0) code = c->shape(c, x, &local);
  if (code != 0) return code;
  char config[64];
  const int size = data != NULL ? snprintf(config, sizeof config, "rows")
                                : snprintf(config, sizeof config, "{rows = %lld : i64}",
                                           (long long)local.dims[0]);
  (void)v;
  code = c->call_target_with(c, config, (size_t)size, &x, &s, &y);
  return code != 0 ? code : c->set_result(c, 0, y, s);
}

static int Register(const Shardcall_Registrar* registrar) {
  static int wrong = 1;
  Shardcall_Target sum = SHARDCALL_INIT(Shardcall_Target);
  sum.name = "sum_over_c";
  sum.rule = "... -> ...";
  sum.handler = SumOver;
  if (registrar->register_target(registrar, &sum) != 0) return 13;
  sum.name = "fails_by_device";
  sum.handler = Fails;
  if (registrar->register_target(registrar, &sum) != 0) return 13;
  Shardcall_Partitioner partitioner = SHARDCALL_INIT(Shardcall_Partitioner);
  partitioner.partition = PartitionCounted;
  Shardcall_Target counted = SHARDCALL_INIT(Shardcall_Target);
  counted.name = "counted";
  counted.handler = Counted;
  counted.partitioner = &partitioner;
  if (registrar->register_target(registrar, &counted) != 0) return 13;
  counted.name = "counted_wrong";
  partitioner.data = &wrong;
  return registrar->register_target(registrar, &counted);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "device";
  plugin.register_targets = Register;
  return &plugin;
}
