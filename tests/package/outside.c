// SPDX-License-Identifier: Apache-2.0
/* A user's program in C: loads a plugin, partitions a program with its target,
 * and runs it over four devices. */
#include <stdio.h>
#include <string.h>

#include "shardcall/partitioner/bindings/c/shardcall_c.h"

static const char kProgram[] =
    "HloModule m, num_partitions=4, "
    "allow_spmd_sharding_propagation_to_output={true}\n\nENTRY e {\n"
    "  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n"
    "  ROOT y = f32[8] custom-call(x), custom_call_target=\"outside_double\", "
    "api_version=API_VERSION_TYPED_FFI\n}\n";

static int Failed(Shardcall_Error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "%s\n", Shardcall_Error_Text(error));
  Shardcall_Error_Destroy(error);
  return 1;
}

int main(int argc, char** argv) {
  float x[8];
  const int64_t dims[] = {8};
  Shardcall_Module* module = NULL;
  Shardcall_Program* program = NULL;
  Shardcall_Buffers* outputs = NULL;
  for (int i = 0; i < 8; ++i) x[i] = (float)i;
  const Shardcall_Buffer input = {sizeof(Shardcall_Buffer), 11, 1, dims, x};
  if (argc != 2 || Failed(Shardcall_LoadPlugin(NULL, argv[1])) ||
      Failed(Shardcall_Module_Read(kProgram, strlen(kProgram), "outside", &module)) ||
      Failed(Shardcall_PartitionModule(module, NULL, &program)) ||
      Failed(Shardcall_Program_Expect(program, "bytes=0")) ||
      Failed(Shardcall_Program_Run(program, &input, 1, &outputs))) {
    return 1;
  }
  printf("devices: %d,", (int)Shardcall_Program_NumPartitions(program));
  for (int i = 0; i < 8; ++i) {
    printf(" %g", ((const float*)Shardcall_Buffers_Get(outputs, 0)->data)[i]);
  }
  printf("\n");
  Shardcall_Buffers_Destroy(outputs);
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  return 0;
}
