// SPDX-License-Identifier: Apache-2.0
/* The C interface from C: registration, reading, partitioning, running, and what
 * wrong arguments come to. */
#include <stddef.h>
#include <stdlib.h>

#include "tests/partitioner/bindings/c/check.h"

static const char kProgram[] =
    "HloModule m, num_partitions=4\n\nENTRY e {\n"
    "  x = f32[6,4] parameter(0), sharding={devices=[4,1]<=[4]}\n"
    "  y = f32[6,4] custom-call(x), custom_call_target=\"c_double\"\n"
    "  ROOT r = f32[6,4] custom-call(y), custom_call_target=\"c_untyped\"\n}\n";

/* y = 2 x */
static int Double(const Shardcall_Call* call, void* data) {
  const Shardcall_Buffer* in = &call->operands[0];
  int64_t n = 1;
  for (int32_t d = 0; d < in->rank; ++d) n *= in->dims[d];
  for (int64_t i = 0; i < n; ++i) {
    ((float*)call->results[0].data)[i] = *(float*)data * ((const float*)in->data)[i];
  }
  return 0;
}
/* Along the rows. */
static int RunningSum(const Shardcall_Call* call, void* data) {
  const Shardcall_Buffer* in = &call->operands[0];
  (void)data;
  for (int64_t i = 0; i < in->dims[0]; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < in->dims[1]; ++j) {
      sum += ((const float*)in->data)[i * in->dims[1] + j];
      ((float*)call->results[0].data)[i * in->dims[1] + j] = sum;
    }
  }
  return 0;
}
/* The program's shards are 2 by 4, but for the last; so is what may be touched. */
static void Untyped(void* out, const void** in) { memcpy(out, in[0], 2 * 4 * sizeof(float)); }
static void Other(void* out, const void** in) { memcpy(out, in[0], sizeof(float)); }

static float two = 2;

static void RegisterAll(Shardcall_Registry* registry) {
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "c_double";
  target.rule = "a b -> a b";
  target.handler = Double;
  target.handler_data = &two;
  CHECK_OK(Shardcall_RegisterTarget(registry, &target));
  Shardcall_CustomCallTarget untyped = SHARDCALL_INIT(Shardcall_CustomCallTarget);
  untyped.name = "c_untyped";
  untyped.function = (void*)Untyped;
  CHECK_OK(Shardcall_RegisterCustomCallTarget(registry, &untyped));
  CHECK_OK(Shardcall_RegisterCustomCallTarget(registry, &untyped)); /* equal */
  Shardcall_Target rule = SHARDCALL_INIT(Shardcall_Target);
  rule.name = "c_untyped";
  rule.has_batch_dims = 1;
  rule.batch_dims = 1;
  CHECK_OK(Shardcall_RegisterTarget(registry, &rule));
}

static void ProgramsRun(Shardcall_Registry* registry) {
  Shardcall_Module* module = Read(kProgram);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_THAT(Shardcall_Program_NumPartitions(program) == 4);
  Shardcall_Text* text = NULL;
  CHECK_OK(Shardcall_Program_Print(program, &text));
  CHECK_THAT(TextHas(text, "f32[2,4]{1,0} custom-call"));
  CHECK_OK(Shardcall_Program_Report(program, &text));
  CHECK_THAT(TextHas(text, "\"num_partitions\""));
  CHECK_OK(Shardcall_Program_Explain(program, NULL, &text));
  CHECK_THAT(TextHas(text, "all-gather"));
  CHECK_OK(Shardcall_Program_Explain(program, "html", &text));
  CHECK_THAT(TextHas(text, "<"));
  CHECK_OK(Shardcall_Program_Expect(program, "all-reduce=0"));
  CHECK_FAILS(Shardcall_Program_Expect(program, "all-gather=0"), "E221", "all-gather");
  CHECK_FAILS(Shardcall_Program_Expect(program, "no such"), "E220", "");
  CHECK_FAILS(Shardcall_Program_Explain(program, "pdf", &text), "E148", "text, json or html");
  CHECK_OK(Shardcall_Program_RuleKey(program, "%y", &text));
  CHECK_THAT(Shardcall_Text_Size(text) == 32);
  Shardcall_Text_Destroy(text);
  CHECK_FAILS(Shardcall_Program_RuleKey(program, "x", &text), "E148", "custom call");

  float x[24];
  for (int i = 0; i < 24; ++i) x[i] = (float)i;
  const int64_t dims[] = {6, 4};
  Shardcall_Buffer input = {sizeof(Shardcall_Buffer), 11, 2, dims, x};
  Shardcall_Buffers* outputs = NULL;
  CHECK_OK(Shardcall_Program_Run(program, &input, 1, &outputs));
  CHECK_THAT(Shardcall_Buffers_Count(outputs) == 1);
  const Shardcall_Buffer* out = Shardcall_Buffers_Get(outputs, 0);
  CHECK_THAT(out->type == 11 && out->rank == 2 && out->dims[0] == 6 && out->dims[1] == 4);
  for (int i = 0; i < 24; ++i) CHECK_THAT(((float*)out->data)[i] == 2 * x[i]);
  CHECK_THAT(Shardcall_Buffers_Get(outputs, 1) == NULL);
  CHECK_THAT(Shardcall_Buffers_Get(outputs, -1) == NULL);
  Shardcall_Buffers_Destroy(outputs);

  CHECK_FAILS(Shardcall_Program_Run(program, &input, 2, &outputs), "E313", "1");
  CHECK_FAILS(Shardcall_Program_Run(program, NULL, 1, &outputs), "E313", "null");
  input.type = 12;
  CHECK_FAILS(Shardcall_Program_Run(program, &input, 1, &outputs), "E313", "f32[6,4]");
  input.type = 11;
  input.rank = 1;
  CHECK_FAILS(Shardcall_Program_Run(program, &input, 1, &outputs), "E313", "rank 1");
  input.rank = 2;
  input.data = NULL;
  CHECK_FAILS(Shardcall_Program_Run(program, &input, 1, &outputs), "E313", "no data");
  input.data = x;
  input.struct_size = 3;
  CHECK_FAILS(Shardcall_Program_Run(program, &input, 1, &outputs), "E313", "struct_size");
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
}

/* The program keeps what it needs of what it was made from. */
static void ProgramsOutliveModuleAndRegistry(void) {
  Shardcall_Registry* registry = NULL;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  RegisterAll(registry);
  Shardcall_Module* module = Read(kProgram);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Module_Destroy(module);
  Shardcall_Registry_Destroy(registry);
  float x[24] = {1};
  const int64_t dims[] = {6, 4};
  const Shardcall_Buffer input = {sizeof(Shardcall_Buffer), 11, 2, dims, x};
  Shardcall_Buffers* outputs = NULL;
  CHECK_OK(Shardcall_Program_Run(program, &input, 1, &outputs));
  CHECK_THAT(((float*)Shardcall_Buffers_Get(outputs, 0)->data)[0] == 2);
  Shardcall_Buffers_Destroy(outputs);
  Shardcall_Program_Destroy(program);
}

static void StagesAndForms(Shardcall_Registry* registry) {
  Shardcall_Module* module = Read(kProgram);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Text *propagated = NULL, *direct = NULL, *staged = NULL, *bytes = NULL, *json = NULL;
  CHECK_OK(Shardcall_PropagateModule(module, &options, &propagated));
  CHECK_THAT(strstr(Shardcall_Text_Data(propagated), "sharding={devices=[4,1]<=[4]}") != NULL);
  Shardcall_Module* again = Read(Shardcall_Text_Data(propagated));
  Shardcall_Program *one = NULL, *two_stages = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &one));
  options.no_propagate = 1;
  CHECK_OK(Shardcall_PartitionModule(again, &options, &two_stages));
  CHECK_OK(Shardcall_Program_Print(one, &direct));
  CHECK_OK(Shardcall_Program_Print(two_stages, &staged));
  CHECK_THAT(strcmp(Shardcall_Text_Data(direct), Shardcall_Text_Data(staged)) == 0);

  CHECK_OK(Shardcall_Program_Serialize(one, &bytes));
  Shardcall_Module* binary = NULL;
  CHECK_OK(Shardcall_Module_Read(Shardcall_Text_Data(bytes), Shardcall_Text_Size(bytes), "m.pb",
                                 &binary));
  Shardcall_Text* printed = NULL;
  CHECK_OK(Shardcall_Module_Print(binary, &printed));
  CHECK_THAT(TextHas(printed, "f32[2,4]{1,0} custom-call"));
  Shardcall_Text_Destroy(bytes);
  CHECK_OK(Shardcall_Module_Serialize(module, &bytes));
  CHECK_THAT(Shardcall_Text_Size(bytes) > 0);

  options.no_propagate = 0;
  CHECK_OK(Shardcall_Module_Verify(module, &options, 1, &json));
  CHECK_THAT(TextHas(json, "\"num_partitions\""));
  Shardcall_Text* texts[] = {propagated, direct, staged, bytes};
  for (int k = 0; k < 4; ++k) Shardcall_Text_Destroy(texts[k]);
  Shardcall_Program_Destroy(one);
  Shardcall_Program_Destroy(two_stages);
  Shardcall_Module_Destroy(module);
  Shardcall_Module_Destroy(again);
  Shardcall_Module_Destroy(binary);
}

static int Count(const Shardcall_CustomCallTarget* target, void* data) {
  if (strcmp(target->name, "refused") == 0) return 7;
  if (strcmp(target->platform, "Host") != 0 || target->name[0] == 0) return 13;
  ++*(int*)data;
  return 0;
}
static int CountTypes(const char* name, int64_t id, void* data) {
  if (name == NULL || id <= 0) return 13;
  ++*(int*)data;
  return 0;
}

static void Inspect(void* data, Shardcall_InspectShardingArgs* args) {
  *(int*)data += args->sharding_spec_size > 0;
}

/* A program asks for the sharding of a value while it is partitioned. */
static void InspectsShardings(Shardcall_Registry* registry) {
  int told = 0;
  char bytes[16] = {0}, escaped[65] = "", text[1024];
  CHECK_OK(Shardcall_EncodeInspectShardingCallback(Inspect, &told, bytes));
  for (int k = 0; k < 16; ++k) sprintf(escaped + 4 * k, "\\%03o", (unsigned char)bytes[k]);
  sprintf(text,
          "HloModule m, num_partitions=2\nENTRY e {\n"
          "  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n"
          "  i = () custom-call(x), custom_call_target=\"InspectSharding\", "
          "custom_call_has_side_effect=true, backend_config=\"%s\"\n"
          "  ROOT r = f32[8] negate(x)\n}\n",
          escaped);
  Shardcall_Module* module = Read(text);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_THAT(told == 1);
  Shardcall_Program_Destroy(program);
  CHECK_OK(Shardcall_ForgetInspectShardingCallback(bytes));
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_THAT(told == 1);
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  CHECK_FAILS(Shardcall_ForgetInspectShardingCallback(bytes), "E148", "no callback");
  CHECK_FAILS(Shardcall_EncodeInspectShardingCallback(NULL, NULL, bytes), "E148", "null");
}

/* A target partitioned like a computation in HLO; there is no rule to write. */
static void PartitionsLikeAReference(void) {
  Shardcall_Registry* registry = NULL;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "c_like";
  target.reference =
      "HloModule like\nENTRY main {\n  x = f32[6,4] parameter(0)\n"
      "  ROOT y = f32[6,4] negate(x)\n}\n";
  CHECK_OK(Shardcall_RegisterTarget(registry, &target));
  Shardcall_Module* module = Read(
      "HloModule m, num_partitions=2\nENTRY e {\n"
      "  x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}\n"
      "  ROOT y = f32[8,4] custom-call(x), custom_call_target=\"c_like\", "
      "sharding={devices=[2,1]<=[2]}\n}\n");
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Text* text = NULL;
  CHECK_OK(Shardcall_Program_Print(program, &text));
  CHECK_THAT(TextHas(text, "f32[4,4]{1,0} custom-call"));
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  target.rule = "a b -> a b";
  CHECK_FAILS(Shardcall_RegisterTarget(registry, &target), "E146", "one of rule");
  target.rule = NULL;
  target.name = "c_wrong";
  target.reference = "HloModule no";
  CHECK_FAILS(Shardcall_RegisterTarget(registry, &target), "E002", "reference");
  Shardcall_Registry_Destroy(registry);
}

static void HandlersAndTypes(void) {
  Shardcall_Registry* registry = NULL;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  RegisterAll(registry);
  int seen = 0, visited = 0, types = 0, before = 0;
  /* The shipped targets, and those of RegisterAll, whichever way they came. */
  CHECK_OK(Shardcall_CustomCallTargets(registry, "cpu", Count, &before));
  CHECK_THAT(before > 3);
  CHECK_OK(Shardcall_RegisterCustomCallHandler(registry, "cpu", Count, &seen));
  CHECK_THAT(seen == before);
  Shardcall_CustomCallTarget late = SHARDCALL_INIT(Shardcall_CustomCallTarget);
  late.name = "late";
  late.function = (void*)Other;
  CHECK_OK(Shardcall_RegisterCustomCallTarget(registry, &late));
  CHECK_THAT(seen == before + 1);
  late.name = "refused";
  Shardcall_Error* refused = Shardcall_RegisterCustomCallTarget(registry, &late);
  CHECK_THAT(Shardcall_Error_Status(refused) == 7);
  Shardcall_Error_Destroy(refused);
  CHECK_OK(Shardcall_CustomCallTargets(registry, NULL, Count, &visited));
  CHECK_THAT(visited == before + 1); /* the refused one is not there */
  CHECK_FAILS(Shardcall_RegisterCustomCallHandler(registry, "Host", Count, &seen), "E141",
              "already");

  int64_t id = 0, same = 0;
  CHECK_OK(Shardcall_RegisterCustomTypeIdHandler(registry, NULL, CountTypes, &types));
  CHECK_OK(Shardcall_RegisterCustomTypeId(registry, "c_test.type", NULL, &id, NULL));
  CHECK_OK(Shardcall_RegisterCustomTypeId(registry, "c_test.type", "cpu", &same, NULL));
  CHECK_THAT(id > 0 && id == same && types == 1);
  Shardcall_Text* table = NULL;
  CHECK_OK(Shardcall_DescribeTargets(registry, &table));
  CHECK_THAT(strstr(Shardcall_Text_Data(table), "rms_norm") != NULL);
  CHECK_THAT(TextHas(table, "c_double"));
  Shardcall_Registry_Destroy(registry);
}

static void WrongRegistrations(Shardcall_Registry* r) {
  Shardcall_CustomCallTarget t = SHARDCALL_INIT(Shardcall_CustomCallTarget);
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, NULL), "E148", "null");
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E148", "name");
  t.name = "wrong";
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E144", "no function");
  t.function = (void*)Untyped;
  t.platform = "";
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E141", "no name");
  t.platform = NULL;
  t.api_version = 2;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E147", "API version 2 is not supported");
  t.api_version = 9;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E147", "API version 9");
  t.api_version = 0;
  t.traits = 1;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E147", "traits");
  t.traits = 0;
  t.ffi_prepare = (void*)Untyped;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E148", "stages");
  t.ffi_prepare = NULL;
  t.struct_size = 8;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E148", "struct_size");
  t.struct_size = (size_t)1 << 40;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E148", "struct_size");
  t.struct_size = sizeof(t);
  t.name = "c_untyped";
  t.function = (void*)Other;
  CHECK_FAILS(Shardcall_RegisterCustomCallTarget(r, &t), "E141", "already");

  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  CHECK_FAILS(Shardcall_RegisterTarget(r, NULL), "E146", "null");
  CHECK_FAILS(Shardcall_RegisterTarget(r, &target), "E146", "name");
  target.name = "wrong";
  CHECK_FAILS(Shardcall_RegisterTarget(r, &target), "E146", "none");
  target.rule = "a b -> a (";
  CHECK_FAILS(Shardcall_RegisterTarget(r, &target), "E110", "wrong");
  target.rule = "a -> a";
  target.batch_dims_of_call = 1;
  CHECK_FAILS(Shardcall_RegisterTarget(r, &target), "E146", "2 of them");
  target.batch_dims_of_call = 0;
  target.name = "c_double";
  Shardcall_Error* both = Shardcall_RegisterTarget(r, &target);
  CHECK_THAT(strstr(Shardcall_Error_Text(both), "a b -> a b") != NULL);
  CHECK_THAT(strstr(Shardcall_Error_Text(both), "\"a -> a\"") != NULL);
  Shardcall_Error_Destroy(both);
  target.struct_size = 1;
  CHECK_FAILS(Shardcall_RegisterTarget(r, &target), "E146", "struct_size");
  CHECK_FAILS(Shardcall_RegisterCustomCallPartitioner(r, "p", NULL), "E148", "null");
  CHECK_FAILS(Shardcall_RegisterCustomCallPartitioner(r, NULL, NULL), "E148", "name");
  CHECK_FAILS(Shardcall_RegisterCustomCallAsBatchPartitionable(r, NULL), "E148", "name");
  CHECK_FAILS(Shardcall_RegisterCustomCallHandler(r, "cpu", NULL, NULL), "E148", "handler");
  CHECK_FAILS(Shardcall_CustomCallTargets(r, "cpu", NULL, NULL), "E148", "visit");
  CHECK_FAILS(Shardcall_RegisterCustomTypeId(r, "n", NULL, NULL, NULL), "E147", "null");
  CHECK_FAILS(Shardcall_LoadPlugin(r, "/no/such/file.so"), "E143", "/no/such/file.so");
  CHECK_FAILS(Shardcall_LoadPlugin(r, NULL), "E148", "path");
  CHECK_FAILS(Shardcall_LoadPluginWithin(r, NULL, 10), "E148", "path");
  static const char manifest[] = "program_test.manifest.json";
  FILE* const file = fopen(manifest, "w");
  CHECK_THAT(file != NULL && fputs("{\"targets\": []}", file) >= 0 && fclose(file) == 0);
  CHECK_FAILS(Shardcall_LoadPluginWithin(r, manifest, 14), "E064", "expected at most 14 B");
  CHECK_OK(Shardcall_LoadPluginWithin(r, manifest, 15));
  remove(manifest);
  CHECK_FAILS(Shardcall_DescribeTargets(r, NULL), "E148", "table");
  CHECK_FAILS(Shardcall_Registry_Create(NULL), "E148", "registry");
}

/* Calls in text may leave out the shape that their target's rule or function gives. */
static void ShapesFollow(Shardcall_Registry* registry) {
  static const char kShapeless[] =
      "HloModule m, num_partitions=2\n\nENTRY e {\n"
      "  x = f32[6,4] parameter(0), sharding={devices=[2,1]<=[2]}\n"
      "  y = custom-call(x), custom_call_target=\"custom_relu\", "
      "api_version=API_VERSION_TYPED_FFI\n"
      "  ROOT z = custom-call(y), custom_call_target=\"c_double\", "
      "api_version=API_VERSION_TYPED_FFI\n}\n";
  Shardcall_Module* module = NULL;
  Shardcall_Program* program = NULL;
  Shardcall_Text* text = NULL;
  CHECK_OK(
      Shardcall_Module_ReadWith(registry, kShapeless, sizeof(kShapeless) - 1, "m.hlo", &module));
  CHECK_OK(Shardcall_Module_Print(module, &text));
  CHECK_THAT(strstr(Shardcall_Text_Data(text), "%y = f32[6,4]{1,0} custom-call") != NULL);
  CHECK_THAT(strstr(Shardcall_Text_Data(text), "%z = f32[6,4]{1,0} custom-call") != NULL);
  Shardcall_Text_Destroy(text);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  module = NULL;
  Shardcall_Registry* empty = NULL;
  CHECK_OK(Shardcall_Registry_Create(&empty));
  CHECK_FAILS(
      Shardcall_Module_ReadWith(empty, kShapeless, sizeof(kShapeless) - 1, "m.hlo", &module),
      "E112", "m.hlo:6:12");
  CHECK_FAILS(Shardcall_Module_ReadWith(empty, NULL, 3, "x", &module), "E148", "data");
  CHECK_FAILS(Shardcall_Module_ReadWith(empty, kShapeless, 3, "x", NULL), "E148", "module");
  Shardcall_Registry_Destroy(empty);
  CHECK_THAT(module == NULL);
}

/* The registry has c_double; here it gets rules that hold and do not. */
static void RulesAreChecked(Shardcall_Registry* registry) {
  Shardcall_CheckOptions options = SHARDCALL_INIT(Shardcall_CheckOptions);
  options.registry = registry;
  int32_t holds = -1;
  Shardcall_Text* json = NULL;
  CHECK_OK(Shardcall_CheckRule("c_double", &options, &holds, &json));
  CHECK_THAT(holds == 1);
  CHECK_THAT(TextHas(json, "\"verdict\": \"holds\""));
  CHECK_OK(Shardcall_CheckRule("custom_relu", NULL, &holds, NULL)); /* that of the process */
  CHECK_THAT(holds == 1);
  options.vjp = 1;
  options.seed = 3;
  CHECK_OK(Shardcall_CheckRule("custom_relu", &options, &holds, NULL));
  CHECK_THAT(holds == 1);
  CHECK_FAILS(Shardcall_CheckRule("c_double", &options, &holds, &json), "E118", "c_double");
  options.vjp = 0;

  /* By a program: its calls, whatever the rule says of sizes. */
  Shardcall_Module* module = Read(kProgram);
  options.program = module;
  CHECK_OK(Shardcall_CheckRule("c_double", &options, &holds, &json));
  CHECK_THAT(holds == 1);
  CHECK_THAT(TextHas(json, "\"target\": \"c_double\""));
  CHECK_FAILS(Shardcall_CheckRule("custom_relu", &options, &holds, NULL), "E191", "no call");
  Shardcall_Module_Destroy(module);
  options.program = NULL;

  /* Columns that depend on each other, of which the rule says that they do not. */
  Shardcall_Registry* other = NULL;
  CHECK_OK(Shardcall_Registry_Create(&other));
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "c_running_sum";
  target.handler = RunningSum;
  target.rule = "a b -> a b";
  CHECK_OK(Shardcall_RegisterTarget(other, &target));
  options.registry = other;
  CHECK_OK(Shardcall_CheckRule("c_running_sum", &options, &holds, &json));
  CHECK_THAT(holds == 0);
  CHECK_THAT(TextHas(json, "\"factor\": \"b\""));
  Shardcall_Registry_Destroy(other);

  json = NULL;
  CHECK_FAILS(Shardcall_CheckRule(NULL, NULL, &holds, &json), "E148", "target");
  CHECK_FAILS(Shardcall_CheckRule("no_such", NULL, &holds, &json), "E140", "no_such");
  options.struct_size = 4;
  CHECK_FAILS(Shardcall_CheckRule("c_double", &options, &holds, &json), "E148", "struct_size");
  CHECK_THAT(json == NULL);
}

static void WrongPrograms(void) {
  Shardcall_Module* module = NULL;
  Shardcall_Program* program = NULL;
  Shardcall_Text* text = NULL;
  Shardcall_Buffers* outputs = NULL;
  const char bad[] = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] addd(x)\n}\n";
  CHECK_FAILS(Shardcall_Module_Read(bad, sizeof(bad) - 1, "bad.hlo", &module), "E004",
              "bad.hlo:4:");
  CHECK_FAILS(Shardcall_Module_Read(bad, 0, "bad.hlo", &module), "E002", "bad.hlo");
  CHECK_FAILS(Shardcall_Module_Read(NULL, 3, "x", &module), "E148", "data");
  CHECK_FAILS(Shardcall_Module_Read(bad, 3, "x", NULL), "E148", "module");
  CHECK_THAT(module == NULL);

  module = Read(kProgram);
  Shardcall_Registry* empty = NULL;
  CHECK_OK(Shardcall_Registry_Create(&empty));
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = empty;
  Shardcall_Error* missing = Shardcall_PartitionModule(module, &options, &program);
  CHECK_THAT(strcmp(Shardcall_Error_Code(missing), "E101") == 0);
  CHECK_THAT(strstr(Shardcall_Error_Message(missing), "c_double") != NULL);
  CHECK_THAT(strstr(Shardcall_Error_Fix(missing), "Register a rule") != NULL);
  CHECK_THAT(Shardcall_Error_Status(missing) == 3);
  Shardcall_Error_Destroy(missing);
  const char* const allowed[] = {"all", NULL};
  options.allow_replicate = allowed;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Program_Destroy(program);
  program = NULL;
  options.conflicts = "largest";
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E212", "largest");
  options.conflicts = "larger";
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Program_Destroy(program);
  program = NULL;
  options.cost = "h101";
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E211", "tpu_v5p");
  /* Structs from before there was a cost have none, no bound on memory, and no search. */
  options.max_memory = 1;
  options.search = "deep";
  options.struct_size = offsetof(Shardcall_Options, cost);
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  Shardcall_Program_Destroy(program);
  program = NULL;
  options.struct_size = sizeof(options);
  options.cost = "h100,latency=5e-6";
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E213", "deep");
  options.search = "all";
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E210", "more memory");
  options.max_memory = 0, options.strict_partial = 1;
  CHECK_OK(Shardcall_PartitionModule(module, &options, &program));
  CHECK_OK(Shardcall_Program_Report(program, &text));
  CHECK_THAT(TextHas(text, "450000000000"));
  text = NULL;
  Shardcall_Program_Destroy(program);
  program = NULL;
  options.num_partitions = -1;
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E148", "num_partitions -1");
  options.num_partitions = 8;
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E051", "");
  options.struct_size = 4;
  CHECK_FAILS(Shardcall_PartitionModule(module, &options, &program), "E148", "struct_size");
  CHECK_FAILS(Shardcall_PartitionModule(NULL, NULL, &program), "E148", "module");
  CHECK_FAILS(Shardcall_PartitionModule(module, NULL, NULL), "E148", "program");
  CHECK_FAILS(Shardcall_PropagateModule(NULL, NULL, &text), "E148", "module");
  CHECK_FAILS(Shardcall_Program_Print(NULL, &text), "E148", "program");
  CHECK_FAILS(Shardcall_Program_Report(NULL, &text), "E148", "program");
  CHECK_FAILS(Shardcall_Program_Run(NULL, NULL, 0, &outputs), "E148", "program");
  CHECK_FAILS(Shardcall_Module_Print(NULL, &text), "E148", "module");
  CHECK_FAILS(Shardcall_Module_Verify(NULL, NULL, 0, &text), "E148", "module");
  CHECK_FAILS(Shardcall_Module_Evaluate(module, empty, NULL, 0, &outputs), "E313", "");
  float x[24] = {0};
  const int64_t dims[] = {6, 4};
  const Shardcall_Buffer input = {sizeof(Shardcall_Buffer), 11, 2, dims, x};
  CHECK_FAILS(Shardcall_Module_Evaluate(module, empty, &input, 1, &outputs), "E140", "c_double");
  CHECK_THAT(program == NULL && text == NULL && outputs == NULL);
  Shardcall_Registry_Destroy(empty);
  Shardcall_Module_Destroy(module);

  /* What may be null. */
  Shardcall_Error_Destroy(NULL);
  Shardcall_Text_Destroy(NULL);
  Shardcall_Module_Destroy(NULL);
  Shardcall_Program_Destroy(NULL);
  Shardcall_Registry_Destroy(NULL);
  Shardcall_Buffers_Destroy(NULL);
  CHECK_THAT(strcmp(Shardcall_Error_Text(NULL), "") == 0);
  CHECK_THAT(Shardcall_Error_Status(NULL) == 0);
  CHECK_THAT(Shardcall_Buffers_Count(NULL) == 0);
}

/* Calls end on request, and at a limit; without either they do not. */
static void CallsAreStopped(void) {
  static const char kEndless[] =
      "HloModule endless_loop\n\nc {\n  p = s32[] parameter(0)\n  ROOT t = pred[] "
      "constant(true)\n}\n"
      "b {\n  p = s32[] parameter(0)\n  ROOT n = s32[] add(p, p)\n}\n"
      "ENTRY e {\n  x = s32[] parameter(0)\n"
      "  ROOT w = s32[] while(x), condition=c, body=b\n}\n";
  Shardcall_Module* module = NULL;
  Shardcall_Program* program = NULL;
  Shardcall_Buffers* outputs = NULL;
  Shardcall_Stop* stop = NULL;
  Shardcall_StopScope* scope = NULL;
  CHECK_OK(Shardcall_Module_Read(kEndless, strlen(kEndless), "endless.hlo", &module));
  int32_t one = 1;
  const Shardcall_Buffer input = {sizeof(Shardcall_Buffer), 4, 0, NULL, &one};
  CHECK_OK(Shardcall_StopScope_Begin(NULL, 0.05, &scope));
  CHECK_FAILS(Shardcall_Module_Evaluate(module, NULL, &input, 1, &outputs), "E346", "%w");
  Shardcall_StopScope_End(scope);
  CHECK_OK(Shardcall_Stop_Create(&stop));
  CHECK_OK(Shardcall_StopScope_Begin(stop, 0, &scope));
  CHECK_OK(Shardcall_PartitionModule(module, NULL, &program));
  Shardcall_Program_Destroy(program);
  program = NULL;
  Shardcall_Stop_Request(stop);
  CHECK_FAILS(Shardcall_PartitionModule(module, NULL, &program), "E346", "");
  Shardcall_StopScope_End(scope);
  CHECK_OK(Shardcall_PartitionModule(module, NULL, &program));
  CHECK_FAILS(Shardcall_StopScope_Begin(stop, -1, &scope), "E148", "limit_s");
  CHECK_FAILS(Shardcall_StopScope_Begin(stop, 0, NULL), "E148", "scope");
  CHECK_FAILS(Shardcall_Stop_Create(NULL), "E148", "stop");
  Shardcall_Stop_Request(NULL);
  Shardcall_Stop_Destroy(NULL);
  Shardcall_StopScope_End(NULL);
  Shardcall_Stop_Destroy(stop);
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
}

int main(void) {
  int32_t major = -1, minor = -1;
  Shardcall_Version(&major, &minor);
  Shardcall_Version(NULL, NULL);
  CHECK_THAT(major == SHARDCALL_C_MAJOR && minor == SHARDCALL_C_MINOR);
  Shardcall_Registry* registry = NULL;
  CHECK_OK(Shardcall_Registry_Create(&registry));
  RegisterAll(registry);
  ProgramsRun(registry);
  ProgramsOutliveModuleAndRegistry();
  StagesAndForms(registry);
  ShapesFollow(registry);
  RulesAreChecked(registry);
  HandlersAndTypes();
  InspectsShardings(NULL);
  PartitionsLikeAReference();
  WrongRegistrations(registry);
  WrongPrograms();
  CallsAreStopped();
  Shardcall_Registry_Destroy(registry);
  RegisterAll(NULL); /* the registry of the process */
  ProgramsRun(NULL);
  if (failures == 0) printf("ok\n");
  return failures == 0 ? 0 : 1;
}
