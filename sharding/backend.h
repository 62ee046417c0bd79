// SPDX-License-Identifier: Apache-2.0
// What the backend that runs a per-device program has of collectives, and what takes the place of
// those that it lacks.
#ifndef SHARDCALL_SHARDING_BACKEND_H_
#define SHARDCALL_SHARDING_BACKEND_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class Collective : uint8_t {
  kAllGather,
  kAllReduce,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kBroadcast,
  kRaggedAllToAll,
};
inline constexpr int kNumCollectives = 7;

// Which replica groups a backend runs collectives over.
enum class GroupForm : uint8_t {
  kAny,   // any, also of different sizes
  kEven,  // of one size
  kGrid,  // those that `[groups,size]<=[dims]T(perm)` can say
};

struct BackendLimits {
  uint32_t lacks = 0;  // a bit for each Collective
  GroupForm groups = GroupForm::kAny;

  bool Has(Collective c) const { return (lacks >> static_cast<int>(c) & 1) == 0; }
  bool has_all() const { return lacks == 0 && groups == GroupForm::kAny; }
  bool operator==(const BackendLimits&) const = default;
};

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// As HLO spells the opcode.
absl::string_view CollectiveName(Collective c);
absl::string_view GroupFormName(GroupForm form);

// Sets what "collectives=all-gather+all-reduce" or "groups=grid" says. False if `field` is neither,
// or if the value is none of its values. A backend needs a collective by which each device can send
// to each other one, so reduce-scatter alone is too little.
bool ReadBackendField(absl::string_view field, absl::string_view value, BackendLimits* out);
// The values of `collectives`, joined by '+'.
std::string CollectivesText(const BackendLimits& backend);

// Some collectives in place of one: `runs` of them, each on an operand of `operand` times its
// bytes.
struct CollectivePart {
  Collective by;
  double runs = 1, operand = 1;
};
using CollectiveParts = absl::InlinedVector<CollectivePart, 2>;

// Bytes that one device of a group of `g` sends in a collective on an operand of `local` bytes, in
// a ring or pairwise algorithm.
double CollectiveSends(Collective c, double local, double g);

// What stands for a collective over groups of `n` devices: itself, where the backend has it, or
// else the row of the table of ways that sends least, down to what the backend has. Its parts may
// be lacking, too, and have ways of their own. Empty: there is none.
CollectiveParts WayOf(const BackendLimits& backend, Collective c, int64_t n);

// The same by what the backend has only.
CollectiveParts AllParts(const BackendLimits& backend, Collective c, int64_t n);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BACKEND_H_
