// SPDX-License-Identifier: Apache-2.0
// A CustomCallView in C: the struct and everything that it points to.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_CALL_VIEW_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_CALL_VIEW_H_

#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_partition.h"
#include "shardcall/partitioner/custom_call/call_view.h"

namespace shardcall {
inline namespace internal {

class CCallView {
 public:
  explicit CCallView(const CustomCallView& call);
  CCallView(const CCallView&) = delete;
  CCallView& operator=(const CCallView&) = delete;

  const CustomCallView& call() const { return call_; }
  const Shardcall_CallView* c() const { return &c_; }
  const AttributeMapView& attributes() const { return attributes_; }

  // Gives the callback a handle. It may use only handles that it was given.
  const Shardcall_Sharding* Give(const Sharding* s);
  // Take accepts null (tokens have none); TakeOne returns an error for it.
  absl::StatusOr<const Sharding*> Take(const Shardcall_Sharding* s) const;
  absl::StatusOr<const Sharding*> TakeOne(const Shardcall_Sharding* s) const;
  // A null-terminated list of names, as axes; null means none.
  absl::StatusOr<AxisList> Axes(const char* const* names) const;
  const char* Keep(std::string text) { return texts_.emplace_back(std::move(text)).c_str(); }

  // The first failure of a function that the callback called. Returned(code) is the status of a
  // callback that returned `code`, 0 included, with this failure or the callback's own message.
  int Fail(absl::Status status);
  void SetMessage(const char* message) { message_ = message == nullptr ? "" : message; }
  absl::Status Returned(int code) const;

 private:
  Shardcall_Shape ShapeOf(const Shape& shape);

  const CustomCallView& call_;
  AttributeMapView attributes_;
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> layouts_;
  std::vector<Shardcall_Shape> operands_, results_, operand_layouts_;
  std::vector<Shardcall_Axis> axes_;
  std::vector<Shardcall_KeyValue> frontend_;
  std::vector<Shardcall_Alias> aliases_;
  absl::flat_hash_set<const Sharding*> given_;
  absl::Status first_error_;
  std::string message_;
  Shardcall_CallView c_;
};

inline CCallView& ViewOf(const Shardcall_CallView* view) {
  return *static_cast<CCallView*>(view->reserved);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_CALL_VIEW_H_
