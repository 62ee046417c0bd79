// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/named_sharding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

bool SameMesh(const Mesh& a, const Mesh& b) {
  return a.name == b.name && a.axes == b.axes && a.order == b.order &&
         a.maximal_device == b.maximal_device;
}

// An axis part with the index of its axis.
struct Part {
  size_t axis;
  int64_t begin, end;
};

class Checker {
 public:
  explicit Checker(const Mesh& mesh) : mesh_(mesh) {}

  absl::Status Check(std::vector<NamedAxisRef>* refs, bool sort) {
    std::vector<Part> parts;
    for (NamedAxisRef& ref : *refs) {
      Part part{};
      SHARDCALL_RETURN_IF_ERROR(Resolve(&ref, &part));
      SHARDCALL_RETURN_IF_ERROR(Use(ref, part));
      parts.push_back(part);
    }
    if (sort) {
      std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        return std::make_pair(a.axis, a.begin) < std::make_pair(b.axis, b.begin);
      });
    }
    refs->clear();
    for (size_t i = 0; i < parts.size(); ++i) {
      Part p = parts[i];
      while (i + 1 < parts.size() && parts[i + 1].axis == p.axis && parts[i + 1].begin == p.end) {
        p.end = parts[++i].end;
      }
      NamedAxisRef ref{.name = mesh_.axes[p.axis].name};
      if (p.end - p.begin != mesh_.axes[p.axis].size - 1) {
        ref.pre_size = p.begin;
        ref.size = p.end / p.begin;
      }
      refs->push_back(std::move(ref));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Resolve(NamedAxisRef* ref, Part* out) {
    size_t k = 0;
    while (k < mesh_.axes.size() && mesh_.axes[k].name != ref->name) ++k;
    if (k == mesh_.axes.size()) {
      uint32_t index;
      if (!absl::SimpleAtoi(ref->name, &index) || index >= mesh_.axes.size()) {
        return ToStatus(
            {.code = "E162",
             .message = absl::StrCat("mesh \"", mesh_.name, "\" has no axis \"", ref->name, "\""),
             .expected =
                 absl::StrCat("one of ", absl::StrJoin(mesh_.axes, ", ",
                                                       [](std::string* s, const MeshAxis& a) {
                                                         absl::StrAppend(s, "\"", a.name, "\"");
                                                       })),
             .fix = "name an axis of the mesh"});
      }
      k = index;
      ref->name = mesh_.axes[k].name;
    }
    const int64_t n = mesh_.axes[k].size;
    int64_t end = n;
    if (ref->size != 0 &&
        (ref->pre_size < 1 || ref->size < 1 ||
         __builtin_mul_overflow(ref->pre_size, ref->size, &end) || n % end != 0)) {
      return ToStatus(
          {.code = "E162",
           .message = absl::StrCat("the part ", AxisRefText(*ref), " does not fit its axis of ", n),
           .expected = absl::StrCat("(pre)size with a product that divides ", n),
           .fix = "give a pre-size and a size whose product divides the axis"});
    }
    *out = {k, ref->size == 0 ? 1 : ref->pre_size, end};
    return absl::OkStatus();
  }

  absl::Status Use(const NamedAxisRef& ref, const Part& part) {
    for (const Part& u : used_) {
      if (u.axis != part.axis || part.begin % u.end == 0 || u.begin % part.end == 0) continue;
      return ToStatus({.code = "E162",
                       .message = absl::StrCat("axis ", AxisRefText(ref),
                                               " stands twice in one sharding, or overlaps "
                                               "another part of its axis"),
                       .fix = "use each axis part in one place"});
    }
    used_.push_back(part);
    return absl::OkStatus();
  }

  const Mesh& mesh_;
  std::vector<Part> used_;
};

}  // namespace

bool operator==(const NamedSharding& a, const NamedSharding& b) {
  if (a.mesh_name != b.mesh_name || a.dims != b.dims || a.replicated != b.replicated ||
      a.unreduced != b.unreduced || a.manual != b.manual || a.unreduced_op != b.unreduced_op ||
      (a.mesh == nullptr) != (b.mesh == nullptr)) {
    return false;
  }
  return a.mesh == b.mesh || SameMesh(*a.mesh, *b.mesh);
}

absl::Status CheckAndNormalize(const Mesh& mesh, NamedSharding* sharding) {
  Checker checker(mesh);
  for (NamedSharding::Dim& d : sharding->dims) {
    SHARDCALL_RETURN_IF_ERROR(checker.Check(&d.axes, /*sort=*/false));
  }
  SHARDCALL_RETURN_IF_ERROR(checker.Check(&sharding->replicated, /*sort=*/true));
  SHARDCALL_RETURN_IF_ERROR(checker.Check(&sharding->unreduced, /*sort=*/true));
  return checker.Check(&sharding->manual, /*sort=*/true);
}

}  // namespace shardcall
