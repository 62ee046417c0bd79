// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/ir/shape_inference.h"
#include "partitioner/ir/verifier_internal.h"

namespace shardcall::verifier {
namespace {

// Which device ids were seen; a bit each while they are few for their range.
class IdSet {
 public:
  explicit IdSet(size_t count) : dense_(64 * count + 1024) {}
  // False if it was there.
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
  // The far ids at once, as they come in any order.
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

bool CheckIds(const char* attribute, absl::Span<const Ints> lists, int64_t devices,
              Diagnostic* error) {
  size_t total = 0;
  for (const Ints& list : lists) total += list.size();
  IdSet seen(total);
  bool unique = true;
  for (const Ints& list : lists) {
    for (int64_t id : list) {
      if (!InRange(id, devices)) {
        return Fail(error, "E025",
                    absl::StrCat(attribute, " has a device that does not exist"), "",
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

bool IsPermutation(Ints perm, size_t n) {
  std::vector<bool> seen(n, false);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(n) || seen[p]) return false;
    seen[p] = true;
  }
  return perm.size() == n;
}

bool CheckIota(const ReplicaGroups& g, int64_t devices, Diagnostic* error) {
  int64_t count = 1, product = 0;
  bool ok = g.num_groups >= 1 && g.group_size >= 1 &&
            !__builtin_mul_overflow(g.num_groups, g.group_size, &product);
  for (int64_t d : g.reshape) ok = ok && d >= 1 && !__builtin_mul_overflow(count, d, &count);
  const std::string text = absl::StrCat("[", g.num_groups, ",", g.group_size, "]<=[",
                                        absl::StrJoin(g.reshape, ","), "]");
  if (!ok || product != count || (!g.perm.empty() && !IsPermutation(g.perm, g.reshape.size()))) {
    return Fail(error, "E025", "replica_groups is not a list of devices", "",
                "[groups,size]<=[dims] with equal products", text);
  }
  if (devices != 0 && count > devices) {
    return Fail(error, "E025", "replica_groups has a device that does not exist", "",
                Limit(devices), text, "correct it or num_partitions");
  }
  return true;
}

bool CheckReplicaGroups(const Module& m, Opcode opcode, const CollectiveAttrs& a,
                        Diagnostic* error) {
  const ReplicaGroups& g = a.groups;
  const int64_t devices = KnownDevices(m);
  switch (g.form) {
    case ReplicaGroups::Form::kAll:
      return true;
    case ReplicaGroups::Form::kLists:
      for (const Ints& list : g.lists) {
        if (list.size() == g.lists[0].size() && !list.empty()) continue;
        return Fail(error, "E025", "replica_groups has groups of different sizes, or empty ones",
                    "", absl::StrCat(std::max<size_t>(1, g.lists[0].size()), " devices each"),
                    absl::StrCat(list.size()));
      }
      return CheckIds("replica_groups", g.lists, devices, error);
    case ReplicaGroups::Form::kIota:
      return CheckIota(g, devices, error);
    case ReplicaGroups::Form::kMesh: {
      const int64_t size = CollectiveGroupSize(m, opcode, a);
      if (size >= 1 && (devices == 0 || size <= devices)) return true;
      return Fail(error, "E025", "replica_groups does not fit its mesh", "",
                  "axes of the mesh, over at most all devices", std::string(g.mesh_text));
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

bool CheckGroups(const Module& m, const Instruction& i, Diagnostic* error) {
  if (i.attrs->kind == AttrKind::kCollective) {
    return CheckReplicaGroups(m, i.opcode, i.as<CollectiveAttrs>(), error);
  }
  if (i.attrs->kind != AttrKind::kPermute) return true;
  const auto& a = i.as<PermuteAttrs>();
  const int64_t devices = KnownDevices(m);
  if (a.sources.size() != a.targets.size()) {
    return Fail(error, "E025", "source_target_pairs are not pairs", "",
                absl::StrCat(a.sources.size()), absl::StrCat(a.targets.size()));
  }
  return CheckIds("a source of source_target_pairs", {a.sources}, devices, error) &&
         CheckIds("a target of source_target_pairs", {a.targets}, devices, error);
}

bool CheckSharding(const Module& m, const HloSharding& sharding, Diagnostic* error) {
  const int64_t devices = KnownDevices(m);
  const auto check = [&](const HloSharding& s) {
    if (s.kind == HloSharding::Kind::kMaximal) {
      return InRange(s.device, devices) ||
             Fail(error, "E025", "the sharding's device does not exist", "",
                  devices == 0 ? "0 or more" : Limit(devices), absl::StrCat(s.device));
    }
    if (s.list.empty()) return true;
    const Ints list = s.list;
    return CheckIds("the sharding", {list}, devices, error);
  };
  for (const HloSharding& s : sharding.tuple) {
    if (!check(s)) return false;
  }
  return check(sharding);
}

}  // namespace shardcall::verifier
