// SPDX-License-Identifier: Apache-2.0
/* PJRT plugins through the C interface. SHARDCALL_PJRT_CPU_PLUGIN names the plugin of the
 * wheel xla-cpu-pjrt; without it only what needs none is tested. */
#include "partitioner/bindings/pjrt/shardcall_c_pjrt.h"

#include <stdlib.h>

#include "tests/partitioner/api/c/check.h"

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
  Shardcall_PjrtEngine_Destroy(NULL);
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
  CHECK_OK(Shardcall_Module_Read(Shardcall_Text_Data(hlo), Shardcall_Text_Size(hlo), "f.mlir",
                                 &module));
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
    StablehloBecomesAModule(plugin);
  }
  if (failures == 0) printf("all as expected\n");
  return failures == 0 ? 0 : 1;
}
