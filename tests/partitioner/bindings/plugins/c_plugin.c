// SPDX-License-Identifier: Apache-2.0
// A plugin in C: shardcall_c.h and nothing else of shardcall.
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

// y[b] = scale * sum over k of x[b, k]
static int RowSum(const Shardcall_Call* call, void* data) {
  double scale = *(const double*)data;
  if (call->num_operands != 1 || call->operands[0].type != 11 || call->operands[0].rank != 2) {
    call->set_message(call, "row_sum takes one f32 matrix");
    return 3;
  }
  call->get_float(call, "scale", &scale);
  const int64_t rows = call->operands[0].dims[0], columns = call->operands[0].dims[1];
  const float* x = (const float*)call->operands[0].data;
  float* y = (float*)call->results[0].data;
  for (int64_t b = 0; b < rows; ++b) {
    y[b] = 0;
    for (int64_t k = 0; k < columns; ++k) y[b] += (float)scale * x[b * columns + k];
  }
  return 0;
}

static double one = 1;

// y[r, c] = x[r, C - 1 - c] of u4, two elements in a byte, rows without gaps.
static int ReverseRows(const Shardcall_Call* call, void* data) {
  (void)data;
  const int64_t rows = call->operands[0].dims[0], columns = call->operands[0].dims[1];
  if (call->operands[0].type != 22) {
    call->set_message(call, "reverse_rows takes u4");
    return 3;
  }
  const unsigned char* x = (const unsigned char*)call->operands[0].data;
  unsigned char* y = (unsigned char*)call->results[0].data;
  for (int64_t k = 0; k < (rows * columns + 1) / 2; ++k) y[k] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t to = r * columns + c, from = r * columns + columns - 1 - c;
      const int value = x[from / 2] >> (from % 2 * 4) & 15;
      y[to / 2] |= (unsigned char)(value << (to % 2 * 4));
    }
  }
  return 0;
}

// An untyped function, API version 2; its first operand is its length.
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status, const char* message,
                                   size_t message_len);
static void Negate(void* out, const void** in, XlaCustomCallStatus* status) {
  const int32_t n = *(const int32_t*)in[0];
  if (n > 1000) {
    XlaCustomCallStatusSetFailure(status, "too long, really", 8);
    return;
  }
  for (int32_t i = 0; i < n; ++i) ((float*)out)[i] = -((const float*)in[1])[i];
}

static int Register(const Shardcall_Registrar* registrar) {
  const Shardcall_Factor reduction[] = {{"k", "add", 0}, {0, 0, 0}};
  const Shardcall_Factor pad[] = {{"k", 0, 0}, {0, 0, 0}};
  Shardcall_Target row_sum = SHARDCALL_INIT(Shardcall_Target);
  row_sum.name = "row_sum";
  row_sum.rule = "b k -> b";
  row_sum.reduction = reduction;
  row_sum.pad = pad;
  row_sum.handler = RowSum;
  row_sum.handler_data = &one;
  if (registrar->register_target(registrar, &row_sum) != 0) return 13;
  Shardcall_Target negate = SHARDCALL_INIT(Shardcall_Target);
  negate.name = "negate_n";
  negate.rule = ", n -> n";
  const char* const whole[] = {"n", 0};
  negate.need_replication = whole;
  negate.untyped = (void*)Negate;
  negate.untyped_api_version = 2;
  if (registrar->register_target(registrar, &negate) != 0) return 13;
  Shardcall_Target reverse = SHARDCALL_INIT(Shardcall_Target);
  reverse.name = "reverse_rows";
  reverse.rule = "r c -> r c";
  const char* const columns[] = {"c", 0};
  reverse.need_replication = columns;
  reverse.handler = ReverseRows;
  if (registrar->register_target(registrar, &reverse) != 0) return 13;
  const Shardcall_Attribute attributes[] = {{"grid_x", "cdiv(m, 4)"}, {0, 0}};
  const int32_t scratch[] = {1};
  Shardcall_CallLimits limits = SHARDCALL_INIT(Shardcall_CallLimits);
  limits.scratch = scratch;
  limits.num_scratch = 1;
  Shardcall_Target blocks = SHARDCALL_INIT(Shardcall_Target);
  blocks.name = "blocks";
  blocks.rule = "m n -> m n, m n";
  blocks.attributes = attributes;
  blocks.limits = &limits;
  return registrar->register_target(registrar, &blocks);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "c_plugin";
  plugin.register_targets = Register;
  return &plugin;
}
