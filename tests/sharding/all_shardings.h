// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_TESTS_SHARDING_ALL_SHARDINGS_H_
#define SHARDCALL_TESTS_SHARDING_ALL_SHARDINGS_H_

#include <vector>

#include "shardcall/sharding/sharding.h"

namespace shardcall {

// All ways to place the axes of a mesh, each in a dimension or in none, in every order.
inline std::vector<const Sharding*> AllShardings(Context& context, const BaseMesh* mesh, int rank) {
  std::vector<ShardingBuilder> made = {ShardingBuilder(mesh, rank)};
  for (int axis = 0; axis < mesh->num_axes(); ++axis) {
    const size_t before = made.size();
    for (size_t k = 0; k < before; ++k) {
      for (int d = 0; d < rank; ++d) {
        for (size_t at = 0; at <= made[k].dims[d].size(); ++at) {
          ShardingBuilder with = made[k];
          with.dims[d].insert(with.dims[d].begin() + at, mesh->FullAxis(axis));
          made.push_back(with);
        }
      }
    }
  }
  std::vector<const Sharding*> out;
  for (const ShardingBuilder& b : made) out.push_back(b.Intern(context));
  return out;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SHARDING_ALL_SHARDINGS_H_
