// SPDX-License-Identifier: Apache-2.0
// Common to moe_dispatch and moe_combine: the slot of each choice.
#ifndef SHARDCALL_KERNELS_HOST_MOE_ROUTES_H_
#define SHARDCALL_KERNELS_HOST_MOE_ROUTES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

struct MoeRoutes {
  int64_t groups = 1, tokens = 0, choices = 0, experts = 0, capacity = 0, width = 0;
  const int32_t* expert = nullptr;  // [groups, tokens, choices]
  const int32_t* position = nullptr;

  // The slot in [0, experts * capacity) of choice `i`, or -1 if it is dropped.
  int64_t Slot(int64_t i) const {
    const bool in =
        expert[i] >= 0 && expert[i] < experts && position[i] >= 0 && position[i] < capacity;
    return in ? expert[i] * capacity + position[i] : -1;
  }
};

// Checks and reads operands 1 and 2 (experts, positions), for tokens [.., t, d] and slots [.., e,
// c, d], whose types are checked already.
inline absl::Status ReadMoeRoutes(const CallArguments& args, ArgumentPlace tokens,
                                  ArgumentPlace slots, MoeRoutes* routes) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(tokens, 2));
  const std::vector<int64_t>& t = args.at(tokens).dims;
  const std::vector<int64_t> batch(t.begin(), t.end() - 2);
  SHARDCALL_RETURN_IF_ERROR(args.CheckRank(slots, static_cast<int>(t.size()) + 1));
  const std::vector<int64_t>& s = args.at(slots).dims;
  std::vector<int64_t> want = batch;
  want.insert(want.end(), {s[s.size() - 3], s[s.size() - 2], t.back()});
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(slots, want));
  SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Operand(1), static_cast<int>(t.size())));
  want = batch;
  want.insert(want.end(), {t[t.size() - 2], args.operand(1).dims.back()});
  for (int index : {1, 2}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(index), {ElementType::kS32}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(index), want));
  }
  for (int64_t d : batch) routes->groups *= d;
  routes->tokens = t[t.size() - 2];
  routes->choices = want.back();
  routes->experts = s[s.size() - 3];
  routes->capacity = s[s.size() - 2];
  routes->width = t.back();
  routes->expert = static_cast<const int32_t*>(args.operand(1).data);
  routes->position = static_cast<const int32_t*>(args.operand(2).data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_MOE_ROUTES_H_
