// SPDX-License-Identifier: Apache-2.0
/* Arrays of as many dimensions as the library takes go through the C interface, and what
 * asks for more is told how many there may be. */
#include "tests/partitioner/bindings/c/check.h"

enum { kMaxRank = 255 };
static const char* const kAxis[] = {"x0", NULL};

static int Same(const Shardcall_Call* call, void* data) {
  (void)data;
  if (call->operands[0].rank != kMaxRank) return 3;
  memcpy(call->results[0].data, call->operands[0].data, (size_t)call->operands[0].dims[0] * 4);
  return 0;
}

/* The first dimension over all devices, and there and back again. */
static int Partition(const Shardcall_PartitionContext* c, void* data) {
  const Shardcall_CallView* v = c->call;
  const int32_t rank = v->operands[0].rank + *(const int32_t*)data;
  const Shardcall_Sharding* whole = v->replicated(v, rank);
  const Shardcall_Sharding* rows = v->with_dim(v, whole, 0, kAxis);
  Shardcall_Shape global = v->operands[0];
  global.rank += *(const int32_t*)data;
  Shardcall_Value x, y;
  int code = c->operand(c, 0, whole, &x);
  if (code == 0) code = c->reshard(c, x, &global, whole, rows, &x);
  if (code == 0) code = c->call_target(c, &x, &rows, &y);
  return code != 0 ? code : c->set_result(c, 0, y, rows);
}
static int ReshardAlone(const Shardcall_PartitionContext* c, void* data) {
  Shardcall_Shape global = c->call->operands[0];
  const Shardcall_Sharding* s = c->operand_sharding(c, 0);
  Shardcall_Value x;
  global.rank = *(const int32_t*)data;
  return c->operand(c, 0, s, &x) || c->reshard(c, x, &global, s, s, &x) ? 3 : 0;
}
static int Infer(const Shardcall_CallView* call, const Shardcall_Sharding* const* operands,
                 const Shardcall_Sharding** results, void* data) {
  (void)call;
  (void)data;
  results[0] = operands[0];
  return 0;
}
static int ShapeOf(const Shardcall_ShapeRequest* request, void* data) {
  int64_t dims[kMaxRank + 1];
  for (int d = 0; d <= kMaxRank; ++d) dims[d] = d == 0 ? 8 : 1;
  return request->add_result(request, 11, *(const int32_t*)data, dims);
}

static char text[8192];
static const char* Array(int rank) {
  static char shape[2048];
  size_t n = (size_t)snprintf(shape, sizeof(shape), "f32[8");
  for (int d = 1; d < rank; ++d) n += (size_t)snprintf(shape + n, sizeof(shape) - n, ",1");
  snprintf(shape + n, sizeof(shape) - n, "]");
  return shape;
}
static const char* Program(const char* result) {
  size_t n = (size_t)snprintf(text, sizeof(text),
                              "HloModule m, num_partitions=4\nENTRY e {\n  x = %s parameter(0), "
                              "sharding={devices=[4",
                              Array(kMaxRank));
  for (int d = 1; d < kMaxRank; ++d) n += (size_t)snprintf(text + n, sizeof(text) - n, ",1");
  snprintf(text + n, sizeof(text) - n,
           "]<=[4]}\n  ROOT c = %s custom-call(x), custom_call_target=\"ranks\"\n}\n", result);
  return text;
}

int main(void) {
  Shardcall_Registry* registry = NULL;
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  Shardcall_Partitioner p = SHARDCALL_INIT(Shardcall_Partitioner);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  Shardcall_Text* json = NULL;
  Shardcall_Program* program = NULL;
  int32_t number = 0;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  target.name = "ranks";
  target.handler = Same;
  CHECK_OK(Shardcall_RegisterTarget(registry, &target));
  p.partition = Partition;
  p.infer_sharding_from_operands = Infer;
  p.data = &number;
  CHECK_OK(Shardcall_RegisterCustomCallPartitioner(registry, "ranks", &p));
  options.registry = registry;
  Shardcall_Module* module = Read(Program(Array(kMaxRank)));
  CHECK_OK(Shardcall_Module_Verify(module, &options, 1, &json));
  CHECK_THAT(TextHas(json, "\"status\": \"ok\""));
  number = 1; /* one dimension more */
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E120",
              "expected a rank of 0 to 255, found 256");
  Shardcall_Registry_Destroy(registry);

  CHECK_OK(Shardcall_Registry_Create(&registry));
  CHECK_OK(Shardcall_RegisterTarget(registry, &target));
  p.partition = ReshardAlone;
  CHECK_OK(Shardcall_RegisterCustomCallPartitioner(registry, "ranks", &p));
  options.registry = registry;
  for (int k = 0; k < 2; ++k) {
    number = k == 0 ? kMaxRank + 1 : -1;
    CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E120",
                k == 0 ? "number of dimensions: expected 0 to 255, found 256"
                       : "number of dimensions: expected 0 to 255, found -1");
  }
  Shardcall_Module_Destroy(module);

  Shardcall_ShapeFunction function = SHARDCALL_INIT(Shardcall_ShapeFunction);
  function.infer = ShapeOf;
  function.data = &number;
  CHECK_OK(Shardcall_RegisterShapeFunction(registry, "ranks", &function));
  number = kMaxRank;
  const char* const shapeless = Program("");
  const size_t size = strlen(shapeless);
  CHECK_OK(Shardcall_Module_ReadWith(registry, shapeless, size, "ranks", &module));
  Shardcall_Module_Destroy(module);
  module = NULL;
  number = kMaxRank + 1;
  CHECK_FAILS(Shardcall_Module_ReadWith(registry, shapeless, size, "ranks", &module), "E121",
              "a rank of 0 to 255");
  Shardcall_Registry_Destroy(registry);
  if (failures == 0) printf("ok\n");
  return failures == 0 ? 0 : 1;
}
