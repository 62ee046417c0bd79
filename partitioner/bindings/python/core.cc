// SPDX-License-Identifier: Apache-2.0
// The module shardcall._core: the native part of the package. User docstrings are in the package's
// Python code.
#include "shardcall/partitioner/bindings/python/core.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/element_type.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {

absl::StatusOr<Tensor> ToTensor(const Array& array, size_t k, const LeafShape& leaf) {
  const absl::string_view type = ElementTypeName(leaf.type);
  const bool fits =
      array.type == type && absl::MakeConstSpan(array.dims) == leaf.dims &&
      static_cast<int64_t>(array.bytes.size()) == leaf.num_elements() * ElementTypeBytes(leaf.type);
  if (!IsArrayType(leaf.type)) return Tensor::Token();
  if (!fits) {
    return ToStatus({.code = "E313",
                     .message = absl::StrCat("input ", k, " does not fit its parameter"),
                     .expected = TypeAndDims(leaf.type, leaf.dims),
                     .found = absl::StrCat(array.type, "[", absl::StrJoin(array.dims, ","), "]"),
                     .fix = "Give arguments as the program declares its parameters"});
  }
  Tensor tensor(leaf.type, leaf.dims);
  if (tensor.byte_size() > 0) {
    std::memcpy(tensor.MutableData(), array.bytes.data(), tensor.byte_size());
    NormalizeElements(tensor.type(), tensor.MutableData(), tensor.num_elements());
  }
  return tensor;
}

nb::object FromTensor(Tensor tensor) {
  auto owned = std::make_unique<Tensor>(std::move(tensor));
  Tensor* const t = owned.get();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  static uint8_t nothing = 0;
  const size_t size = IsArrayType(t->type()) ? static_cast<size_t>(t->byte_size()) : 0;
  void* const data = size == 0 ? static_cast<void*>(&nothing) : t->MutableData();
  const nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> bytes(data, {size}, owner);
  nb::list dims;
  for (int64_t d : t->dims()) dims.append(d);
  return nb::make_tuple(std::string(ElementTypeName(t->type())), dims, bytes);
}

std::vector<const Shape*> ToShapes(const std::vector<ArrayType>& arrays, Context* context) {
  std::vector<const Shape*> out;
  for (const auto& [name, dims] : arrays) {
    const ElementType type = ElementTypeFromName(name);
    if (!IsArrayType(type)) {
      throw StatusError{ToStatus({.code = "E313",
                                  .message = absl::StrCat("HLO has no arrays of ", name),
                                  .fix = "Give numbers of another type"})};
    }
    out.push_back(context->MakeArray(type, dims));
  }
  return out;
}

std::vector<ArrayType> LeafTypes(const std::vector<LeafShape>& leaves) {
  std::vector<ArrayType> out;
  for (const LeafShape& leaf : leaves) {
    out.emplace_back(std::string(ElementTypeName(leaf.type)),
                     std::vector<int64_t>(leaf.dims.begin(), leaf.dims.end()));
  }
  return out;
}

namespace {

// Raises the result of shardcall.errors.make(code, message).
void Raise(const absl::Status& status) {
  const RunsPython guard;
  try {
    const nb::object make = nb::module_::import_("shardcall.errors").attr("make");
    // A message may quote bytes of a file, which need not be text.
    const absl::string_view message = status.message();
    const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
        message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
    if (!text.is_valid()) nb::raise_python_error();
    const nb::object error = make(absl::StatusCodeToString(status.code()), text);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

}  // namespace

NB_MODULE(_core, m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const StatusError& e) {
      Raise(e.status);
    }
  });
  // Python partitioners live until the process ends, with all objects they refer to.
  nb::set_leak_warnings(false);
  PrepareForEndOfPython();
  PrepareForForks();
  m.attr("version") = kVersion;
  DefineDispatch(m);
  DefineFramework(m);
  DefineRegistration(m);
  DefineServing(m);
  DefineTargets(m);
  DefineValues(m);
  DefinePrograms(m);
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
