// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "kernels/builtin.h"
#include "partitioner/api/partition.h"
#include "shardcall/shardcall.h"
#include "sharding/shape.h"

static_assert(COLLIDE_KERNELS_BUILTIN + COLLIDE_PARTITIONER_API_PARTITION +
                  COLLIDE_SHARDING_SHAPE ==
              3);

int main() {
  auto module =
      shardcall::ParseModule(std::make_shared<const std::string>(R"(HloModule m, num_partitions=2
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[4] negate(x) })"),
                             std::make_shared<shardcall::Context>(), "collide.hlo");
  if (!module.ok()) return 1;
  const auto partitioned = shardcall::Partition(*std::move(module), {});
  if (!partitioned.ok()) return 1;
  std::printf("%s: %d instructions\n", shardcall::kVersion,
              (*partitioned)->local.module.num_instructions());
  return 0;
}
