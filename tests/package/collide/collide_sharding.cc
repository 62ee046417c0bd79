// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/shape.h"
#include "sharding/shape.h"

static_assert(COLLIDE_SHARDING_SHAPE == 1);

int main() {
  const auto mesh = shardcall::Mesh::Create("mesh", {{"data", 4}, {"model", 2}});
  if (!mesh.ok()) return 1;
  std::printf("%lld devices\n", static_cast<long long>(mesh->num_devices()));
  return 0;
}
