// SPDX-License-Identifier: Apache-2.0
// The call of a function of shardcall.jax.jit: JAX's own, with our settings around it. It is a type
// of CPython's C API, because a Python function, or one of nanobind, takes as long as a thirtieth
// of JAX's call.
#include <utility>

#include "shardcall/partitioner/bindings/python/core.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

// What the calls use of shardcall.jax, set once when it is imported.
struct Hooks {
  nb::object swap, restore;  // of this thread's settings: swap gives what they were before
  nb::object trace_context, eval_trace;
  nb::object traced;  // (settings, settings before, function): what is called where JAX traces
  nb::object trace;   // the name of the attribute

  static Hooks& OfProcess() {
    static auto* const hooks = new Hooks;  // never freed: Python ends before statics
    return *hooks;
  }
};

struct Dispatch {
  PyObject_HEAD PyObject* function;
  PyObject* settings;
};

int Init(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *function, *settings;
  if (kwargs != nullptr && PyDict_Size(kwargs) > 0) {
    PyErr_SetString(PyExc_TypeError, "Dispatch takes a function and settings");
    return -1;
  }
  if (PyArg_ParseTuple(args, "OO", &function, &settings) == 0) return -1;
  auto* const d = reinterpret_cast<Dispatch*>(self);
  Py_INCREF(function);
  Py_INCREF(settings);
  Py_XDECREF(std::exchange(d->function, function));
  Py_XDECREF(std::exchange(d->settings, settings));
  return 0;
}

// A new reference to what is called, or null with an exception.
PyObject* FunctionToCall(const Hooks& hooks, const Dispatch& d, PyObject* before) {
  PyObject* const trace = PyObject_GetAttr(hooks.trace_context.ptr(), hooks.trace.ptr());
  if (trace == nullptr) return nullptr;
  const bool evaluates = trace == hooks.eval_trace.ptr();
  Py_DECREF(trace);
  if (!evaluates) {
    return PyObject_CallFunctionObjArgs(hooks.traced.ptr(), d.settings, before, d.function,
                                        nullptr);
  }
  Py_INCREF(d.function);
  return d.function;
}

PyObject* Call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const auto* const d = reinterpret_cast<const Dispatch*>(self);
  const Hooks& hooks = Hooks::OfProcess();
  if (d->function == nullptr || !hooks.swap.is_valid()) {
    PyErr_SetString(PyExc_TypeError, "Dispatch was not initialised");
    return nullptr;
  }
  PyObject* const before = PyObject_CallFunctionObjArgs(hooks.swap.ptr(), d->settings, nullptr);
  if (before == nullptr) return nullptr;
  PyObject* const called = FunctionToCall(hooks, *d, before);
  PyObject* const result = called == nullptr ? nullptr : PyObject_Call(called, args, kwargs);
  Py_XDECREF(called);
  // The settings are put back also after an exception, which stays.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const restored = PyObject_CallFunctionObjArgs(hooks.restore.ptr(), before, nullptr);
  Py_XDECREF(restored);
  Py_DECREF(before);
  if (restored == nullptr) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return result;
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  const auto* const d = reinterpret_cast<const Dispatch*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(d->function);
  Py_VISIT(d->settings);
  return 0;
}

int Clear(PyObject* self) {
  auto* const d = reinterpret_cast<Dispatch*>(self);
  Py_CLEAR(d->function);
  Py_CLEAR(d->settings);
  return 0;
}

void Delete(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Clear(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyType_Slot kSlots[] = {{Py_tp_init, reinterpret_cast<void*>(Init)},
                        {Py_tp_call, reinterpret_cast<void*>(Call)},
                        {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(Delete)},
                        {0, nullptr}};
PyType_Spec kSpec = {"shardcall._core.Dispatch", sizeof(Dispatch), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

}  // namespace

void DefineDispatch(nb::module_& m) {
  m.attr("Dispatch") = nb::steal(PyType_FromSpec(&kSpec));
  m.def("set_dispatch", [](nb::object swap, nb::object restore, nb::object trace_context,
                           nb::object eval_trace, nb::object traced) {
    Hooks::OfProcess() = {std::move(swap),       std::move(restore), std::move(trace_context),
                          std::move(eval_trace), std::move(traced),  nb::str("trace")};
  });
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
