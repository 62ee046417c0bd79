// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "shardcall/partitioner/bindings/c/c_objects.h"
#include "shardcall/partitioner/bindings/pjrt/c_pjrt_objects.h"
#include "shardcall/partitioner/bindings/pjrt/shardcall_c_pjrt.h"
#include "shardcall/partitioner/bindings/pjrt/to_hlo.h"

using namespace shardcall;  // NOLINT: definitions of C functions

extern "C" {

Shardcall_Error* Shardcall_PjrtEngine_Create(const char* plugin,
                                             const Shardcall_PjrtOption* options,
                                             int32_t num_options, Shardcall_PjrtEngine** engine) {
  static constexpr char kName[] = "Shardcall_PjrtEngine_Create";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "plugin", plugin));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "engine", engine));
    if (num_options < 0 || (num_options > 0 && options == nullptr)) {
      return BadArgument(kName, "options", absl::StrCat(num_options, " at null"));
    }
    pjrt::CreateOptions create;
    for (int32_t k = 0; k < num_options; ++k) {
      Shardcall_PjrtOption o;
      SHARDCALL_RETURN_IF_ERROR(ReadStruct(kName, &options[k], sizeof(o), &o));
      SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "an option's name", o.name));
      SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "an option's value", o.value));
      create.emplace_back(o.name, pjrt::OptionValue(o.value));
    }
    auto made = std::make_unique<Shardcall_PjrtEngine>();
    SHARDCALL_ASSIGN_OR_RETURN(made->engine, MakePjrtEngine(plugin, std::move(create)));
    *engine = made.release();
    return absl::OkStatus();
  });
}

void Shardcall_PjrtEngine_Destroy(Shardcall_PjrtEngine* engine) { delete engine; }

Shardcall_Error* Shardcall_Program_RunOnPjrt(const Shardcall_Program* program,
                                             Shardcall_PjrtEngine* engine,
                                             const Shardcall_Buffer* inputs, int32_t num_inputs,
                                             Shardcall_Buffers** outputs) {
  static constexpr char kName[] = "Shardcall_Program_RunOnPjrt";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "program", program));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "engine", engine));
    const std::lock_guard<std::mutex> lock(engine->mutex);
    return RunC(kName, program, engine->engine.get(), inputs, num_inputs, outputs);
  });
}

Shardcall_Error* Shardcall_Module_VerifyOnPjrt(const Shardcall_Module* module,
                                               const Shardcall_Options* options,
                                               Shardcall_PjrtEngine* engine, uint64_t seed,
                                               Shardcall_Text** json) {
  static constexpr char kName[] = "Shardcall_Module_VerifyOnPjrt";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "engine", engine));
    const std::lock_guard<std::mutex> lock(engine->mutex);
    return VerifyC(kName, module, options, engine->engine.get(), seed, json);
  });
}

Shardcall_Error* Shardcall_StablehloToHlo(const char* plugin, const char* data, size_t size,
                                          Shardcall_Text** hlo) {
  static constexpr char kName[] = "Shardcall_StablehloToHlo";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "plugin", plugin));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "data", data));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "hlo", hlo));
    SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<const pjrt::Converter> converter,
                               pjrt::Converter::Open(plugin));
    SHARDCALL_ASSIGN_OR_RETURN(std::string proto, converter->ToHlo(absl::string_view(data, size)));
    *hlo = new Shardcall_Text{std::move(proto)};
    return absl::OkStatus();
  });
}

}  // extern "C"
