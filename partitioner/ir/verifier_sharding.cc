// SPDX-License-Identifier: Apache-2.0
// Whether an instruction's sharding fits its shape and the module's devices.
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/ir/verifier_internal.h"

namespace shardcall::verifier {
namespace {

bool CheckMaximal(const HloSharding& s, int64_t devices, Fault* error) {
  if (s.device >= 0 && (devices == 0 || s.device < devices)) return true;
  return Fail(error, "E025", "the sharding's device does not exist", "",
              devices == 0 ? "0 or more" : absl::StrCat("[0,", devices, ")"),
              absl::StrCat(s.device), "correct it or num_partitions");
}

// One sharding on one leaf.
bool CheckLeaf(const HloSharding& s, const Shape* shape, int64_t devices, Fault* error) {
  int64_t count = 0, dims = 0;
  switch (s.kind) {
    case HloSharding::Kind::kMaximal:
      return CheckMaximal(s, devices, error);
    case HloSharding::Kind::kTiled:
      count = s.num_devices();
      dims = s.num_data_dims();
      break;
    case HloSharding::Kind::kNamed:
      if (s.named.mesh == nullptr) return true;
      count = s.named.mesh->num_devices();
      dims = static_cast<int64_t>(s.named.dims.size());
      break;
    default:
      return true;
  }
  if (devices != 0 && count != devices) {
    return Fail(error, "E025", "the sharding is over another number of devices", "",
                absl::StrCat(devices), absl::StrCat(count, " in ", s.Print()),
                "correct it or num_partitions");
  }
  if (!s.list.empty() && !CheckIds("the sharding", {Ints(s.list)}, count, error)) return false;
  // `mesh[..], manual` and its like name no dimensions.
  const bool whole = s.kind == HloSharding::Kind::kNamed && dims == 0;
  if (!shape->IsArray() || dims == shape->rank() || whole) return true;
  return Fail(error, "E025", "the sharding has the wrong number of dimensions", "",
              absl::StrCat(shape->rank(), " for ", shape->ToString(/*with_layout=*/false)),
              absl::StrCat(dims, " in ", s.Print()));
}

// The leaves in order. Shape::leaf(k) looks through all before it.
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

}  // namespace

bool CheckSharding(const Module& m, const HloSharding& sharding, const Shape* shape,
                   Fault* error) {
  const int64_t devices = m.header.num_partitions > 1 ? m.header.num_partitions : 0;
  if (sharding.kind != HloSharding::Kind::kTuple) {
    // One for all leaves.
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
  // The empty tuple has one, which says nothing.
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

}  // namespace shardcall::verifier
