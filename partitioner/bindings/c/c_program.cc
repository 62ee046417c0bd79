// SPDX-License-Identifier: Apache-2.0
// Partitioning and running in C.
#include <cstddef>

#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/bindings/c/c_objects.h"
#include "shardcall/partitioner/custom_call/cache_key.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kLongestList = 1024;

absl::StatusOr<ExplainFormat> FormatOf(const char* name) {
  const absl::string_view text = name == nullptr ? "text" : name;
  if (text == "text") return ExplainFormat::kText;
  if (text == "json") return ExplainFormat::kJson;
  if (text == "html") return ExplainFormat::kHtml;
  return BadArgument("Shardcall_Program_Explain", "text, json or html", std::string(text));
}

absl::StatusOr<std::string> RuleKey(const PartitionedProgram& p, absl::string_view name) {
  const Program& program = p.global->program;
  const Module& m = program.module;
  if (!name.empty() && name[0] == '%') name.remove_prefix(1);
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& instr = m.instr(InstrId(k));
    if (instr.name != name || instr.opcode != Opcode::kCustomCall) continue;
    const TargetRule* rule = p.global->rules->target(InstrId(k));
    if (rule == nullptr) {
      return BadArgument("Shardcall_Program_RuleKey", "a call of a target that has a rule",
                         absl::StrCat("%", name));
    }
    return RuleCacheKey(*rule, instr.backend_config, instr.frontend, *program.mesh);
  }
  return BadArgument("Shardcall_Program_RuleKey", "the name of a custom call",
                     absl::StrCat("%", name));
}

// Common to the functions that return a text about a program.
template <typename Make>
Shardcall_Error* TextOf(const char* function, const Shardcall_Program* program,
                        Shardcall_Text** text, Make&& make) {
  return Guarded(function, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(function, "program", program));
    SHARDCALL_RETURN_IF_ERROR(NotNull(function, "the place of the text", text));
    const std::lock_guard<std::mutex> lock(program->mutex);
    SHARDCALL_ASSIGN_OR_RETURN(std::string made, make());
    *text = new Shardcall_Text{std::move(made)};
    return absl::OkStatus();
  });
}

// The module with the registry's lowerings for Host applied, as in the command-line tool.
absl::StatusOr<Module> ReadLowered(const Shardcall_Module& module, const Registry& registry) {
  SHARDCALL_ASSIGN_OR_RETURN(Module read,
                             ReadCModule(module.bytes, module.name, module.registry->rules));
  LoweringRegistry lowerings = registry.lowerings;
  SHARDCALL_RETURN_IF_ERROR(
      lowerings.Register("", "Host", LowerToHandlers(&registry.handlers, &registry.rules)));
  return LowerCalls(std::move(read), lowerings, "Host");
}

RunOptions On(Engine* engine, RunOptions options) {
  if (engine == nullptr) return options;
  options.backend = Backend::kPjrt;
  options.engine = engine;
  return options;
}

}  // namespace

absl::StatusOr<RunOptions> ReadCOptions(absl::string_view function,
                                        const Shardcall_Options* options,
                                        std::shared_ptr<const Registry>* registry) {
  Shardcall_Options o = SHARDCALL_INIT(Shardcall_Options);
  if (options != nullptr) {
    SHARDCALL_RETURN_IF_ERROR(ReadStruct(function, options, offsetof(Shardcall_Options, cost), &o));
  }
  if (o.num_partitions < 0 || o.max_reshard_bytes < 0 || o.max_memory < 0 || !(o.deadline_s >= 0)) {
    return BadArgument(function, "options that are zero or more",
                       absl::StrCat("num_partitions ", o.num_partitions, ", max_reshard_bytes ",
                                    o.max_reshard_bytes, ", max_memory ", o.max_memory,
                                    ", deadline_s ", o.deadline_s));
  }
  *registry = RegistryOf(o.registry).Snapshot();
  RunOptions out;
  out.handlers = &(*registry)->handlers;
  out.partition.targets = &(*registry)->rules;
  out.partition.num_partitions = o.num_partitions;
  out.partition.propagate = o.no_propagate == 0;
  if (o.max_reshard_bytes > 0) out.partition.spmd.max_reshard_bytes = o.max_reshard_bytes;
  if (o.max_memory > 0) out.partition.spmd.max_memory = o.max_memory;
  out.partition.spmd.strict_partial = o.strict_partial != 0;
  if (o.deadline_s > 0) out.deadline = absl::Seconds(o.deadline_s);
  if (o.conflicts != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(out.partition.conflicts, ParseConflictOrder(o.conflicts));
  }
  if (o.cost != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(out.partition.spmd.cost, ParseCostModel(o.cost));
  }
  if (o.search != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(out.partition.spmd.search, ParseStateSearch(o.search));
  }
  for (int k = 0; o.allow_replicate != nullptr && k < kLongestList; ++k) {
    if (o.allow_replicate[k] == nullptr) break;
    out.partition.allow_replicate.push_back(o.allow_replicate[k]);
  }
  return out;
}

absl::Status RunC(absl::string_view function, const Shardcall_Program* program, Engine* engine,
                  const Shardcall_Buffer* inputs, int32_t num_inputs, Shardcall_Buffers** outputs) {
  SHARDCALL_RETURN_IF_ERROR(NotNull(function, "program", program));
  SHARDCALL_RETURN_IF_ERROR(NotNull(function, "outputs", outputs));
  const std::lock_guard<std::mutex> lock(program->mutex);
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::vector<Tensor> in,
      ReadCInputs(program->program->global->program.module, inputs, num_inputs));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<Tensor> out,
      RunPartitioned(*program->program, in, On(engine, program->options), nullptr));
  *outputs = MakeCBuffers(std::move(out));
  return absl::OkStatus();
}

absl::Status VerifyC(absl::string_view function, const Shardcall_Module* module,
                     const Shardcall_Options* options, Engine* engine, uint64_t seed,
                     Shardcall_Text** json) {
  SHARDCALL_RETURN_IF_ERROR(NotNull(function, "module", module));
  SHARDCALL_RETURN_IF_ERROR(NotNull(function, "json", json));
  std::shared_ptr<const Registry> registry;
  SHARDCALL_ASSIGN_OR_RETURN(const RunOptions o, ReadCOptions(function, options, &registry));
  SHARDCALL_ASSIGN_OR_RETURN(Module read, ReadLowered(*module, *registry));
  SHARDCALL_ASSIGN_OR_RETURN(const VerifyResult result,
                             Verify(std::move(read), On(engine, o), seed, {}, nullptr));
  *json = new Shardcall_Text{VerifyJson(result)};
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall

using namespace shardcall;  // NOLINT: definitions of C functions

extern "C" {

Shardcall_Error* Shardcall_PropagateModule(const Shardcall_Module* module,
                                           const Shardcall_Options* options,
                                           Shardcall_Text** text) {
  static constexpr char kName[] = "Shardcall_PropagateModule";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "text", text));
    std::shared_ptr<const Registry> registry;
    SHARDCALL_ASSIGN_OR_RETURN(const RunOptions o, ReadCOptions(kName, options, &registry));
    SHARDCALL_ASSIGN_OR_RETURN(Module read, ReadLowered(*module, *registry));
    SHARDCALL_ASSIGN_OR_RETURN(const auto p, PropagateShardings(std::move(read), o.partition));
    SHARDCALL_ASSIGN_OR_RETURN(const Module out,
                               ExportShardings(p->program, p->shardings.sharding));
    *text = new Shardcall_Text{PrintModule(out)};
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_PartitionModule(const Shardcall_Module* module,
                                           const Shardcall_Options* options,
                                           Shardcall_Program** program) {
  static constexpr char kName[] = "Shardcall_PartitionModule";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "module", module));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "program", program));
    auto out = std::make_unique<Shardcall_Program>();
    SHARDCALL_ASSIGN_OR_RETURN(out->options, ReadCOptions(kName, options, &out->registry));
    SHARDCALL_ASSIGN_OR_RETURN(Module read, ReadLowered(*module, *out->registry));
    SHARDCALL_ASSIGN_OR_RETURN(out->program, Partition(std::move(read), out->options.partition));
    *program = out.release();
    return absl::OkStatus();
  });
}

void Shardcall_Program_Destroy(Shardcall_Program* program) { delete program; }

int64_t Shardcall_Program_NumPartitions(const Shardcall_Program* program) {
  return program == nullptr ? 0 : program->program->global->program.num_partitions;
}

Shardcall_Error* Shardcall_Program_Print(const Shardcall_Program* program, Shardcall_Text** text) {
  return TextOf("Shardcall_Program_Print", program, text, [&]() -> absl::StatusOr<std::string> {
    return PrintModule(program->program->local.module);
  });
}

Shardcall_Error* Shardcall_Program_Serialize(const Shardcall_Program* program,
                                             Shardcall_Text** bytes) {
  return TextOf("Shardcall_Program_Serialize", program, bytes,
                [&] { return WriteModuleProto(program->program->local.module); });
}

Shardcall_Error* Shardcall_Program_Report(const Shardcall_Program* program, Shardcall_Text** json) {
  return TextOf("Shardcall_Program_Report", program, json, [&]() -> absl::StatusOr<std::string> {
    return ReportJson(*program->program, program->options.partition.spmd);
  });
}

Shardcall_Error* Shardcall_Program_Explain(const Shardcall_Program* program, const char* format,
                                           Shardcall_Text** text) {
  return TextOf("Shardcall_Program_Explain", program, text, [&]() -> absl::StatusOr<std::string> {
    SHARDCALL_ASSIGN_OR_RETURN(const ExplainFormat f, FormatOf(format));
    return Explain(*program->program, program->options.partition.spmd, f);
  });
}

Shardcall_Error* Shardcall_Program_Expect(const Shardcall_Program* program, const char* contract) {
  static constexpr char kName[] = "Shardcall_Program_Expect";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "program", program));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "contract", contract));
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<ContractTerm> terms, ParseContract(contract));
    return CheckContract(terms, *program->program);
  });
}

Shardcall_Error* Shardcall_Program_RuleKey(const Shardcall_Program* program,
                                           const char* instruction, Shardcall_Text** key) {
  return TextOf("Shardcall_Program_RuleKey", program, key, [&]() -> absl::StatusOr<std::string> {
    SHARDCALL_RETURN_IF_ERROR(NotNull("Shardcall_Program_RuleKey", "instruction", instruction));
    return RuleKey(*program->program, instruction);
  });
}

Shardcall_Error* Shardcall_Program_Run(const Shardcall_Program* program,
                                       const Shardcall_Buffer* inputs, int32_t num_inputs,
                                       Shardcall_Buffers** outputs) {
  static constexpr char kName[] = "Shardcall_Program_Run";
  return Guarded(kName, [&] { return RunC(kName, program, nullptr, inputs, num_inputs, outputs); });
}

Shardcall_Error* Shardcall_Module_Verify(const Shardcall_Module* module,
                                         const Shardcall_Options* options, uint64_t seed,
                                         Shardcall_Text** json) {
  static constexpr char kName[] = "Shardcall_Module_Verify";
  return Guarded(kName, [&] { return VerifyC(kName, module, options, nullptr, seed, json); });
}

}  // extern "C"
