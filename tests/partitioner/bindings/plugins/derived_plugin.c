// SPDX-License-Identifier: Apache-2.0
// A plugin in C whose target has a VJP and a batching rule, and that lowers calls
// marked by name to it. WRONG_VJP forgets a factor in one gradient.
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

#define F32 11

static int64_t Dim(const Shardcall_Buffer* b, int32_t back) {
  return b->rank > back ? b->dims[b->rank - 1 - back] : 1;
}

// y[.. b] = sum over k of x[.. b, k] w[k], each with the leading dimensions or without.
static int Weigh(const Shardcall_Call* call, void* data) {
  (void)data;
  const Shardcall_Buffer *x = &call->operands[0], *w = &call->operands[1];
  if (call->num_operands != 2 || x->type != F32 || x->rank < 2 || w->rank < 1 ||
      Dim(w, 0) != Dim(x, 0)) {
    call->set_message(call, "weigh takes a matrix and a row of f32");
    return 3;
  }
  const int64_t rows = Dim(x, 1), columns = Dim(x, 0);
  int64_t batch = 1;  // of either operand, or of both
  for (int32_t d = 0; d + 1 < call->results[0].rank; ++d) batch *= call->results[0].dims[d];
  for (int64_t n = 0; n < batch; ++n) {
    const float* a = (const float*)x->data + (x->rank > 2 ? n * rows * columns : 0);
    const float* v = (const float*)w->data + (w->rank > 1 ? n * columns : 0);
    float* y = (float*)call->results[0].data + n * rows;
    for (int64_t i = 0; i < rows; ++i) {
      y[i] = 0;
      for (int64_t k = 0; k < columns; ++k) y[i] += a[i * columns + k] * v[k];
    }
  }
  return 0;
}

// A result is as its matrices without their columns.
static int Shapes(const Shardcall_ShapeRequest* r, void* data) {
  (void)data;
  if (r->num_operands != 2 || r->operands[0].type != F32 || r->operands[0].rank < 2) {
    r->set_message(r, "weigh takes matrices and rows of f32");
    return 3;
  }
  int64_t wrong = 0;
  if (r->get_int(r, "wrong_rank", &wrong)) {
    return r->add_result(r, F32, (int32_t)wrong, r->operands[0].dims);
  }
  return r->add_result(r, F32, r->operands[0].rank - 1, r->operands[0].dims);
}

// (dy, x, w) -> (dx, dw)
static int WeighBackward(const Shardcall_Call* call, void* data) {
  (void)data;
  if (call->num_operands != 3 || call->operands[0].type != F32 || call->operands[1].rank != 2 ||
      call->operands[2].rank != 1 || call->operands[0].rank != 1 ||
      call->operands[0].dims[0] != call->operands[1].dims[0] ||
      call->operands[2].dims[0] != call->operands[1].dims[1]) {
    call->set_message(call, "weigh_bwd takes dy, x and w");
    return 3;
  }
  const int64_t rows = call->operands[1].dims[0], columns = call->operands[1].dims[1];
  const float* dy = (const float*)call->operands[0].data;
  const float* x = (const float*)call->operands[1].data;
  const float* w = (const float*)call->operands[2].data;
  float *dx = (float*)call->results[0].data, *dw = (float*)call->results[1].data;
  for (int64_t k = 0; k < columns; ++k) dw[k] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k) {
      dx[i * columns + k] = dy[i] * w[k];
#ifdef WRONG_VJP
      dw[k] += x[i * columns + k];
#else
      dw[k] += dy[i] * x[i * columns + k];
#endif
    }
  }
  return 0;
}

// my.weigh(x, w) of matrices; of others the body.
static int Lower(const Shardcall_LoweringRequest* r, Shardcall_LoweredCall* answer, void* data) {
  static const int32_t kTypes[] = {F32, F32};
  static Shardcall_Shape result;
  static int64_t rows;
  const char* mode = "";
  size_t size = 0;
  if (r->get_string(r, "mode", &mode, &size) && size == 4 && mode[0] == 'f') {
    r->set_message(r, "mode fail fails");
    return 3;
  }
  if (r->num_operands != 2 || r->operands[0].rank != 2 || r->num_results != 1) return 0;
  rows = r->operands[0].dims[0];
  result = (Shardcall_Shape)SHARDCALL_INIT(Shardcall_Shape);
  result.type = F32;
  result.rank = 1;
  result.dims = &rows;
  answer->target = (const char*)data;
  answer->backend_config = "{}";
  answer->operand_types = kTypes;
  answer->results = &result;
  answer->num_results = 1;
  return 0;
}

static int Register(const Shardcall_Registrar* registrar) {
  static const Shardcall_VjpArgument kArguments[] = {
      {SHARDCALL_COTANGENT, 0}, {SHARDCALL_OPERAND, 0}, {SHARDCALL_OPERAND, 1}};
  static const int32_t kGradients[] = {0, 1};
  const Shardcall_Factor reduction[] = {{"k", "add", 0}, {0, 0, 0}};
  const Shardcall_Factor pad[] = {{"k", 0, 0}, {0, 0, 0}};
  Shardcall_Target backward = SHARDCALL_INIT(Shardcall_Target);
  backward.name = "weigh_bwd";
  backward.handler = WeighBackward;
  if (registrar->register_target(registrar, &backward) != 0) return 13;
  Shardcall_Vjp vjp = SHARDCALL_INIT(Shardcall_Vjp);
  vjp.target = "weigh_bwd";
  vjp.arguments = kArguments;
  vjp.num_arguments = 3;
  vjp.gradients = kGradients;
  vjp.num_gradients = 2;
  Shardcall_Batching batching = SHARDCALL_INIT(Shardcall_Batching);
  batching.kind = SHARDCALL_BATCH_LEADING;
  Shardcall_Target weigh = SHARDCALL_INIT(Shardcall_Target);
  weigh.name = "weigh";
  weigh.rule = "b k, k -> b";
  weigh.reduction = reduction;
  weigh.pad = pad;
  weigh.handler = Weigh;
  weigh.vjp = &vjp;
  weigh.batching = &batching;
  Shardcall_ShapeFunction shapes = SHARDCALL_INIT(Shardcall_ShapeFunction);
  shapes.infer = Shapes;
  weigh.shapes = &shapes;
  if (registrar->register_target(registrar, &weigh) != 0) return 13;
  // Two signatures, with their element types.
  Shardcall_Rule line = SHARDCALL_INIT(Shardcall_Rule), matrix = SHARDCALL_INIT(Shardcall_Rule);
  line.rule = "a -> a";
  line.types = "T -> f32";
  matrix.rule = "a b -> b a";
  matrix.types = "T -> T";
  const Shardcall_Rule* const rules[] = {&line, &matrix, 0};
  Shardcall_Target turn = SHARDCALL_INIT(Shardcall_Target);
  turn.name = "turn";
  turn.rules = rules;
  if (registrar->register_target(registrar, &turn) != 0) return 13;
  Shardcall_Lowering lowering = SHARDCALL_INIT(Shardcall_Lowering);
  lowering.name = "my.weigh";
  lowering.platform = "Host";
  lowering.lower = Lower;
  lowering.data = (void*)"weigh";
  return registrar->register_lowering(registrar, &lowering);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "derived";
  plugin.register_targets = Register;
  return &plugin;
}
