// SPDX-License-Identifier: Apache-2.0
// What the parts of the module shardcall._core share.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PYTHON_CORE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PYTHON_CORE_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall::python {

inline nanobind::bytes ToBytes(absl::string_view text) {
  return nanobind::bytes(text.data(), text.size());
}
inline absl::string_view ViewOf(const nanobind::bytes& b) { return {b.c_str(), b.size()}; }

// Becomes a shardcall.Error where it leaves the module.
struct StatusError {
  absl::Status status;
};
inline void Check(const absl::Status& status) {
  if (!status.ok()) throw StatusError{status};
}
template <typename T>
T Take(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// An array with its type and dimensions. Its bytes are as those of a Tensor: row-major,
// types narrower than a byte in a byte each.
using Bytes =
    nanobind::ndarray<const uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
struct Array {
  std::string type;
  std::vector<int64_t> dims;
  Bytes bytes;
};
// Copies. E313 where it is not what `leaf` says.
absl::StatusOr<Tensor> ToTensor(const Array& array, size_t k, const LeafShape& leaf);
// (type, dims, bytes); the bytes are the tensor's own.
nanobind::object FromTensor(Tensor tensor);
using ArrayType = std::pair<std::string, std::vector<int64_t>>;  // ("f32", dims)
std::vector<ArrayType> LeafTypes(const std::vector<LeafShape>& leaves);
// E313 for what is no element type.
std::vector<const Shape*> ToShapes(const std::vector<ArrayType>& arrays, Context* context);

// Rules, handlers and lowerings; not changed once it is made.
struct Targets {
  Registry registry;
};

// The targets that JAX or shardcall.xla_client have registered partitioners of, or as
// batch partitionable, beside those that have a rule.
absl::Status AddFrameworkTargets(TargetRegistry* rules);
// Registers one, for the life of the process; null callbacks: calls say their batch dims. In
// the place of an earlier one of that name. E105 for one that has a shipped rule.
absl::Status AddPartitioner(const std::string& name, Shardcall_PjrtCallbacks* callbacks);
// A PJRT_Api that has the partitioner extension and nothing else.
const void* FrameworkTable();
// The functions that shardcall.xla_client has registered.
absl::Status AddRegisteredHandlers(HandlerRegistry* handlers);
// Tells that there are more of them: what was made of the targets is made anew.
void ChangedRegistrations();

void DefineFramework(nanobind::module_& m);
void DefineRegistration(nanobind::module_& m);
void DefineServing(nanobind::module_& m);
void DefineTargets(nanobind::module_& m);
void DefineValues(nanobind::module_& m);
void DefinePrograms(nanobind::module_& m);

}  // namespace shardcall::python

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PYTHON_CORE_H_
