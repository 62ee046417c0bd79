// SPDX-License-Identifier: Apache-2.0
// The registrations of shardcall.xla_client: functions, type ids, partitioners and sharding
// callbacks, with Python answers. They live as long as the process.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

using nb::literals::operator""_a;

nb::object BytesOf(const Shardcall_PjrtString& s) { return ToBytes(View(s)); }

std::string TextOf(const nb::handle& bytes) {
  return std::string(ViewOf(nb::cast<nb::bytes>(bytes)));
}

// The text of a Python exception, which shardcall.errors keeps as a cause. That of a
// shardcall.Error begins with its code.
std::string Raised(const nb::python_error& e) {
  try {
    nb::module_::import_("shardcall.errors").attr("note")(e.value());
    const std::string text = nb::cast<std::string>(nb::str(e.value()));
    if (!DiagnosticCode(text).empty()) return text;
  } catch (...) {  // its __str__ fails
  }
  return e.what();
}

// Runs `body`, which calls Python, from any thread. Returns the text of an exception.
template <typename Body>
std::string InPython(const Body& body) {
  if (!nb::is_alive()) return "Python has ended";
  const GilAcquire acquire;
  try {
    body();
    return "";
  } catch (const nb::python_error& e) {
    return Interruptible::Take(e) ? "interrupted" : Raised(e);
  } catch (const std::exception& e) {
    return absl::StrCat("its answer has another type: ", e.what());
  }
}

// A partitioner that is answered by three Python functions over bytes.
struct Asked {
  Shardcall_PjrtCallbacks callbacks;  // first: a pointer to it is one to this
  nb::object partition, infer, propagate;
};
const Asked& AskedOf(Shardcall_PjrtCallbacks* c) {
  return *static_cast<const Asked*>(c->private_data);
}

// The memory that an answer points into until it has been read.
struct Answer {
  std::string error;
  std::vector<std::string> texts;
  std::vector<Shardcall_PjrtString> operands;
};
Shardcall_PjrtString Pointer(const std::string& s) { return {s.data(), s.size()}; }

template <typename Body>
void Answering(Shardcall_PjrtHeader* header, const Body& body) {
  auto* const answer = new Answer;
  header->data = answer;
  header->cleanup_fn = [](void* data) { delete static_cast<Answer*>(data); };
  answer->error = InPython([&] { body(answer); });
  header->has_error = !answer->error.empty();
  header->code = header->has_error ? static_cast<int32_t>(absl::StatusCode::kInvalidArgument) : 0;
  header->error = Pointer(answer->error);
}

nb::list Shapes(size_t count, const Shardcall_PjrtAval* values) {
  nb::list out;
  for (size_t k = 0; k < count; ++k) out.append(BytesOf(values[k].shape));
  return out;
}

nb::object ShardingOf(const Shardcall_PjrtAval& value) {
  return value.has_sharding ? BytesOf(value.sharding) : nb::none();
}

nb::list Shardings(size_t count, const Shardcall_PjrtAval* values) {
  nb::list out;
  for (size_t k = 0; k < count; ++k) out.append(ShardingOf(values[k]));
  return out;
}

void AskPartition(Shardcall_PjrtCallbacks* c, Shardcall_PjrtPartitionArgs* args) {
  Answering(&args->header, [&](Answer* answer) {
    // The package's own code returns (bytes, [bytes of each operand], bytes).
    const nb::tuple made = nb::cast<nb::tuple>(AskedOf(c).partition(
        Shapes(args->num_args, args->op_args), Shardings(args->num_args, args->op_args),
        BytesOf(args->op_result.shape), ShardingOf(args->op_result),
        BytesOf(args->backend_config)));
    answer->texts = {TextOf(made[0]), TextOf(made[2])};
    for (const nb::handle& s : nb::cast<nb::list>(made[1])) answer->texts.push_back(TextOf(s));
    SHARDCALL_CHECK(answer->texts.size() == args->num_args + 2);
    for (size_t k = 0; k < args->num_args; ++k) {
      answer->operands.push_back(Pointer(answer->texts[k + 2]));
    }
    args->mlir_module = Pointer(answer->texts[0]);
    args->result_sharding = Pointer(answer->texts[1]);
    args->args_sharding = answer->operands.data();
  });
}

void AskInfer(Shardcall_PjrtCallbacks* c, Shardcall_PjrtInferArgs* args) {
  args->has_result_sharding = false;
  Answering(&args->header, [&](Answer* answer) {
    const nb::object made = AskedOf(c).infer(
        Shapes(args->num_args, args->op_args), Shardings(args->num_args, args->op_args),
        BytesOf(args->result_shape), BytesOf(args->backend_config));
    if (made.is_none()) return;
    answer->texts = {TextOf(made)};
    args->has_result_sharding = true;
    args->result_sharding = Pointer(answer->texts[0]);
  });
}

void AskPropagate(Shardcall_PjrtCallbacks* c, Shardcall_PjrtPropagateArgs* args) {
  Answering(&args->header, [&](Answer* answer) {
    answer->texts = {
        TextOf(AskedOf(c).propagate(BytesOf(args->result_sharding), BytesOf(args->result_shape),
                                    BytesOf(args->backend_config)))};
    args->result_sharding = Pointer(answer->texts[0]);
  });
}

Shardcall_PjrtCallbacks* NewAsked(nb::object partition, nb::object infer, nb::object propagate,
                                  bool side_effects) {
  // Never freed: programs and plugins may call it until the process ends.
  auto* const asked = new Asked{{}, std::move(partition), std::move(infer), std::move(propagate)};
  asked->callbacks.private_data = asked;
  asked->callbacks.dtor = [](Shardcall_PjrtCallbacks*) {};
  asked->callbacks.partition = AskPartition;
  asked->callbacks.infer_sharding = AskInfer;
  asked->callbacks.propagate_user_sharding = AskPropagate;
  asked->callbacks.can_side_effecting_have_replicated_sharding = side_effects;
  return &asked->callbacks;
}

// The pointer in a capsule; null for None.
void* PointerOf(const nb::handle& capsule, const char* what) {
  if (capsule.is_none()) return nullptr;
  if (!PyCapsule_CheckExact(capsule.ptr())) {
    Check(ToStatus({.code = "E144",
                    .message = absl::StrCat(what, " is no capsule"),
                    .expected = "a PyCapsule with a pointer, as jax.ffi.pycapsule makes them",
                    .found = nb::cast<std::string>(nb::str(capsule.type().attr("__name__"))),
                    .fix = "Wrap the function of a library that ctypes has loaded"}));
  }
  void* const p = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (p == nullptr) nb::raise_python_error();
  return p;
}

void RegisterTarget(const std::string& name, const nb::list& stages, const std::string& platform,
                    int api_version, uint32_t traits) {
  const auto as = static_cast<CustomCallTraits>(traits);
  abi::Handler* functions[4];
  for (int s = 0; s < 4; ++s) {
    functions[s] =
        reinterpret_cast<abi::Handler*>(PointerOf(stages[s], "a custom call's function"));
  }
  Check(ProcessRegistry().Change([&](Registry& r) {
    if (api_version != kTypedFfi) {
      return r.RegisterCustomCallTarget(name, reinterpret_cast<const void*>(functions[3]), platform,
                                        api_version, as);
    }
    return r.RegisterCustomCallTarget(
        name, abi::HandlerBundle{functions[0], functions[1], functions[2], functions[3]}, platform,
        as);
  }));
  ChangedRegistrations();
}

// name -> [a capsule, or None, of each stage], or the capsule of an untyped function.
nb::dict TargetsOf(const std::string& platform) {
  const auto capsule = [](const void* p) -> nb::object {
    if (p == nullptr) return nb::none();
    return nb::capsule(p, nullptr, nullptr);
  };
  nb::dict out;
  for (const auto& [name, t] : Take(CustomCallTargets(platform))) {
    if (t.function == nullptr) continue;  // without a function of XLA's ABIs
    if (t.api_version != kTypedFfi) {
      out[name.c_str()] = capsule(t.function);
      continue;
    }
    nb::list stages;
    for (abi::Handler* s :
         {t.stages.instantiate, t.stages.prepare, t.stages.initialize, t.stages.execute}) {
      stages.append(capsule(reinterpret_cast<const void*>(s)));
    }
    out[name.c_str()] = stages;
  }
  return out;
}

int64_t RegisterType(const std::string& name, const nb::object& id, const nb::object& info,
                     const std::string& platform) {
  auto* const type_id = static_cast<int64_t*>(PointerOf(id, "a type id"));
  const auto* const type_info = static_cast<const abi::TypeInfo*>(PointerOf(info, "a type's info"));
  const bool fits = type_info != nullptr && type_info->struct_size >= sizeof(abi::TypeInfo);
  Check(RegisterCustomTypeId(name, type_id, platform, fits ? type_info->deleter : nullptr));
  return *type_id;
}

// Has the signature of XLA's callback: `data` is a Python function that gets the bytes of an
// OpSharding.
void Inspect(void* data, Shardcall_InspectShardingArgs* args) {
  const std::string failed = InPython([&] {
    nb::borrow<nb::object>(static_cast<PyObject*>(data))(
        nb::bytes(args->sharding_spec, args->sharding_spec_size));
  });
  if (failed.empty()) return;
  auto* const text = new std::string(failed);
  args->error_txt = text->data();
  args->error_scratch = text;
  args->free_error = [](Shardcall_InspectShardingArgs* a) {
    delete static_cast<std::string*>(a->error_scratch);
  };
}

const void* ApiOf(const nb::object& c_api) { return PointerOf(c_api, "c_api"); }

// A plugin without the extension is skipped, as in jaxlib.
absl::Status WithPlugin(const absl::Status& status) {
  return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
}

}  // namespace

absl::Status AddRegisteredHandlers(HandlerRegistry* handlers) {
  const std::shared_ptr<const Registry> registered = DefaultRegistry();
  for (const HandlerEntry* entry : registered->handlers.List()) {
    if (entry->source != "program") continue;  // not registered by the program
    SHARDCALL_RETURN_IF_ERROR(handlers->Register(*entry));
  }
  return absl::OkStatus();
}

void DefineRegistration(nb::module_& m) {
  m.def("register_target", &RegisterTarget, "name"_a, "stages"_a, "platform"_a, "api_version"_a,
        "traits"_a);
  m.def("registered_targets", &TargetsOf, "platform"_a);
  m.def("register_type", &RegisterType, "name"_a, "type_id"_a, "type_info"_a.none(), "platform"_a);
  m.def(
      "platform_name", [](const std::string& name) { return Take(PlatformFromName(name)); },
      "name"_a);
  // `partition`, `infer` and `propagate` return bytes.
  m.def(
      "register_partitioner",
      [](const std::string& name, nb::object partition, nb::object infer, nb::object propagate,
         bool side_effects) {
        Check(AddPartitioner(name, NewAsked(std::move(partition), std::move(infer),
                                            std::move(propagate), side_effects)));
      },
      "name"_a, "partition"_a, "infer"_a, "propagate"_a, "side_effects"_a);
  m.def(
      "register_partitioner_with",
      [](const nb::object& c_api, const std::string& name, nb::object partition, nb::object infer,
         nb::object propagate, bool side_effects) {
        const void* const api = ApiOf(c_api);
        if (api == FrameworkTable()) return;  // our own table, where it is registered already
        Check(WithPlugin(RegisterPartitionerWithPjrt(
            api, name,
            NewAsked(std::move(partition), std::move(infer), std::move(propagate), side_effects))));
      },
      "c_api"_a, "name"_a, "partition"_a, "infer"_a, "propagate"_a, "side_effects"_a);
  m.def(
      "register_batch_partitionable",
      [](const std::string& name) { Check(AddPartitioner(name, nullptr)); }, "name"_a);
  m.def(
      "register_batch_partitionable_with",
      [](const nb::object& c_api, const std::string& name) {
        const void* const api = ApiOf(c_api);
        if (api == FrameworkTable()) return;
        Check(WithPlugin(RegisterBatchPartitionableWithPjrt(api, name)));
      },
      "c_api"_a, "name"_a);
  // The function is kept as long as the process lives.
  m.def(
      "encode_inspect_sharding",
      [](nb::object function) {
        const std::string bytes = EncodeInspectShardingCallback(Inspect, function.release().ptr());
        return ToBytes(bytes);
      },
      "function"_a);
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
