// SPDX-License-Identifier: Apache-2.0
/* PJRT plugins through the C interface. SHARDCALL_PJRT_CPU_PLUGIN names the plugin of the
 * wheel xla-cpu-pjrt; without it only what needs none is tested. */
#include <stdlib.h>

#include "shardcall/partitioner/bindings/pjrt/shardcall_c_pjrt.h"
#include "tests/partitioner/bindings/c/check.h"

static const char kProgram[] =
    "HloModule m, num_partitions=4\n\nENTRY e {\n"
    "  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}\n"
    "  y = f32[4,4] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
    "  ROOT r = f32[4,4] add(y, y)\n}\n";
static const char kStablehlo[] =
    "module @f attributes {mhlo.num_partitions = 1 : i32} {\n"
    "  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %a, %a : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n  }\n}\n";

static void ArgumentsAreChecked(void) {
  Shardcall_PjrtEngine* engine = NULL;
  Shardcall_Text* text = NULL;
  Shardcall_Buffers* out = NULL;
  Shardcall_PjrtOption unset = SHARDCALL_INIT(Shardcall_PjrtOption);
  Shardcall_PjrtOption short_one = SHARDCALL_INIT(Shardcall_PjrtOption);
  short_one.struct_size = 3;
  CHECK_FAILS(Shardcall_PjrtEngine_Create(NULL, NULL, 0, &engine), "E148", "plugin");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("x.so", NULL, 0, NULL), "E148", "engine");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("x.so", NULL, 2, &engine), "E148", "options");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("x.so", &unset, -1, &engine), "E148", "options");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("x.so", &unset, 1, &engine), "E148", "name");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("x.so", &short_one, 1, &engine), "E148", "struct_size");
  CHECK_FAILS(Shardcall_PjrtEngine_Create("/no/such/file.so", NULL, 0, &engine), "E143", "file.so");
  CHECK_THAT(engine == NULL);
  CHECK_FAILS(Shardcall_Program_RunOnPjrt(NULL, NULL, NULL, 0, &out), "E148", "program");
  CHECK_FAILS(Shardcall_Module_VerifyOnPjrt(NULL, NULL, NULL, 0, &text), "E148", "module");
  CHECK_FAILS(Shardcall_StablehloToHlo(NULL, "", 0, &text), "E148", "plugin");
  CHECK_FAILS(Shardcall_StablehloToHlo("x.so", NULL, 0, &text), "E148", "data");
  CHECK_FAILS(Shardcall_StablehloToHlo("x.so", "", 0, NULL), "E148", "hlo");
  Shardcall_PjrtExecutable* step = NULL;
  Shardcall_PjrtArray* array = NULL;
  CHECK_FAILS(Shardcall_Program_CompileForPjrt(NULL, NULL, &step), "E148", "program");
  CHECK_FAILS(Shardcall_PjrtExecutable_Put(NULL, 0, NULL, &array), "E148", "executable");
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(NULL, NULL, 0, 0, NULL, 0), "E148", "executable");
  CHECK_FAILS(Shardcall_PjrtArray_ToHost(NULL, &out), "E148", "array");
  CHECK_THAT(Shardcall_PjrtExecutable_NumInputs(NULL) == 0);
  CHECK_THAT(Shardcall_PjrtExecutable_NumOutputs(NULL) == 0);
  Shardcall_PjrtExecutable_Destroy(NULL);
  Shardcall_PjrtArray_Destroy(NULL);
  Shardcall_PjrtEngine_Destroy(NULL);
}

static const char kSums[] =
    "HloModule m, num_partitions=4, input_output_alias={ {0}: (0, {}, may-alias) }\n\nENTRY e {\n"
    "  s = f32[6] parameter(0), sharding={devices=[4]<=[4]}\n"
    "  x = f32[6] parameter(1), sharding={devices=[4]<=[4]}\n"
    "  a = f32[6] add(s, x), sharding={devices=[4]<=[4]}\n"
    "  ROOT r = (f32[6], f32[6]) tuple(a, x), sharding={{devices=[4]<=[4]}, {replicated}}\n}\n";

static int HasTimes(const Shardcall_PjrtArray* array, const float* x, float times) {
  Shardcall_Buffers* whole = NULL;
  CHECK_OK(Shardcall_PjrtArray_ToHost(array, &whole));
  if (Shardcall_Buffers_Count(whole) != 1) return 0;
  const float* data = (const float*)Shardcall_Buffers_Get(whole, 0)->data;
  int same = 1;
  for (int k = 0; k < 6; ++k) same = same && data[k] == x[k] * times;
  Shardcall_Buffers_Destroy(whole);
  return same;
}

static void ArraysStayOnThePluginsDevices(const char* plugin) {
  Shardcall_PjrtEngine* engine = NULL;
  CHECK_OK(Shardcall_PjrtEngine_Create(plugin, NULL, 0, &engine));
  Shardcall_Module* module = Read(kSums);
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, NULL, &program));
  Shardcall_PjrtExecutable* step = NULL;
  CHECK_OK(Shardcall_Program_CompileForPjrt(program, engine, &step));
  CHECK_FAILS(Shardcall_Program_CompileForPjrt(NULL, engine, &step), "E148", "program");
  CHECK_FAILS(Shardcall_Program_CompileForPjrt(program, NULL, &step), "E148", "engine");
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  Shardcall_PjrtEngine_Destroy(engine);
  CHECK_THAT(Shardcall_PjrtExecutable_NumInputs(step) == 2);
  CHECK_THAT(Shardcall_PjrtExecutable_NumOutputs(step) == 2);
  const float x[6] = {1, 2, 3, 4, 5, 6};
  float zeros[6] = {0, 0, 0, 0, 0, 0};
  const int64_t dims[] = {6};
  Shardcall_Buffer in = SHARDCALL_INIT(Shardcall_Buffer);
  in.type = 11; /* f32 */
  in.rank = 1;
  in.dims = dims;
  in.data = zeros;
  Shardcall_PjrtArray* arrays[2] = {NULL, NULL};
  Shardcall_PjrtArray* results[2] = {NULL, NULL};
  CHECK_FAILS(Shardcall_PjrtExecutable_Put(step, 2, &in, &arrays[0]), "E148", "inputs");
  CHECK_FAILS(Shardcall_PjrtExecutable_Put(step, -1, &in, &arrays[0]), "E148", "inputs");
  in.rank = 0;
  CHECK_FAILS(Shardcall_PjrtExecutable_Put(step, 0, &in, &arrays[0]), "E313", "input 0");
  in.rank = 1;
  CHECK_OK(Shardcall_PjrtExecutable_Put(step, 0, &in, &arrays[0]));
  in.data = (void*)x;
  CHECK_OK(Shardcall_PjrtExecutable_Put(step, 1, &in, &arrays[1]));
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(step, arrays, 1, 1, results, 2), "E148", "2 inputs");
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(step, arrays, 2, 1, results, 1), "E148",
              "2 outputs");
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(step, NULL, 2, 1, results, 2), "E148", "null");
  for (int k = 1; k <= 3; ++k) {
    CHECK_OK(Shardcall_PjrtExecutable_Execute(step, arrays, 2, 1, results, 2));
    CHECK_THAT(arrays[0] == NULL && arrays[1] != NULL);
    arrays[0] = results[0];
    CHECK_THAT(HasTimes(arrays[0], x, (float)k));
    CHECK_THAT(HasTimes(results[1], x, 1));
    Shardcall_PjrtArray_Destroy(results[1]);
  }
  /* Lent, it is still there. */
  CHECK_OK(Shardcall_PjrtExecutable_Execute(step, arrays, 2, 0, results, 2));
  CHECK_THAT(arrays[0] != NULL && HasTimes(arrays[0], x, 3) && HasTimes(results[0], x, 4));
  /* Whole on every device, where the program takes shards: refused, and not taken. */
  Shardcall_PjrtArray* whole[2] = {results[1], arrays[1]};
  Shardcall_PjrtArray* none[2] = {NULL, NULL};
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(step, whole, 2, 1, none, 2), "E313", "does not lie");
  CHECK_THAT(whole[0] == results[1] && none[0] == NULL);
  Shardcall_PjrtArray* twice[2] = {arrays[0], arrays[0]};
  CHECK_FAILS(Shardcall_PjrtExecutable_Execute(step, twice, 2, 1, none, 2), "E148",
              "given up once");
  CHECK_THAT(twice[0] == arrays[0] && HasTimes(arrays[0], x, 3));
  Shardcall_PjrtArray_Destroy(results[0]);
  CHECK_OK(Shardcall_PjrtExecutable_Execute(step, twice, 2, 0, results, 2));
  CHECK_THAT(HasTimes(results[0], x, 6));
  Shardcall_PjrtArray_Destroy(whole[0]);
  Shardcall_PjrtExecutable_Destroy(step);
  CHECK_THAT(HasTimes(results[1], x, 3)); /* without the program */
  for (int k = 0; k < 2; ++k) {
    Shardcall_PjrtArray_Destroy(arrays[k]);
    Shardcall_PjrtArray_Destroy(results[k]);
  }
}

static void AProgramRunsOnThePluginsDevices(const char* plugin) {
  Shardcall_PjrtOption option = SHARDCALL_INIT(Shardcall_PjrtOption);
  option.name = "cpu_device_count";
  option.value = "6";
  Shardcall_PjrtEngine* engine = NULL;
  CHECK_OK(Shardcall_PjrtEngine_Create(plugin, &option, 1, &engine));
  Shardcall_Module* module = Read(kProgram);
  Shardcall_Program* program = NULL;
  CHECK_OK(Shardcall_PartitionModule(module, NULL, &program));
  float x[32];
  for (int k = 0; k < 32; ++k) x[k] = (float)(k % 5 - 2);
  const int64_t dims[] = {8, 4};
  Shardcall_Buffer in = SHARDCALL_INIT(Shardcall_Buffer);
  in.type = 11; /* f32 */
  in.rank = 2;
  in.dims = dims;
  in.data = x;
  Shardcall_Buffers *ours = NULL, *theirs = NULL;
  CHECK_OK(Shardcall_Program_Run(program, &in, 1, &ours));
  CHECK_OK(Shardcall_Program_RunOnPjrt(program, engine, &in, 1, &theirs));
  CHECK_THAT(theirs != NULL && Shardcall_Buffers_Count(theirs) == 1);
  if (theirs != NULL && ours != NULL) {
    CHECK_THAT(memcmp(Shardcall_Buffers_Get(ours, 0)->data, Shardcall_Buffers_Get(theirs, 0)->data,
                      16 * sizeof(float)) == 0);
  }
  CHECK_FAILS(Shardcall_Program_RunOnPjrt(program, engine, &in, 0, &theirs), "E313", "");
  CHECK_FAILS(Shardcall_Program_RunOnPjrt(program, NULL, &in, 1, &theirs), "E148", "engine");
  Shardcall_Text* json = NULL;
  CHECK_OK(Shardcall_Module_VerifyOnPjrt(module, NULL, engine, 1, &json));
  CHECK_THAT(TextHas(json, "\"status\": \"ok\""));
  Shardcall_Buffers_Destroy(ours);
  Shardcall_Buffers_Destroy(theirs);
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  Shardcall_PjrtEngine_Destroy(engine);
}

static void StablehloBecomesAModule(const char* plugin) {
  Shardcall_Text* hlo = NULL;
  CHECK_OK(Shardcall_StablehloToHlo(plugin, kStablehlo, strlen(kStablehlo), &hlo));
  if (hlo == NULL) return;
  Shardcall_Module* module = NULL;
  CHECK_OK(
      Shardcall_Module_Read(Shardcall_Text_Data(hlo), Shardcall_Text_Size(hlo), "f.mlir", &module));
  Shardcall_Text* text = NULL;
  CHECK_OK(Shardcall_Module_Print(module, &text));
  CHECK_THAT(TextHas(text, "add("));
  Shardcall_Text_Destroy(hlo);
  Shardcall_Module_Destroy(module);
  hlo = NULL;
  CHECK_FAILS(Shardcall_StablehloToHlo(plugin, "module {", 8, &hlo), "E334", "");
  CHECK_THAT(hlo == NULL);
  CHECK_FAILS(Shardcall_Module_Read(kStablehlo, strlen(kStablehlo), "f.mlir", &module), "E035",
              "f.mlir");
}

int main(void) {
  ArgumentsAreChecked();
  const char* plugin = getenv("SHARDCALL_PJRT_CPU_PLUGIN");
  if (plugin != NULL && *plugin != '\0') {
    AProgramRunsOnThePluginsDevices(plugin);
    ArraysStayOnThePluginsDevices(plugin);
    StablehloBecomesAModule(plugin);
  }
  if (failures == 0) printf("all as expected\n");
  return failures == 0 ? 0 : 1;
}
