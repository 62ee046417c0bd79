// SPDX-License-Identifier: Apache-2.0
// Whether an instruction's sharding fits its shape and the module's devices, and
// whether loops agree with their computations.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"

namespace shardcall {
inline namespace internal {
namespace verifier {
namespace {

bool CheckMaximal(const HloSharding& s, int64_t devices, Fault* error) {
  if (s.device >= 0 && (devices == 0 || s.device < devices)) return true;
  return Fail(error, "E025", "the sharding's device does not exist", "",
              devices == 0 ? "0 or more" : absl::StrCat("[0,", devices, ")"),
              absl::StrCat(s.device), "correct it or num_partitions");
}

// Checks one sharding of one leaf.
bool CheckLeaf(const HloSharding& s, const Shape* shape, int64_t devices, Fault* error) {
  int64_t count = 0, dims = 0;
  const bool tiled = s.kind == HloSharding::Kind::kTiled;
  switch (s.kind) {
    case HloSharding::Kind::kMaximal: return CheckMaximal(s, devices, error);
    case HloSharding::Kind::kTiled:
      count = s.num_devices();
      dims = s.num_data_dims();
      break;
    case HloSharding::Kind::kNamed:
      if (s.named.mesh == nullptr) return true;
      count = s.named.mesh->num_devices();
      dims = static_cast<int64_t>(s.named.dims.size());
      break;
    default: return true;
  }
  // A tiling may be over some of the devices; XLA takes one over all.
  if (devices != 0 && (tiled ? count < 1 || count > devices : count != devices)) {
    return Fail(error, "E025", "the sharding is over another number of devices", "",
                absl::StrCat(devices), absl::StrCat(count, " in ", s.Print()),
                "correct it or num_partitions");
  }
  const int64_t ids = tiled ? devices : count;
  if (!s.list.empty() && !CheckIds("the sharding", {Ints(s.list)}, ids, error)) return false;
  // `mesh[..], manual` and similar shardings have no dimensions.
  const bool whole = s.kind == HloSharding::Kind::kNamed && dims == 0;
  if (!shape->IsArray() || dims == shape->rank() || whole) return true;
  return Fail(error, "E025", "the sharding has the wrong number of dimensions", "",
              absl::StrCat(shape->rank(), " for ", shape->ToString(/*with_layout=*/false)),
              absl::StrCat(dims, " in ", s.Print()));
}

// The leaves in order, in one walk; Shape::leaf(k) takes time for all leaves before k.
std::vector<const Shape*> Leaves(const Shape* shape) {
  std::vector<const Shape*> leaves, stack = {shape};
  while (!stack.empty()) {
    const Shape* s = stack.back();
    stack.pop_back();
    if (!s->IsTuple()) leaves.push_back(s);
    for (size_t k = s->tuple().size(); k-- > 0;) stack.push_back(s->tuple()[k]);
  }
  return leaves;
}

// Compares two named shardings by their axes and device order, ignoring only the names of axes. XLA
// compares them so, though it equates a named sharding and a tiling with the same tiles.
bool SameWords(const NamedSharding& a, const NamedSharding& b) {
  if (a.mesh == nullptr || b.mesh == nullptr || !(a.mesh->order == b.mesh->order) ||
      a.mesh->axes.size() != b.mesh->axes.size() || a.dims.size() != b.dims.size()) {
    return false;
  }
  for (size_t k = 0; k < a.mesh->axes.size(); ++k) {
    if (a.mesh->axes[k].size != b.mesh->axes[k].size) return false;
  }
  const auto number = [](const Mesh& mesh, const std::string& axis) {
    size_t k = 0;
    while (k < mesh.axes.size() && mesh.axes[k].name != axis) ++k;
    return k;
  };
  using Axes = std::vector<NamedAxisRef>;
  const auto same = [&](const Axes& x, const Axes& y) {
    for (size_t k = 0; k < x.size() && x.size() == y.size(); ++k) {
      if (number(*a.mesh, x[k].name) != number(*b.mesh, y[k].name) ||
          x[k].pre_size != y[k].pre_size || x[k].size != y[k].size) {
        return false;
      }
    }
    return x.size() == y.size();
  };
  for (size_t k = 0; k < a.dims.size(); ++k) {
    if (a.dims[k].open != b.dims[k].open || !same(a.dims[k].axes, b.dims[k].axes)) return false;
  }
  return same(a.unreduced, b.unreduced) && same(a.manual, b.manual);
}

// Whether two shardings of a leaf mean the same: device lists and equal iota expressions, meshes
// and equal tilings. Metadata is ignored.
bool SameLeaf(HloSharding a, HloSharding b, int rank, int64_t devices) {
  a.metadata.clear();
  b.metadata.clear();
  if (a == b) return true;
  if (a.group != b.group || a.group_id != b.group_id || a.kind == HloSharding::Kind::kUnknown ||
      b.kind == HloSharding::Kind::kUnknown) {
    return false;
  }
  Context context;
  MeshCollector meshes;
  if (!meshes.AddTiling(a).ok() || !meshes.AddTiling(b).ok()) return false;
  const auto set = meshes.Finish(context, devices);
  if (!set.ok()) return false;
  const auto x = set->FromHlo(a, rank), y = set->FromHlo(b, rank);
  if (!x.ok() || !y.ok() || x->unknown || y->unknown) return false;
  const Sharding* p = ToSharding(context, *x);
  const Sharding* q = ToSharding(context, *y);
  if (p->IsReplicated() && q->IsReplicated() && p->manual().empty() && q->manual().empty()) {
    return true;  // in any device order
  }
  if (a.kind == HloSharding::Kind::kNamed && b.kind == HloSharding::Kind::kNamed) {
    return SameWords(a.named, b.named);
  }
  return p == q;
}

class LoopShardings {
 public:
  LoopShardings(const Module& m, Fault* error) : m_(m), error_(error) {}

  bool Check(InstrId id) {
    const Instruction& i = m_.instr(id);
    if (i.opcode != Opcode::kWhile) return true;
    first_ = InstrId();
    const auto& attrs = i.as<WhileAttrs>();
    return Agrees(id) && Agrees(m_.comp(attrs.body).parameters[0]) &&
           Agrees(m_.comp(attrs.condition).parameters[0]);
  }

 private:
  // Whether the sharding of `id` agrees with the first one found so far.
  bool Agrees(InstrId id) {
    const HloSharding* sharding = m_.instr(id).sharding;
    if (sharding == nullptr) return true;
    if (!first_.valid()) {
      first_ = id;
      return true;
    }
    const HloSharding* want = m_.instr(first_).sharding;
    if (Same(want, sharding, m_.instr(id).shape)) return true;
    error_->at = id;
    return Fail(error_, "E025",
                "while: the loop, its body's parameter and its condition's parameter differ in "
                "sharding",
                Where(m_, id), absl::StrCat(want->Print(), " as ", Where(m_, first_)),
                sharding->Print(), "give them one sharding, or drop it from all but one");
  }

  bool Same(const HloSharding* a, const HloSharding* b, const Shape* shape) {
    if (a == b) return true;
    const auto [known, inserted] = same_.try_emplace(std::make_pair(a, b), true);
    if (!inserted) return known->second;
    const std::vector<const Shape*> leaves = Leaves(shape);
    const int64_t devices = m_.header.num_partitions > 1 ? m_.header.num_partitions : 0;
    for (size_t k = 0; k < leaves.size() && known->second; ++k) {
      const int rank = leaves[k]->IsArray() ? static_cast<int>(leaves[k]->rank()) : 0;
      known->second = SameLeaf(Leaf(*a, k), Leaf(*b, k), rank, devices);
    }
    return known->second;
  }
  static const HloSharding& Leaf(const HloSharding& s, size_t k) {
    return s.kind == HloSharding::Kind::kTuple ? s.tuple[k] : s;
  }

  const Module& m_;
  Fault* error_;
  InstrId first_;
  absl::flat_hash_map<std::pair<const HloSharding*, const HloSharding*>, bool> same_;
};

}  // namespace

bool CheckLoopShardings(const Module& m, Fault* error) {
  LoopShardings loops(m, error);
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (!loops.Check(InstrId(k))) return false;
  }
  return true;
}

bool CheckSharding(const Module& m, const HloSharding& sharding, const Shape* shape, Fault* error) {
  const int64_t devices = m.header.num_partitions > 1 ? m.header.num_partitions : 0;
  if (sharding.kind != HloSharding::Kind::kTuple) {
    // One device for all leaves.
    if (sharding.kind == HloSharding::Kind::kMaximal) {
      return CheckMaximal(sharding, devices, error);
    }
    if (sharding.kind != HloSharding::Kind::kTiled && sharding.kind != HloSharding::Kind::kNamed) {
      return true;
    }
    for (const Shape* leaf : Leaves(shape)) {
      if (!CheckLeaf(sharding, leaf, devices, error)) return false;
    }
    return true;
  }
  if (!shape->IsTuple()) {
    return Fail(error, "E025", "the sharding is a tuple and the value is not", "", "one sharding",
                sharding.Print(), "drop the outer braces");
  }
  // The empty tuple has one sharding, which has no meaning.
  const std::vector<const Shape*> leaves = Leaves(shape);
  const size_t want = shape->tuple().empty() ? 1 : leaves.size();
  if (sharding.tuple.size() != want) {
    return Fail(error, "E025", "the sharding has the wrong number of parts", "",
                absl::StrCat(want, ", one for each leaf"), absl::StrCat(sharding.tuple.size()));
  }
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (!CheckLeaf(sharding.tuple[k], leaves[k], devices, error)) return false;
  }
  return true;
}

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
