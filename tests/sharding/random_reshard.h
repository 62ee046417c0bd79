// SPDX-License-Identifier: Apache-2.0
// Random reshards of one mesh.
#ifndef SHARDCALL_TESTS_SHARDING_RANDOM_RESHARD_H_
#define SHARDCALL_TESTS_SHARDING_RANDOM_RESHARD_H_

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {

// Where the axes of a mesh are placed: dimensions 0 to rank-1, then partial, then nowhere.
class RandomReshard {
 public:
  RandomReshard(std::mt19937& random, int max_axes, int max_rank) : random_(random) {
    std::vector<int64_t> sizes(1 + Below(max_axes));
    int64_t devices = 1;
    for (int64_t& size : sizes) devices *= size = std::vector<int>{2, 2, 2, 3, 4}[Below(5)];
    mesh_ = InternBaseMesh(context, sizes, DeviceOrder::Identity(devices));
    std::vector<int64_t> dims(1 + Below(max_rank));
    const bool divisible = Below(2) == 0;
    for (int64_t& d : dims) {
      d = divisible ? 1728 * (1 + Below(3))
                    : std::vector<int>{1, 2, 3, 7, 10, 12, 30, 64}[Below(8)];
    }
    const ElementType type = Below(4) == 0 ? ElementType::kS8 : ElementType::kF32;
    shape = context.WithDefaultLayout(context.MakeArray(type, dims));
    const bool partial = Below(3) == 0;
    from = Place(partial);
    to = Place(partial);
  }

  std::string Text() const {
    return absl::StrCat(from->ToString(), " -> ", to->ToString(), " of ", shape->ToString());
  }

  Context context;
  const Shape* shape;
  const Sharding *from, *to;

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  const Sharding* Place(bool partial) {
    ShardingBuilder b(mesh_, shape->rank());
    std::vector<int> order(mesh_->num_axes());
    for (int k = 0; k < mesh_->num_axes(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random_);
    for (int k : order) {
      const int place = Below(shape->rank() + 2);
      if (place < shape->rank()) b.dims[place].push_back(mesh_->FullAxis(k));
      if (place == shape->rank() && partial) b.partial.push_back(mesh_->FullAxis(k));
    }
    for (AxisList& dim : b.dims) dim = Canonical(*mesh_, dim);
    std::sort(b.partial.begin(), b.partial.end(),
              [](const AxisRef& x, const AxisRef& y) { return x.axis < y.axis; });
    return b.Intern(context);
  }

  std::mt19937& random_;
  BaseMesh* mesh_;
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SHARDING_RANDOM_RESHARD_H_
