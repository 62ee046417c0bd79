// SPDX-License-Identifier: Apache-2.0
// Manifests of rules (JSON): every target that one registers can be asked for
// its rule.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/sharding/context.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

void Try(const std::string& json) {
  TargetRegistry targets;
  FuzzRequireDiagnosed(LoadManifest(json, "fuzz.json", &targets), json);
  Context context;
  const Shape* matrix = context.MakeArray(ElementType::kF32, {4, 6});
  const Shape* vector = context.MakeArray(ElementType::kF32, {6});
  for (const TargetRule* target : targets.List()) {
    for (const std::vector<const Shape*>& operands :
         {std::vector<const Shape*>{matrix}, {matrix, vector}, {}}) {
      FuzzRequireDiagnosed(target->Instantiate(target->backend_config, operands, {matrix}).status(),
                           json);
    }
  }
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
