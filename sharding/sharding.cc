// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/sharding.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/check_sharding.h"

namespace shardcall {
namespace {

// Whether `b` continues `a`, a part of the same axis. Invalid parts, whose sizes could wrap round
// when multiplied, are not merged, so that UsedAxes reports them.
bool Continues(const AxisRef& a, const AxisRef& b) {
  const uint64_t cut = uint64_t{a.pre_size} * a.size;
  return cut != 0 && cut == b.pre_size && cut * b.size <= kMaxDevices;
}

// Merges neighbours in place; allocates nothing.
void MergeInPlace(AxisList* axes) {
  size_t kept = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    const AxisRef a = (*axes)[i];
    if (a.size == 1) continue;
    if (kept > 0 && (*axes)[kept - 1].axis == a.axis && Continues((*axes)[kept - 1], a)) {
      (*axes)[kept - 1].size *= a.size;
    } else {
      (*axes)[kept++] = a;
    }
  }
  axes->resize(kept);
}

bool IsMerged(absl::Span<const AxisRef> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size == 1) return false;
    if (i > 0 && axes[i - 1].axis == axes[i].axis && Continues(axes[i - 1], axes[i])) {
      return false;
    }
  }
  return true;
}

void SortAndMerge(AxisList* axes) {
  if (axes->size() > 1) std::sort(axes->begin(), axes->end());
  MergeInPlace(axes);
}

absl::Status Unfit(std::string message, std::string expected, std::string found) {
  return ToStatus({.code = "E162",
                   .message = std::move(message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Use every axis part of the mesh once at most"});
}

std::string RefText(const AxisRef& a) {
  return absl::StrCat("axis ", a.axis, ":(", a.pre_size, ")", a.size);
}

// Puts all axis parts of a sharding into `used`. An error where a part occurs twice or does not
// fit an axis of the mesh.
absl::Status UsedAxes(const ShardingBuilder& b, AxisList* used) {
  if (b.mesh == nullptr) return Unfit("a sharding has no mesh", "a mesh", "none");
  if (b.refused_rank != 0) {
    return ToStatus({.code = "E162",
                     .message = "a sharding has a rank that no array has",
                     .expected = absl::StrCat("0 to ", ShardingBuilder::kMaxRank),
                     .found = absl::StrCat(b.refused_rank),
                     .fix = "Give it the number of dimensions of the array"});
  }
  absl::Status status;
  const auto use = [&](absl::Span<const AxisRef> axes) {
    for (const AxisRef& a : axes) {
      if (!status.ok()) return;   // the checks below need `used` to hold valid parts only
      if (a.size == 1) continue;  // a part of size 1 shards nothing and is skipped
      if (a.axis >= b.mesh->num_axes() || a.pre_size == 0 || a.size == 0 ||
          static_cast<uint64_t>(b.mesh->axis_size(a.axis)) % (uint64_t{a.pre_size} * a.size) != 0) {
        status = Unfit("a sharding names what is no part of an axis of its mesh",
                       absl::StrCat("an axis below ", b.mesh->num_axes(),
                                    ", and sizes whose product divides it"),
                       RefText(a));
      } else if (Overlaps(*used, absl::MakeConstSpan(&a, 1))) {
        status = Unfit("a sharding names an axis twice", "each part once", RefText(a));
      } else {
        used->push_back(a);
      }
    }
  };
  for (const AxisList& d : b.dims) {
    if (b.maximal_device < 0) use(d);
  }
  if (b.maximal_device < 0) use(b.partial);
  use(b.manual);
  if (!status.ok()) return status;
  if (b.maximal_device >= b.mesh->num_devices() || b.maximal_device < -1) {
    return Unfit("a sharding names a device that its mesh does not have",
                 absl::StrCat("below ", b.mesh->num_devices(), ", or -1 for all of them"),
                 absl::StrCat(b.maximal_device));
  }
  if (b.partial_op > PartialOp::kXor) {
    return Unfit("partial values are combined by no operation that there is",
                 absl::StrCat("a PartialOp, 0 to ", static_cast<int>(PartialOp::kXor)),
                 absl::StrCat(static_cast<int>(b.partial_op)));
  }
  return status;
}

uint64_t HashAxes(uint64_t h, absl::Span<const AxisRef> axes) {
  for (const AxisRef& a : axes) {
    h = MixHash(h, (static_cast<uint64_t>(a.axis) << 48) ^
                       (static_cast<uint64_t>(a.pre_size) << 24) ^ a.size);
  }
  return MixHash(h, axes.size());
}

}  // namespace

absl::string_view PartialOpName(PartialOp op) {
  switch (op) {
    case PartialOp::kSum: return "add";
    case PartialOp::kMax: return "max";
    case PartialOp::kMin: return "min";
    case PartialOp::kProduct: return "mul";
    case PartialOp::kAnd: return "and";
    case PartialOp::kOr: return "or";
    case PartialOp::kXor: return "xor";
  }
  return "add";
}

class ShardingInterner {
 public:
  const Sharding* Intern(Arena& arena, const ShardingBuilder& b) {
    uint64_t hash = reinterpret_cast<uintptr_t>(b.mesh);
    for (const AxisList& d : b.dims) hash = HashAxes(hash, d);
    if (!b.partial.empty()) {
      hash = HashAxes(MixHash(hash, 100 + static_cast<int>(b.partial_op)), b.partial);
    }
    if (!b.manual.empty()) hash = HashAxes(MixHash(hash, 200), b.manual);
    hash = FinishHash(MixHash(hash, b.maximal_device + (b.dims.size() << 40)));
    const Sharding* found = table_.Find(hash, [&](const Sharding& s) {
      if (s.mesh_ != b.mesh || s.dims_.size() != b.dims.size() ||
          s.maximal_device_ != b.maximal_device || s.partial_op_ != b.partial_op ||
          s.partial_ != absl::MakeConstSpan(b.partial) ||
          s.manual_ != absl::MakeConstSpan(b.manual)) {
        return false;
      }
      for (size_t i = 0; i < b.dims.size(); ++i) {
        if (s.dims_[i] != absl::MakeConstSpan(b.dims[i])) return false;
      }
      return true;
    });
    return found != nullptr ? found : Make(arena, b, hash);
  }

 private:
  const Sharding* Make(Arena& arena, const ShardingBuilder& b, uint64_t hash) {
    AxisList used;
    if (!UsedAxes(b, &used).ok()) return nullptr;
    Sharding* s = arena.New<Sharding>();
    s->mesh_ = b.mesh;
    std::vector<absl::Span<const AxisRef>> dims;
    for (const AxisList& d : b.dims) {
      dims.push_back(arena.Copy(absl::MakeConstSpan(d)));
      s->has_sharded_dim_ = s->has_sharded_dim_ || !d.empty();
    }
    SortAndMerge(&used);
    s->dims_ = arena.Copy(absl::MakeConstSpan(dims));
    s->partial_ = arena.Copy(absl::MakeConstSpan(b.partial));
    s->manual_ = arena.Copy(absl::MakeConstSpan(b.manual));
    s->used_ = arena.Copy(absl::MakeConstSpan(used));
    s->partial_op_ = b.partial_op;
    s->maximal_device_ = b.maximal_device;
    table_.Insert(hash, s);
    return s;
  }
  InternTable<Sharding> table_;
};

std::string Sharding::ToString() const {
  if (is_maximal()) return absl::StrCat("{maximal device=", maximal_device_, "}");
  std::string out = "[";
  for (int i = 0; i < rank(); ++i) {
    absl::StrAppend(&out, i > 0 ? ", {" : "{", AxisRefsText(NameAxes(*mesh_, dims_[i])), "}");
  }
  out += "]";
  if (!partial_.empty()) {
    absl::StrAppend(&out, " partial=", PartialOpName(partial_op_), "{",
                    AxisRefsText(NameAxes(*mesh_, partial_)), "}");
  }
  if (!manual_.empty()) {
    absl::StrAppend(&out, " manual={", AxisRefsText(NameAxes(*mesh_, manual_)), "}");
  }
  return out;
}

ShardingBuilder::ShardingBuilder(const Sharding& s)
    : mesh(s.mesh()),
      dims(s.rank()),
      partial_op(s.partial_op()),
      maximal_device(s.maximal_device()) {
  for (int i = 0; i < s.rank(); ++i) dims[i].assign(s.dim(i).begin(), s.dim(i).end());
  partial.assign(s.partial().begin(), s.partial().end());
  manual.assign(s.manual().begin(), s.manual().end());
}

absl::Status internal::CheckSharding(const ShardingBuilder& b) {
  AxisList used;
  return UsedAxes(b, &used);
}

const Sharding* ShardingBuilder::Intern(Context& context) const {
  if (refused_rank != 0 || partial_op > PartialOp::kXor) return nullptr;
  // The engine passes canonical lists nearly always; only the others are copied.
  bool is_canonical = maximal_device < 0 && IsMerged(partial) && IsMerged(manual) &&
                      std::is_sorted(partial.begin(), partial.end()) &&
                      std::is_sorted(manual.begin(), manual.end()) &&
                      (!partial.empty() || partial_op == PartialOp::kSum);
  for (const AxisList& d : dims) is_canonical = is_canonical && IsMerged(d);
  if (is_canonical) return context.Get<ShardingInterner>().Intern(context.arena(), *this);
  ShardingBuilder canonical = *this;
  if (maximal_device >= 0) {
    for (AxisList& d : canonical.dims) d.clear();
    canonical.partial.clear();
  }
  for (AxisList& d : canonical.dims) MergeInPlace(&d);
  SortAndMerge(&canonical.partial);
  SortAndMerge(&canonical.manual);
  if (canonical.partial.empty()) canonical.partial_op = PartialOp::kSum;
  return context.Get<ShardingInterner>().Intern(context.arena(), canonical);
}

const Sharding* ReplicatedSharding(Context& context, const BaseMesh* mesh, int rank,
                                   absl::Span<const AxisRef> manual) {
  ShardingBuilder b(mesh, rank);
  b.manual.assign(manual.begin(), manual.end());
  return b.Intern(context);
}

namespace {
struct BaseMeshes {
  std::vector<std::unique_ptr<BaseMesh>> meshes;  // a handful per module
};
}  // namespace

BaseMesh* InternBaseMesh(Context& context, std::vector<int64_t> sizes, DeviceOrder order) {
  BaseMeshes& all = context.Get<BaseMeshes>();
  for (const auto& mesh : all.meshes) {
    if (mesh->num_axes() != static_cast<int>(sizes.size()) || !(mesh->order() == order)) continue;
    bool equal = true;
    for (size_t k = 0; k < sizes.size(); ++k) equal = equal && mesh->axis_size(k) == sizes[k];
    if (equal) return mesh.get();
  }
  all.meshes.push_back(std::make_unique<BaseMesh>(std::move(sizes), std::move(order)));
  return all.meshes.back().get();
}

bool ShardingConstraint::IsFullyClosed() const {
  if (unknown) return false;
  return std::none_of(dims.begin(), dims.end(), [](const Dim& d) { return d.open; });
}

}  // namespace shardcall
