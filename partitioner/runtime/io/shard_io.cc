// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/shard_io.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/reduce.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/runtime/reduce_kind.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// The place of a device's part in the global array.
struct Part {
  Dims begin, extent;  // of the valid elements
  Dims tile;
  int64_t index = 0;          // of the shard, over all dimensions
  int64_t partial_index = 0;  // coordinate along the partial axes
};

Part PartOf(const LocalState& state, absl::Span<const int64_t> dims, int64_t device) {
  const Sharding& s = *state.sharding;
  const int64_t position = s.mesh()->order().PositionOf(device);
  Part part;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t i = s.mesh()->Coordinate(s.dim(static_cast<int>(k)), position);
    const int64_t tile = state.dims[k].tile;
    const int64_t begin = std::min(i * tile, dims[k]);
    part.begin.push_back(begin);
    part.extent.push_back(std::min(tile, dims[k] - begin));
    part.tile.push_back(tile);
    part.index = part.index * s.num_shards(static_cast<int>(k)) + i;
  }
  part.partial_index = s.mesh()->Coordinate(s.partial(), position);
  return part;
}

absl::Status CheckState(const LocalState& state, absl::Span<const int64_t> dims) {
  const Sharding& s = *state.sharding;
  if (s.is_maximal()) return absl::OkStatus();
  bool fits = s.rank() == static_cast<int>(dims.size()) && state.dims.size() == dims.size();
  for (size_t k = 0; fits && k < dims.size(); ++k) {
    fits = state.dims[k].tile * s.num_shards(static_cast<int>(k)) >= dims[k];
  }
  if (fits) return absl::OkStatus();
  return ToStatus({.code = "E320",
                   .message = "a sharding does not fit its array",
                   .expected = TypeAndDims(ElementType::kPred, dims),
                   .found = s.ToString(),
                   .fix = "Give a sharding of the rank of the array"});
}

void Fill(PadFill fill, Tensor* t) {
  if (fill == PadFill::kZero || t->num_elements() == 0) {
    if (t->byte_size() > 0) std::memset(t->MutableData(), 0, t->byte_size());
    return;
  }
  char pattern[16];
  std::memset(pattern, 0x5a, sizeof pattern);
  const ElementType type = t->type();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (IsFloat(type)) StoreFloats(type, &nan, 1, pattern);
  if (type == ElementType::kC64) {
    const float part = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(pattern, &part, 4);
    std::memcpy(pattern + 4, &part, 4);
  }
  if (type == ElementType::kC128) {
    std::memcpy(pattern, &nan, 8);
    std::memcpy(pattern + 8, &nan, 8);
  }
  NormalizeElements(type, pattern, 1);
  FillElements(t->element_bytes(), pattern, t->MutableData(), t->num_elements());
}

int64_t Offset(const Dims& begin, const Dims& strides) {
  int64_t offset = 0;
  for (size_t k = 0; k < begin.size(); ++k) offset += begin[k] * strides[k];
  return offset;
}

absl::Status NoSuchDevice(const Sharding& s, int64_t device) {
  const int64_t n = s.mesh()->num_devices();
  if (device >= 0 && device < n) return absl::OkStatus();
  return ToStatus({.code = "E320",
                   .message = "an array is to be cut for a device that its sharding does not have",
                   .expected = absl::StrCat("0 to ", n - 1),
                   .found = absl::StrCat(device),
                   .fix = "Give a device of the mesh"});
}

absl::Status WrongCount(absl::string_view what, std::string expected, int64_t found) {
  return ToStatus({.code = "E313",
                   .message = absl::StrCat("wrong number of ", what),
                   .expected = std::move(expected),
                   .found = absl::StrCat(found),
                   .fix = "Give one array per sharding, and one part per device"});
}

absl::Status NoIdentity(PartialOp op, ElementType type) {
  return ToStatus({.code = "E322",
                   .message = absl::StrCat("partial values (", PartialOpName(op), ") of ",
                                           ElementTypeName(type), " cannot be made or combined"),
                   .fix = "Reduce the values before they leave the program"});
}

}  // namespace

absl::StatusOr<Tensor> ShardForDevice(const Tensor& global, const LocalState& state, int64_t device,
                                      PadFill fill) {
  if (!IsArrayType(global.type())) return global;
  SHARDCALL_RETURN_IF_ERROR(CheckState(state, global.dims()));
  const Sharding& s = *state.sharding;
  SHARDCALL_RETURN_IF_ERROR(NoSuchDevice(s, device));
  if (s.is_maximal()) {
    if (device == s.maximal_device()) return global;
    Tensor t(global.type(), global.dims());
    Fill(fill, &t);
    return t;
  }
  const Part part = PartOf(state, global.dims(), device);
  if (part.partial_index != 0) {
    uint64_t bits = 0;
    if (!IdentityBits(MonoidOf(s.partial_op()), global.type(), &bits)) {
      return NoIdentity(s.partial_op(), global.type());
    }
    char pattern[16] = {};
    std::memcpy(pattern, &bits, sizeof bits);
    Tensor t(global.type(), part.tile);
    FillElements(t.element_bytes(), pattern, t.MutableData(), t.num_elements());
    return t;
  }
  if (part.tile == global.dims()) return global;
  Tensor t(global.type(), part.tile);
  if (part.extent != part.tile) Fill(fill, &t);
  const Dims strides = RowMajorStrides(global.dims());
  const int bytes = global.element_bytes();
  if (Product(part.extent) > 0) {
    CopyStrided(bytes, part.extent, global.data() + Offset(part.begin, strides) * bytes, strides,
                t.MutableData(), RowMajorStrides(part.tile));
  }
  return t;
}

absl::StatusOr<int64_t> BufferOfDevice(const LocalState& state, absl::Span<const int64_t> dims,
                                       int64_t device) {
  if (state.sharding->is_maximal()) return device == state.sharding->maximal_device();
  SHARDCALL_RETURN_IF_ERROR(CheckState(state, dims));
  SHARDCALL_RETURN_IF_ERROR(NoSuchDevice(*state.sharding, device));
  const Part part = PartOf(state, dims, device);
  return 2 * part.index + (part.partial_index != 0);
}

absl::StatusOr<std::vector<std::vector<Tensor>>> ShardForDevices(
    absl::Span<const Tensor> globals, absl::Span<const LocalState* const> states,
    int64_t num_devices, PadFill fill) {
  if (globals.size() != states.size()) {
    return WrongCount("arrays", absl::StrCat(states.size()), static_cast<int64_t>(globals.size()));
  }
  if (num_devices < 1 || num_devices > kMaxDevices) {
    return WrongCount("devices", absl::StrCat("1 to ", kMaxDevices), num_devices);
  }
  std::vector<std::vector<Tensor>> parts(num_devices);
  for (size_t k = 0; k < globals.size(); ++k) {
    absl::flat_hash_map<int64_t, Tensor> made;
    for (int64_t d = 0; d < num_devices; ++d) {
      int64_t key = 0;
      if (IsArrayType(globals[k].type())) {
        SHARDCALL_ASSIGN_OR_RETURN(key, BufferOfDevice(*states[k], globals[k].dims(), d));
      }
      const auto found = made.find(key);
      if (found != made.end()) {
        parts[d].push_back(found->second);
        continue;
      }
      SHARDCALL_ASSIGN_OR_RETURN(Tensor t, ShardForDevice(globals[k], *states[k], d, fill));
      made.emplace(key, t);
      parts[d].push_back(std::move(t));
    }
  }
  return parts;
}

namespace {

// The array of device d has not the type of the others, or not these dimensions.
absl::Status WrongPart(absl::Span<const Tensor> locals, int64_t d,
                       absl::Span<const int64_t> expected) {
  return ToStatus({.code = "E320",
                   .message = absl::StrCat("device ", d, "'s array does not fit its sharding"),
                   .expected = TypeAndDims(locals[0].type(), expected),
                   .found = TypeAndDims(locals[d]),
                   .fix = "Give the shard that the sharding says, with its padding"});
}

// By the index of a shard: the dense parts of its partial coordinates, in order. E321 if replicas
// are compared and differ.
absl::Status CollectShards(absl::Span<const Tensor> locals, const LocalState& state,
                           absl::Span<const int64_t> global_dims, const UnshardOptions& options,
                           absl::flat_hash_map<int64_t, std::vector<Tensor>>* shards) {
  const ElementType type = locals[0].type();
  const int64_t partials = AxesSize(state.sharding->partial());
  for (int64_t d = 0; d < static_cast<int64_t>(locals.size()); ++d) {
    const Part part = PartOf(state, global_dims, d);
    if (locals[d].type() != type || locals[d].dims() != part.tile) {
      return WrongPart(locals, d, part.tile);
    }
    std::vector<Tensor>& have = (*shards)[part.index];
    have.resize(partials);
    Tensor& mine = have[part.partial_index];
    const bool first = mine.type() == ElementType::kInvalid;
    if (!first && !options.check_replicas) continue;
    Tensor valid(type, part.extent);
    if (valid.num_elements() > 0) {
      CopyStrided(valid.element_bytes(), part.extent, locals[d].data(), RowMajorStrides(part.tile),
                  valid.MutableData(), RowMajorStrides(part.extent));
    }
    if (!first) {
      if (BitwiseEqual(mine, valid)) continue;
      return ToStatus(
          {.code = "E321",
           .message = absl::StrCat("device ", d, " differs from another that should hold the same"),
           .where = state.sharding->ToString(),
           .fix = "Compute the same on devices that hold one value"},
          absl::StatusCode::kInternal);
    }
    mine = std::move(valid);
  }
  return absl::OkStatus();
}

// The sum (or other reduction) of the parts.
Tensor Reduced(const std::vector<Tensor>& parts, PartialOp op, absl::Span<const int64_t> dims) {
  std::vector<const void*> sources;
  for (const Tensor& t : parts) sources.push_back(t.data());
  Tensor sum(parts[0].type(), dims);
  void* const out[] = {sum.MutableData()};
  ReduceRange(ReduceKindOf(op, sum.type()), sum.type(), sources, out, 0, sum.num_elements());
  return sum;
}

}  // namespace

absl::StatusOr<Tensor> Unshard(absl::Span<const Tensor> locals, const LocalState& state,
                               absl::Span<const int64_t> global_dims,
                               const UnshardOptions& options) {
  const Sharding& s = *state.sharding;
  const int64_t n = static_cast<int64_t>(locals.size());
  if (n == 0) return WrongCount("parts", absl::StrCat(s.mesh()->num_devices()), n);
  const ElementType type = locals[0].type();
  if (!IsArrayType(type)) return locals[0];
  SHARDCALL_RETURN_IF_ERROR(CheckState(state, global_dims));
  if (s.is_maximal()) {
    const int64_t d = s.maximal_device();
    if (d >= n || locals[d].dims() != Dims(global_dims.begin(), global_dims.end())) {
      return WrongPart(locals, std::min(d, n - 1), global_dims);
    }
    return locals[d];
  }
  if (s.mesh()->num_devices() != n) {
    return ToStatus({.code = "E320",
                     .message = "a sharding is over another number of devices than the run",
                     .expected = absl::StrCat(n),
                     .found = absl::StrCat(s.mesh()->num_devices()),
                     .fix = "Run on the devices of the mesh"});
  }
  if (!s.partial().empty() && !CheckReduction(ReduceKindOf(s.partial_op(), type), type).ok()) {
    return NoIdentity(s.partial_op(), type);
  }
  absl::flat_hash_map<int64_t, std::vector<Tensor>> shards;
  SHARDCALL_RETURN_IF_ERROR(CollectShards(locals, state, global_dims, options, &shards));
  Tensor global = Tensor::Zeros(type, global_dims);
  const Dims strides = RowMajorStrides(global_dims);
  const int bytes = global.element_bytes();
  for (int64_t d = 0; d < n; ++d) {
    const Part part = PartOf(state, global_dims, d);
    const auto found = shards.find(part.index);
    if (found == shards.end()) continue;
    const std::vector<Tensor> parts = std::move(found->second);
    shards.erase(found);
    if (Product(part.extent) == 0) continue;
    const Tensor whole = parts.size() > 1 ? Reduced(parts, s.partial_op(), part.extent) : parts[0];
    CopyStrided(bytes, part.extent, whole.data(), RowMajorStrides(part.extent),
                global.MutableData() + Offset(part.begin, strides) * bytes, strides);
  }
  return global;
}

bool SameParts(const LocalState& a, const LocalState& b, absl::Span<const int64_t> global_dims,
               int64_t num_devices) {
  const Sharding &sa = *a.sharding, &sb = *b.sharding;
  if (sa.maximal_device() != sb.maximal_device()) return false;
  if (sa.is_maximal()) return true;
  if (!sa.partial().empty() || !sb.partial().empty()) return false;
  if (!CheckState(a, global_dims).ok() || !CheckState(b, global_dims).ok()) return false;
  if (sa.mesh()->num_devices() != num_devices || sb.mesh()->num_devices() != num_devices) {
    return false;
  }
  if (&a == &b) return true;  // states of one context are interned
  for (int64_t device = 0; device < num_devices; ++device) {
    const Part pa = PartOf(a, global_dims, device), pb = PartOf(b, global_dims, device);
    if (pa.begin != pb.begin || pa.extent != pb.extent || pa.tile != pb.tile) return false;
  }
  return true;
}

}  // namespace internal
}  // namespace shardcall
