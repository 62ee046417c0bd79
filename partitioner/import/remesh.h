// SPDX-License-Identifier: Apache-2.0
// Changes a program to other mesh sizes, for example to check on 8 devices one written for 512.
#ifndef SHARDCALL_PARTITIONER_IMPORT_REMESH_H_
#define SHARDCALL_PARTITIONER_IMPORT_REMESH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct AxisSize {
  std::string axis;  // "data"; "x0" is the first axis where the program names none
  int64_t size = 1;
};

// Gives the axes their new sizes wherever the module declares them, and the
// module the number of partitions that follows. Shapes stay as they are, so
// shards become larger or smaller:
//   {data=2}: #sdy.mesh<["data"=64, "model"=8]> becomes <["data"=2, "model"=8]>
//   {x0=2}:   {devices=[1,8,64]<=[64,8]T(1,0) last_tile_dim_replicate} becomes
//             {devices=[1,8,2]<=[2,8]T(1,0) last_tile_dim_replicate}
// Errors E053: an axis that no mesh has; device lists, which have no axes;
// tilings that cut the first axis in the middle; manual regions, collectives
// and device ids, which are written for a number of devices.
absl::Status Remesh(absl::Span<const AxisSize> sizes, Module* module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_REMESH_H_
