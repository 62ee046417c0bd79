// SPDX-License-Identifier: Apache-2.0
/* Partitioners in C: what they see, what they build, what becomes of mistakes. */
#include "tests/partitioner/bindings/c/check.h"

/* Target "c_same" gives its operand back, and is partitioned in as many ways as
 * there are steps; every program is verified. */
static int Same(const Shardcall_Call* call, void* data) {
  const Shardcall_Buffer* in = &call->operands[0];
  int64_t n = 1;
  for (int32_t d = 0; d < in->rank; ++d) n *= in->dims[d];
  memcpy(call->results[0].data, in->data, (size_t)n * 4);
  (void)data;
  return 0;
}

static const char kProgram[] =
    "HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes="
    "{mesh = #sdy.mesh<[\"data\"=4, \"model\"=2]>}}\n\nENTRY e {\n"
    "  x = s32[8,12] parameter(0), frontend_attributes={xla.sdy.sharding="
    "\"#sdy.sharding<@mesh, [{\\\"data\\\"}, {}]>\"}\n"
    "  y = s32[8,12] custom-call(x), custom_call_target=\"c_same\", "
    "api_version=API_VERSION_TYPED_FFI, frontend_attributes={kind=\"test\"}, "
    "output_to_operand_aliasing={{}: (0, {})}, operand_layout_constraints={s32[8,12]{1,0}}, "
    "backend_config={k = 3 : i64, name = \"n\", on = true, f = 2.500000e+00 : f64}\n"
    "  ROOT r = s32[8,12] add(y, x)\n}\n";

enum Step {
  kCallTarget,
  kGather,
  kToAll,
  kPermute,
  kScatter,
  kProgramText,
  kReshard,
  kPartial,
  kSteps,
  /* mistakes */
  kThrowsCode,
  kWrongHandle,
  kWrongValue,
  kWrongAxis,
  kWrongOp,
  kWrongText,
  kWrongProgram,
  kNoResult,
  kWrongShape,
  kNullPlace,
  kWrongCount,
  kManySteps
};

static const char* const kData[] = {"data", NULL};
static const char* const kModel[] = {"model", NULL};

static int Identity(const Shardcall_PartitionContext* c, const Shardcall_Sharding* s) {
  Shardcall_Value x, y;
  int code = c->operand(c, 0, s, &x);
  if (code == 0) code = c->call_target(c, &x, &s, &y);
  return code != 0 ? code : c->set_result(c, 0, y, s);
}

static void CheckView(const Shardcall_CallView* v) {
  int64_t k = 0;
  double f = 0;
  int on = 0;
  const char* name = NULL;
  size_t size = 0;
  CHECK_THAT(v->get_int(v, "k", &k) == 1 && k == 3);
  CHECK_THAT(v->get_float(v, "f", &f) == 1 && f == 2.5);
  CHECK_THAT(v->get_bool(v, "on", &on) == 1 && on == 1);
  CHECK_THAT(v->get_string(v, "name", &name, &size) == 1 && size == 1 && name[0] == 'n');
  CHECK_THAT(v->get_int(v, "name", &k) == 0 && v->get_int(v, "none", &k) == 0);
  CHECK_THAT(v->get_int(v, NULL, &k) == 0);
  CHECK_THAT(strcmp(v->target, "c_same") == 0 && strcmp(v->instruction, "y") == 0);
  CHECK_THAT(v->api_version == 4 && v->has_side_effect == 0);
  CHECK_THAT(v->num_operands == 1 && v->operands[0].type == 4 && v->operands[0].rank == 2);
  CHECK_THAT(v->num_results == 1 && v->results[0].dims[1] == 12);
  CHECK_THAT(v->num_axes == 2 && strcmp(v->axes[0].name, "data") == 0 && v->axes[1].size == 2);
  CHECK_THAT(v->axes[0].is_manual == 0);
  CHECK_THAT(v->num_frontend_attributes == 1 &&
             strcmp(v->frontend_attributes[0].value, "test") == 0);
  CHECK_THAT(v->num_aliases == 1 && v->aliases[0].result == 0 && v->aliases[0].operand == 0);
  CHECK_THAT(v->num_operand_layouts == 1 && v->operand_layouts[0].minor_to_major[0] == 1);
  const Shardcall_Sharding* s =
      v->parse_sharding(v, "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2);
  CHECK_THAT(s != NULL && v->num_shards(v, s, 0) == 4 && v->num_shards(v, s, 1) == 1);
  CHECK_THAT(strcmp(v->sharding_text(v, s), "[{\"data\"}, {}]") == 0);
  CHECK_THAT(s == v->with_dim(v, v->replicated(v, 2), 0, kData));
  CHECK_THAT(v->sharding_rank(v, s) == 2 && v->num_shards(v, s, 7) == 0);
}

static int Partition(const Shardcall_PartitionContext* c, void* data) {
  const Shardcall_CallView* v = c->call;
  CheckView(v);
  const Shardcall_Sharding* whole = v->replicated(v, 2);
  const Shardcall_Sharding* rows = v->with_dim(v, whole, 0, kData);
  const Shardcall_Sharding* columns = v->with_dim(v, whole, 1, kData);
  Shardcall_Value x = {0xffffffffu};
  Shardcall_Shape shape;
  const int64_t from[] = {0, 1}, to[] = {1, 0};
  CHECK_THAT(c->operand_sharding(c, 0) == rows && c->operand_sharding(c, 1) == NULL);
  switch (*(const int*)data) {
    case kCallTarget: return Identity(c, c->result_sharding(c, 0));
    case kGather:
      return c->operand(c, 0, rows, &x) || c->all_gather(c, x, 0, kData, &x) ||
             c->set_result(c, 0, x, whole);
    case kToAll:
      return c->operand(c, 0, rows, &x) || c->all_to_all(c, x, 1, 0, kData, &x) ||
             c->set_result(c, 0, x, columns);
    case kPermute: /* there and back */
      return c->operand(c, 0, v->with_dim(v, whole, 0, kModel), &x) ||
             c->collective_permute(c, x, kModel, from, to, 2, &x) ||
             c->collective_permute(c, x, kModel, to, from, 2, &x) ||
             c->set_result(c, 0, x, v->with_dim(v, whole, 0, kModel));
    case kScatter: { /* the sum of x over "model" is 2x; its half, by a program */
      static const char kHalf[] =
          "HloModule half\n\nENTRY e {\n  x = s32[4,12] parameter(0)\n  two = s32[] constant(2)\n"
          "  twos = s32[4,12] broadcast(two), dimensions={}\n  ROOT h = s32[4,12] divide(x, "
          "twos)\n}\n";
      return c->operand(c, 0, whole, &x) || c->reduce_scatter(c, x, 0, "add", kModel, &x) ||
             c->shape(c, x, &shape) || shape.dims[0] != 4 ||
             c->add_program(c, kHalf, sizeof(kHalf) - 1, &x, 1, &x, 1) ||
             c->set_result(c, 0, x, v->with_dim(v, whole, 0, kModel));
    }
    case kProgramText: {
      static const char kTwice[] =
          "HloModule p\n\nENTRY e {\n  x = s32[2,12] parameter(0)\n  i = s32[] parameter(1)\n"
          "  id = u32[] parameter(2)\n  n = s32[2,12] negate(x)\n  m = s32[2,12] negate(n)\n"
          "  ROOT t = (s32[2,12], s32[]) tuple(m, i)\n}\n";
      Shardcall_Value in[3], out[2];
      return c->operand(c, 0, rows, &in[0]) || c->axis_index(c, kData, &in[1]) ||
             c->partition_id(c, &in[2]) ||
             c->add_program(c, kTwice, sizeof(kTwice) - 1, in, 3, out, 2) ||
             c->set_result(c, 0, out[0], rows);
    }
    case kReshard:
      return c->operand(c, 0, rows, &x) || c->reshard(c, x, &v->operands[0], rows, columns, &x) ||
             c->set_result(c, 0, x, columns);
    case kPartial: /* max over copies is the value */
      return c->operand(c, 0, whole, &x) || c->all_reduce(c, x, "min", kData, &x) ||
             c->set_result(c, 0, x, v->with_partial(v, whole, "max", kModel));

    case kThrowsCode: v->set_message(v, "not on a Sunday"); return 9;
    case kWrongHandle: return c->operand(c, 0, (const Shardcall_Sharding*)&shape, &x);
    case kWrongValue: return c->set_result(c, 0, x, whole);
    case kWrongAxis: {
      static const char* const none[] = {"expert", NULL};
      return c->operand(c, 0, rows, &x) || c->all_gather(c, x, 0, none, &x) ? 3 : 0;
    }
    case kWrongOp:
      return c->operand(c, 0, rows, &x) || c->all_reduce(c, x, "average", kData, &x) ? 3 : 0;
    case kWrongText: return v->parse_sharding(v, "[{\"data\"}", 2) == NULL ? 3 : 0;
    case kWrongProgram:
      return c->operand(c, 0, rows, &x) || c->add_program(c, "HloModule", 9, &x, 1, &x, 1) ? 3 : 0;
    case kNoResult: return 0;
    case kWrongShape: return c->operand(c, 0, rows, &x) || c->set_result(c, 0, x, whole) ? 3 : 0;
    case kNullPlace: return c->operand(c, 0, rows, NULL);
    case kWrongCount:
      return c->operand(c, 0, rows, &x) || c->add_program(c, "", 0, &x, -1, NULL, 0) ? 3 : 0;
    default: return 13;
  }
}

static int Infer(const Shardcall_CallView* call, const Shardcall_Sharding* const* operands,
                 const Shardcall_Sharding** results, void* data) {
  (void)call;
  (void)data;
  results[0] = operands[0];
  return 0;
}
static int Propagate(const Shardcall_CallView* call, int32_t result, const Shardcall_Sharding* user,
                     const Shardcall_Sharding** answer, void* data) {
  (void)data;
  *answer = result == 0 ? call->with_dim(call, user, 1, NULL) : NULL;
  return 0;
}
static int InferFails(const Shardcall_CallView* call, const Shardcall_Sharding* const* operands,
                      const Shardcall_Sharding** results, void* data) {
  (void)operands;
  (void)results;
  (void)data;
  call->set_message(call, "no idea");
  return 12;
}

/* The registry with "c_same" partitioned by this step. */
static Shardcall_Registry* With(int* step, Shardcall_Partitioner* partitioner) {
  Shardcall_Registry* registry = NULL;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "c_same";
  target.handler = Same;
  CHECK_OK(Shardcall_RegisterTarget(registry, &target));
  partitioner->data = step;
  CHECK_OK(Shardcall_RegisterCustomCallPartitioner(registry, "c_same", partitioner));
  return registry;
}

static Shardcall_Error* Try(int step, Shardcall_Partitioner* partitioner) {
  Shardcall_Module* module = Read(kProgram);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = With(&step, partitioner);
  Shardcall_Program* program = NULL;
  Shardcall_Error* error = Shardcall_PartitionModule(module, &options, &program);
  Shardcall_Program_Destroy(program);
  Shardcall_Registry_Destroy(options.registry);
  Shardcall_Module_Destroy(module);
  return error;
}

int main(void) {
  Shardcall_Partitioner p = SHARDCALL_INIT(Shardcall_Partitioner);
  p.partition = Partition;
  p.infer_sharding_from_operands = Infer;
  p.propagate_user_sharding = Propagate;

  Shardcall_Module* module = Read(kProgram);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  for (int step = 0; step < kSteps; ++step) {
    options.registry = With(&step, &p);
    Shardcall_Text* json = NULL;
    CHECK_OK(Shardcall_Module_Verify(module, &options, 1, &json));
    if (!TextHas(json, "\"status\": \"ok\"")) {
      ++failures;
      fprintf(stderr, "in step %d\n", step);
    }
    Shardcall_Registry_Destroy(options.registry);
  }

  CHECK_FAILS(Try(kThrowsCode, &p), "E121",
              "partition callback of \"c_same\" (%y) failed: not on a Sunday");
  CHECK_FAILS(Try(kWrongHandle, &p), "E120", "was not given");
  CHECK_FAILS(Try(kWrongValue, &p), "E120", "not made here");
  CHECK_FAILS(Try(kWrongAxis, &p), "E120", "free axes: data, model, found expert");
  CHECK_FAILS(Try(kWrongOp, &p), "E120", "average");
  CHECK_FAILS(Try(kWrongText, &p), "E120", "cannot be read");
  CHECK_FAILS(Try(kWrongProgram, &p), "E002", "program of c_same");
  CHECK_FAILS(Try(kNoResult, &p), "E120", "set no result 0");
  CHECK_FAILS(Try(kWrongShape, &p), "E120", "expected the local shape s32[8,12], found s32[2,12]");
  CHECK_FAILS(Try(kNullPlace, &p), "E120", "no place");
  CHECK_FAILS(Try(kWrongCount, &p), "E120", "a list of values is wrong");
  CHECK_FAILS(Try(kManySteps, &p), "E121", "it returned 13");
  p.infer_sharding_from_operands = InferFails;
  CHECK_FAILS(Try(kCallTarget, &p), "E121",
              "infer_sharding_from_operands callback of \"c_same\" failed: no idea");

  /* Equal partitioners pass, others show both; keys follow the version. */
  int step = kCallTarget;
  p.infer_sharding_from_operands = Infer;
  options.registry = With(&step, &p);
  CHECK_OK(Shardcall_RegisterCustomCallPartitioner(options.registry, "c_same", &p));
  p.version = 2;
  CHECK_FAILS(Shardcall_RegisterCustomCallPartitioner(options.registry, "c_same", &p), "E105",
              "version 2");
  p.struct_size = 12;
  CHECK_FAILS(Shardcall_RegisterCustomCallPartitioner(options.registry, "other", &p), "E148",
              "struct_size");
  p.struct_size = sizeof(p);
  Shardcall_Program* program = NULL;
  Shardcall_Text *one = NULL, *two = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_OK(Shardcall_Program_RuleKey(program, "y", &one));
  Shardcall_Program_Destroy(program);
  Shardcall_Registry_Destroy(options.registry);
  options.registry = With(&step, &p);
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_OK(Shardcall_Program_RuleKey(program, "y", &two));
  CHECK_THAT(strcmp(Shardcall_Text_Data(one), Shardcall_Text_Data(two)) != 0);
  Shardcall_Text_Destroy(one);
  Shardcall_Text_Destroy(two);
  Shardcall_Program_Destroy(program);
  Shardcall_Registry_Destroy(options.registry);
  Shardcall_Module_Destroy(module);
  if (failures == 0) printf("ok\n");
  return failures == 0 ? 0 : 1;
}
