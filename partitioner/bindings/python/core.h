// SPDX-License-Identifier: Apache-2.0
// Shared by the source files of the module shardcall._core.
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

namespace shardcall {
inline namespace internal {
namespace python {

inline nanobind::bytes ToBytes(absl::string_view text) {
  return nanobind::bytes(text.data(), text.size());
}
inline absl::string_view ViewOf(const nanobind::bytes& b) { return {b.c_str(), b.size()}; }

// Becomes a shardcall.Error in Python.
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

// An array with its type and dimensions. Its bytes are those of a Tensor: row-major, types
// narrower than a byte in one byte each.
using Bytes =
    nanobind::ndarray<const uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
struct Array {
  std::string type;
  std::vector<int64_t> dims;
  Bytes bytes;
};
// Copies the array. E313 if it does not match `leaf`.
absl::StatusOr<Tensor> ToTensor(const Array& array, size_t k, const LeafShape& leaf);
// (type, dims, bytes); the bytes share the tensor's memory.
nanobind::object FromTensor(Tensor tensor);
using ArrayType = std::pair<std::string, std::vector<int64_t>>;  // ("f32", dims)
std::vector<ArrayType> LeafTypes(const std::vector<LeafShape>& leaves);
// E313 for an unknown element type.
std::vector<const Shape*> ToShapes(const std::vector<ArrayType>& arrays, Context* context);

// Rules, handlers and lowerings; immutable after construction.
struct Targets {
  Registry registry;
};

// Adds the targets for which JAX or shardcall.xla_client have registered partitioners, or batch
// partitioning, unless they have a rule.
absl::Status AddFrameworkTargets(TargetRegistry* rules);
// Registers one for the life of the process; null callbacks: calls give their batch dims. Replaces
// an earlier one of that name. E105 for a target with a shipped rule.
absl::Status AddPartitioner(const std::string& name, Shardcall_PjrtCallbacks* callbacks);
// A PJRT_Api that has only the partitioner extension.
const void* FrameworkTable();
// Adds the functions that shardcall.xla_client has registered.
absl::Status AddRegisteredHandlers(HandlerRegistry* handlers);
// Signals new registrations: cached objects that depend on the targets are made again.
void ChangedRegistrations();

// shardcall.jax: calls of functions (core_dispatch.cc).
void DefineDispatch(nanobind::module_& m);
void DefineFramework(nanobind::module_& m);
void DefineRegistration(nanobind::module_& m);
void DefineServing(nanobind::module_& m);
void DefineTargets(nanobind::module_& m);
void DefineValues(nanobind::module_& m);
void DefinePrograms(nanobind::module_& m);

}  // namespace python
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PYTHON_CORE_H_
