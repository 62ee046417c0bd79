// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"

namespace shardcall {
inline namespace internal {
namespace verifier {
namespace {

// The set of device ids seen. Ids that are small enough are in a bit set.
class IdSet {
 public:
  explicit IdSet(size_t count) : dense_(64 * count + 1024) {}
  // Adds the id. False if it was there already.
  bool Add(int64_t id) {
    if (static_cast<size_t>(id) < dense_) {
      if (seen_.size() <= static_cast<size_t>(id)) seen_.resize(2 * id + 64);
      if (seen_[id]) return false;
      seen_[id] = true;
    } else {
      sparse_.push_back(id);
    }
    return true;
  }
  // Checks all large ids at once, since they come in any order.
  bool SparseUnique() {
    std::sort(sparse_.begin(), sparse_.end());
    return std::adjacent_find(sparse_.begin(), sparse_.end()) == sparse_.end();
  }

 private:
  size_t dense_;
  std::vector<bool> seen_;
  std::vector<int64_t> sparse_;
};

std::string Limit(int64_t devices) { return absl::StrCat("[0,", devices, ")"); }

bool InRange(int64_t id, int64_t devices) { return id >= 0 && (devices == 0 || id < devices); }

}  // namespace

bool CheckIds(const char* attribute, absl::Span<const Ints> lists, int64_t devices, Fault* error) {
  size_t total = 0;
  for (const Ints& list : lists) total += list.size();
  IdSet seen(total);
  bool unique = true;
  for (const Ints& list : lists) {
    for (int64_t id : list) {
      if (!InRange(id, devices)) {
        return Fail(error, "E025", absl::StrCat(attribute, " has a device that does not exist"), "",
                    devices == 0 ? "0 or more" : Limit(devices), absl::StrCat(id),
                    devices == 0 ? "" : "correct it or num_partitions");
      }
      unique = seen.Add(id) && unique;
      if (!unique) {
        return Fail(error, "E025", absl::StrCat(attribute, " names a device twice"), "",
                    "each at most once", absl::StrCat(id));
      }
    }
  }
  return seen.SparseUnique() ||
         Fail(error, "E025", absl::StrCat(attribute, " names a device twice"), "",
              "each at most once");
}

namespace {

std::string GroupsText(const ReplicaGroups& g) {
  return absl::StrCat("[", g.num_groups, ",", g.group_size, "]<=[", absl::StrJoin(g.reshape, ","),
                      "]");
}

// The number of devices of an iota list; 0 after it has set the error.
int64_t CheckIota(const ReplicaGroups& g, Fault* error) {
  int64_t count = 0;
  if (g.num_groups >= 1 && g.group_size >= 1 &&
      !__builtin_mul_overflow(g.num_groups, g.group_size, &count) &&
      IsIota(g.reshape, g.perm, count)) {
    return count;
  }
  Fail(error, "E025", "replica_groups is not a list of devices", "",
       "[groups,size]<=[dims] with equal products", GroupsText(g));
  return 0;
}

// The number of devices of `mesh['a'=2,'b'=4] {'b'}`; 0 if malformed.
int64_t MeshDevices(absl::string_view text) {
  const size_t end = text.find(']');
  int64_t devices = 1;
  for (size_t at = text.find('='); at < end; at = text.find('=', at + 1)) {
    int64_t n = 0;
    const absl::string_view number = text.substr(at + 1, text.find_first_of(",]", at) - at - 1);
    if (!absl::SimpleAtoi(number, &n) || n < 1 || __builtin_mul_overflow(devices, n, &devices)) {
      return 0;
    }
  }
  return devices;
}

// What the numbers in replica_groups refer to, and how many there are: 1 if the header does not
// say.
struct Numbering {
  const char* what;
  int64_t count;
};

Numbering NumberingOf(const Module& m, Opcode opcode, const CollectiveAttrs& a) {
  const ModuleHeader& h = m.header;
  if (a.channel_id < 0) return {"replicas", h.replica_count};
  // With a channel, ops without the flag exchange between partitions.
  if (!hlo_text::Allows(opcode, hlo_text::Attr::kUseGlobalDeviceIds)) {
    return {"partitions", h.num_partitions};
  }
  if (a.use_global_device_ids) return {"devices", h.replica_count * h.num_partitions};
  return {"replicas", h.replica_count};
}

bool CheckListSizes(Opcode opcode, const ReplicaGroups& g, Fault* error) {
  // Groups of ops without a dimension may differ in size, since no shape depends on it.
  const bool free = !hlo_text::Allows(opcode, hlo_text::Attr::kDimensions);
  for (const Ints& list : g.lists) {
    if (list.empty()) {
      return Fail(error, "E025", "replica_groups has an empty group", "", "1 device or more", "0",
                  "leave the group out");
    }
    if (free || list.size() == g.lists[0].size()) continue;
    return Fail(error, "E025", "replica_groups has groups of different sizes", "",
                absl::StrCat(g.lists[0].size(), " devices each"), absl::StrCat(list.size()));
  }
  return true;
}

bool CheckReplicaGroups(const Module& m, Opcode opcode, const CollectiveAttrs& a, Fault* error) {
  const ReplicaGroups& g = a.groups;
  const Numbering ids = NumberingOf(m, opcode, a);
  int64_t total = 0;
  switch (g.form) {
    case ReplicaGroups::Form::kAll:
      return !a.use_global_device_ids ||
             Fail(error, "E025", "use_global_device_ids=true needs groups", "",
                  "replica_groups that name every device", "replica_groups={}",
                  "write the groups or leave use_global_device_ids out");
    case ReplicaGroups::Form::kLists:
      for (const Ints& list : g.lists) total += static_cast<int64_t>(list.size());
      if (opcode == Opcode::kCollectiveBroadcast) {  // a device in no group takes no part
        return CheckListSizes(opcode, g, error) &&
               CheckIds("replica_groups", g.lists, ids.count > 1 ? ids.count : 0, error);
      }
      if (!CheckListSizes(opcode, g, error) ||
          !CheckIds("replica_groups", g.lists, ids.count > 1 ? ids.count : total, error)) {
        return false;
      }
      break;
    case ReplicaGroups::Form::kIota:
      total = CheckIota(g, error);
      if (total == 0) return false;
      break;
    case ReplicaGroups::Form::kMesh:
      total = MeshDevices(g.mesh_text);
      if (total >= 1 && CollectiveGroupSize(m, opcode, a) >= 1) break;
      return Fail(error, "E025", "replica_groups does not fit its mesh", "", "axes of the mesh",
                  std::string(g.mesh_text));
  }
  if (ids.count <= 1 || total == ids.count) return true;
  return Fail(error, "E025", absl::StrCat("replica_groups does not name all ", ids.what), "",
              absl::StrCat("each of [0,", ids.count, ") once"), absl::StrCat(total, " numbers"),
              "correct it or the counts in the header");
}

// Each id may be source once and target once; with slice sizes, once per slice.
bool CheckPairs(const Module& m, const Instruction& i, Fault* error) {
  const auto& a = i.as<PermuteAttrs>();
  if (a.sources.size() != a.targets.size()) {
    return Fail(error, "E025", "source_target_pairs are not pairs", "",
                absl::StrCat(a.sources.size()), absl::StrCat(a.targets.size()));
  }
  const ModuleHeader& h = m.header;
  const int64_t count = a.channel_id < 0 ? h.replica_count : h.num_partitions;
  const int64_t limit = count > 1 ? count : 0;
  if (a.slice_sizes.empty()) {
    return CheckIds("a source of source_target_pairs", {a.sources}, limit, error) &&
           CheckIds("a target of source_target_pairs", {a.targets}, limit, error);
  }
  for (const Ints& ids : {a.sources, a.targets}) {
    for (int64_t id : ids) {
      if (!CheckIds("source_target_pairs", {absl::MakeConstSpan(&id, 1)}, limit, error)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int64_t KnownDevices(const Module& m) {
  const ModuleHeader& h = m.header;
  if (!h.has_num_partitions && h.num_partitions == 1 && h.replica_count == 1) return 0;
  return h.num_partitions * h.replica_count;
}

bool CheckGroups(const Module& m, const Instruction& i, Fault* error) {
  if (i.attrs->kind == AttrKind::kPermute) return CheckPairs(m, i, error);
  const auto& a = i.as<CollectiveAttrs>();
  if ((i.opcode == Opcode::kAllReduce || i.opcode == Opcode::kAllReduceStart) &&
      a.channel_id == 0) {
    return Fail(error, "E022", "channel_id must be positive", "", "1 or more", "0",
                "count channels from 1");
  }
  return CheckReplicaGroups(m, i.opcode, a, error);
}

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
