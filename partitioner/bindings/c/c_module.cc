// SPDX-License-Identifier: Apache-2.0
// Modules and buffers in C.
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/bindings/c/c_objects.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status BadInput(std::string message, std::string expected, std::string found) {
  return ToStatus(
      {.code = "E313",
       .message = std::move(message),
       .expected = std::move(expected),
       .found = std::move(found),
       .fix = "give one buffer per flat leaf of the entry's parameters, in their order"});
}

}  // namespace

absl::StatusOr<Module> ReadCModule(absl::string_view bytes, const std::string& name,
                                   const TargetRegistry& targets) {
  absl::StatusOr<Module> module = LooksLikeProto(bytes)
                                      ? ReadModuleProto(bytes, std::make_shared<Context>(), name)
                                      : ParseModule(std::make_shared<const std::string>(bytes),
                                                    std::make_shared<Context>(), name, &targets);
  SHARDCALL_RETURN_IF_ERROR(module.status());
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(*module, name));
  return module;
}

absl::StatusOr<Tensor> ReadCInput(int32_t k, const LeafShape& leaf, const Shardcall_Buffer& b) {
  if (b.struct_size != sizeof(Shardcall_Buffer)) {
    return BadInput(absl::StrCat("input ", k, " has another struct_size"),
                    absl::StrCat(sizeof(Shardcall_Buffer)), absl::StrCat(b.struct_size));
  }
  if (!IsArrayType(leaf.type)) return Tensor::Token();
  const bool dims = b.rank == static_cast<int32_t>(leaf.dims.size()) &&
                    (b.rank == 0 || b.dims != nullptr) &&
                    absl::MakeConstSpan(b.dims, b.rank) == absl::MakeConstSpan(leaf.dims);
  if (b.type != static_cast<int32_t>(leaf.type) || !dims) {
    std::vector<int64_t> given;
    for (int32_t d = 0; b.dims != nullptr && d < b.rank && d < kMaxRank; ++d) {
      given.push_back(b.dims[d]);
    }
    return BadInput(
        absl::StrCat("input ", k, " has another type or shape"),
        absl::StrCat(TypeAndDims(leaf.type, leaf.dims), " (type ", static_cast<int>(leaf.type),
                     ")"),
        absl::StrCat("type ", b.type, ", rank ", b.rank, ", dims ", absl::StrJoin(given, ",")));
  }
  if (b.data == nullptr && leaf.num_elements() > 0) {
    return BadInput(absl::StrCat("input ", k, " has no data"), "a pointer", "null");
  }
  Tensor t = leaf.num_elements() == 0 ? Tensor::Zeros(leaf.type, leaf.dims)
                                      : Tensor::FromBytes(leaf.type, leaf.dims, b.data);
  NormalizeElements(t.type(), t.MutableData(), t.num_elements());
  return t;
}

absl::StatusOr<std::vector<Tensor>> ReadCInputs(const Module& module,
                                                const Shardcall_Buffer* inputs,
                                                int32_t num_inputs) {
  const std::vector<LeafShape> leaves = ParameterLeaves(module);
  if (num_inputs != static_cast<int64_t>(leaves.size()) || (num_inputs > 0 && inputs == nullptr)) {
    return BadInput("the program is given another number of inputs", absl::StrCat(leaves.size()),
                    absl::StrCat(num_inputs, inputs == nullptr ? " at null" : ""));
  }
  std::vector<Tensor> out;
  for (int32_t k = 0; k < num_inputs; ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(Tensor t, ReadCInput(k, leaves[k], inputs[k]));
    out.push_back(std::move(t));
  }
  return out;
}

Shardcall_Buffers* MakeCBuffers(std::vector<Tensor> tensors) {
  auto out = std::make_unique<Shardcall_Buffers>();
  out->tensors = std::move(tensors);
  for (Tensor& t : out->tensors) out->dims.emplace_back(t.dims().begin(), t.dims().end());
  for (size_t k = 0; k < out->tensors.size(); ++k) {
    Tensor& t = out->tensors[k];
    const bool array = IsArrayType(t.type());
    out->buffers.push_back({sizeof(Shardcall_Buffer), static_cast<int32_t>(t.type()), t.rank(),
                            out->dims[k].data(), array ? t.MutableData() : nullptr});
  }
  return out.release();
}

}  // namespace internal
}  // namespace shardcall

using namespace shardcall;  // NOLINT: definitions of C functions

extern "C" {

Shardcall_Error* Shardcall_Module_Read(const char* data, size_t size, const char* name,
                                       Shardcall_Module** module) {
  return Shardcall_Module_ReadWith(nullptr, data, size, name, module);
}

Shardcall_Error* Shardcall_Module_ReadWith(Shardcall_Registry* registry, const char* data,
                                           size_t size, const char* name,
                                           Shardcall_Module** module) {
  static constexpr char kName[] = "Shardcall_Module_Read";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "data", data));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    std::string bytes(data, size);
    const std::string file = name == nullptr ? "module" : name;
    std::shared_ptr<const Registry> known = RegistryOf(registry).Snapshot();
    SHARDCALL_ASSIGN_OR_RETURN(Module read, ReadCModule(bytes, file, known->rules));
    *module = new Shardcall_Module(std::move(bytes), file, std::move(known), std::move(read));
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_Module_Print(const Shardcall_Module* module, Shardcall_Text** text) {
  static constexpr char kName[] = "Shardcall_Module_Print";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "text", text));
    const std::lock_guard<std::mutex> lock(module->mutex);
    *text = new Shardcall_Text{PrintModule(module->module)};
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_Module_Serialize(const Shardcall_Module* module,
                                            Shardcall_Text** bytes) {
  static constexpr char kName[] = "Shardcall_Module_Serialize";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "bytes", bytes));
    const std::lock_guard<std::mutex> lock(module->mutex);
    SHARDCALL_ASSIGN_OR_RETURN(std::string out, WriteModuleProto(module->module));
    *bytes = new Shardcall_Text{std::move(out)};
    return absl::OkStatus();
  });
}

void Shardcall_Module_Destroy(Shardcall_Module* module) { delete module; }

Shardcall_Error* Shardcall_Module_Evaluate(const Shardcall_Module* module,
                                           Shardcall_Registry* registry,
                                           const Shardcall_Buffer* inputs, int32_t num_inputs,
                                           Shardcall_Buffers** outputs) {
  static constexpr char kName[] = "Shardcall_Module_Evaluate";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "outputs", outputs));
    const std::shared_ptr<const Registry> r = RegistryOf(registry).Snapshot();
    const std::lock_guard<std::mutex> lock(module->mutex);
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> in,
                               ReadCInputs(module->module, inputs, num_inputs));
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> out,
                               Evaluate(module->module, std::move(in), &r->handlers));
    *outputs = MakeCBuffers(std::move(out));
    return absl::OkStatus();
  });
}

int32_t Shardcall_Buffers_Count(const Shardcall_Buffers* buffers) {
  return buffers == nullptr ? 0 : static_cast<int32_t>(buffers->buffers.size());
}
const Shardcall_Buffer* Shardcall_Buffers_Get(const Shardcall_Buffers* buffers, int32_t index) {
  if (index < 0 || index >= Shardcall_Buffers_Count(buffers)) return nullptr;
  return &buffers->buffers[index];
}
void Shardcall_Buffers_Destroy(Shardcall_Buffers* buffers) { delete buffers; }

}  // extern "C"
