// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/bindings/pjrt/read_program.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/partitioner/bindings/xla/communicating_calls.h"
#include "shardcall/partitioner/bindings/xla/exported_calls.h"
#include "shardcall/partitioner/bindings/xla/framework_program.h"
#include "shardcall/partitioner/bindings/xla/manual_computation.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/build/started_calls.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"
#include "shardcall/sharding/cost_model.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

using nb::literals::operator""_a;
using TargetsRef = std::shared_ptr<Targets>;

// The targets of a module's custom calls.
using Called = std::set<std::string>;
Called CalledTargets(const Module& module) {
  Called out;
  for (size_t k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(static_cast<uint32_t>(k)));
    if (i.opcode == Opcode::kCustomCall) out.emplace(i.as<CustomCallAttrs>().target);
  }
  return out;
}

// Which parameters and results of a framework's program take the shardings that the program
// implies.
struct OpenEdges {
  std::vector<bool> parameters, results;
};

// A program from Python, with the options for it.
struct Request {
  nb::bytes bytes;
  std::string name, converter;
  TargetsRef targets;
  int64_t num_partitions = 0;
  bool propagate = true;
  std::vector<std::string> allow_replicate;
  int64_t max_reshard_bytes = 0;  // 0: no limit
  std::optional<ConflictOrder> conflicts;
  CostModel cost;
  int64_t max_memory = 0;  // 0: no limit
  StateSearch search = StateSearch::kSmall;
  bool strict_partial = false;
  std::optional<OpenEdges> open;  // of what JAX has lowered

  PartitionOptions Options() const {
    PartitionOptions out;
    out.targets = &targets->registry.rules;
    out.num_partitions = num_partitions;
    out.propagate = propagate;
    out.allow_replicate = allow_replicate;
    out.conflicts = conflicts;
    if (max_reshard_bytes > 0) out.spmd.max_reshard_bytes = max_reshard_bytes;
    out.spmd.cost = cost;
    if (max_memory > 0) out.spmd.max_memory = max_memory;
    out.spmd.search = search;
    out.spmd.strict_partial = strict_partial;
    out.even_edges = open.has_value();
    return out;
  }
  RunOptions Run(absl::Duration deadline) const {
    RunOptions out;
    out.partition = Options();
    out.handlers = &targets->registry.handlers;
    out.deadline = deadline;
    return out;
  }
  // Reads the program and lowers calls for the host. Makes the only copy of the program, which the
  // module keeps as its text.
  absl::StatusOr<Module> Read(Called* called = nullptr) const {
    SHARDCALL_ASSIGN_OR_RETURN(
        Module module,
        pjrt::ReadProgram(std::make_shared<const std::string>(bytes.c_str(), bytes.size()), name,
                          targets->registry.rules, {.converter = converter}));
    if (open.has_value()) SetOpen(open->parameters, open->results, &module.header);
    SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, name));
    if (called != nullptr) *called = CalledTargets(module);
    return LowerCalls(std::move(module), targets->registry.lowerings, "Host");
  }
};

// In seconds: of each wait for a device or a kernel, and of all that is run; the second may be inf.
using Deadlines = std::pair<double, double>;

// Raises E212 for what is no order of conflicts, E211 for what describes no machine, E213 for what
// is no search.
void CheckOptions(const std::string& conflicts, const std::string& cost,
                  const std::string& search) {
  Take(ParseConflictOrder(conflicts));
  Take(ParseCostModel(cost));
  Take(ParseStateSearch(search));
}

// A partitioned program, with the objects that it refers to.
struct Program {
  TargetsRef targets;
  RunOptions options;
  Called called;
  std::unique_ptr<PartitionedProgram> partitioned;

  const LocalProgram& local() const { return partitioned->local; }
  const Module& global() const { return partitioned->global->program.module; }
  int num_partitions() const {
    return static_cast<int>(partitioned->global->program.num_partitions);
  }
};

absl::StatusOr<std::vector<Tensor>> ToTensors(const std::vector<Array>& arrays,
                                              const Module& module) {
  const std::vector<LeafShape> leaves = ParameterLeaves(module);
  SHARDCALL_RETURN_IF_ERROR(CheckInputCount(leaves.size(), arrays.size()));
  std::vector<Tensor> out;
  for (size_t k = 0; k < arrays.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(Tensor t, ToTensor(arrays[k], k, leaves[k]));
    out.push_back(std::move(t));
  }
  return out;
}

// `partition`: maps the options to a StatusOr of a partitioned program, and stores what the program
// calls.
template <typename Partitioner>
std::unique_ptr<Program> MakeProgram(const Request& request, Partitioner partition) {
  return WithoutGil([&]() -> absl::StatusOr<std::unique_ptr<Program>> {
    auto out = std::make_unique<Program>();
    out->targets = request.targets;
    out->options = request.Run(RunOptions().deadline);
    SHARDCALL_ASSIGN_OR_RETURN(out->partitioned, partition(out->options.partition, &out->called));
    return out;
  });
}

using Partitioned = absl::StatusOr<std::unique_ptr<PartitionedProgram>>;

std::unique_ptr<Program> PartitionProgram(const Request& request) {
  return MakeProgram(request, [&](const PartitionOptions& options, Called* called) -> Partitioned {
    SHARDCALL_ASSIGN_OR_RETURN(Module module, request.Read(called));
    return Partition(std::move(module), options);
  });
}

// For jax.jit: see bindings/xla/framework_program.h.
std::unique_ptr<Program> PartitionForJax(const Request& request, const std::string& platform) {
  const OpenEdges open = request.open.value_or(OpenEdges());
  return MakeProgram(request, [&](const PartitionOptions& options, Called* called) -> Partitioned {
    return PartitionForFramework(
        absl::string_view(request.bytes.c_str(), request.bytes.size()),
        {.num_partitions = options.num_partitions,
         .open_parameters = open.parameters,
         .open_results = open.results,
         .platform = platform,
         .registry = &request.targets->registry,
         .allow_replicate = options.allow_replicate,
         .conflicts = options.conflicts,
         .spmd = options.spmd,
         .observe = [called](const Module& module) { *called = CalledTargets(module); }});
  });
}

// The program over global arrays for XLA to compile, and the functions that XLA needs for it:
// (StableHLO, HLO proto, why there is only a proto, whether to use Shardy, [(name, platform,
// address)], [(target, its further name)]). `known`: targets for which XLA has a function; `asked`:
// those for which it has a partitioner; `ordinals`: the number of each device in the runtime, by
// partition, if all of them are in this process; `started_calls`: whether it reads collectives that
// are started by calls.
nb::tuple ForJax(const Program& p, const std::string& platform,
                 const std::vector<std::string>& known, const std::vector<std::string>& asked,
                 const std::vector<int>& ordinals, bool started_calls) {
  struct Made {
    std::vector<RenamedTarget> names;
    ExportedCalls calls;
    bool shardy = true;
    std::string stablehlo, proto;  // one of them is empty
    std::string why;               // there is no StableHLO
  };
  Made made = WithoutGil([&]() -> absl::StatusOr<Made> {
    Made m;
    SHARDCALL_ASSIGN_OR_RETURN(ManualComputation whole, AsManualComputation(p.local(), platform));
    m.shardy = whole.shardy;
    const absl::flat_hash_set<std::string> functions(known.begin(), known.end());
    const HandlerRegistry& handlers = p.targets->registry.handlers;
    SHARDCALL_ASSIGN_OR_RETURN(
        std::vector<ExportedTarget> communicating,
        ExportCommunicating(handlers, platform, ordinals, p.num_partitions(),
                            p.partitioned->global->program.mesh, &whole.module));
    SHARDCALL_ASSIGN_OR_RETURN(
        m.calls, ExportCalls(whole.module, platform, p.num_partitions(), handlers, functions));
    m.names = RenamePartitioned({asked.begin(), asked.end()}, functions, &whole.module, &m.calls);
    for (ExportedTarget& t : communicating) m.calls.targets.push_back(std::move(t));
    if (started_calls) whole.module = WithStartedCalls(std::move(whole.module));
    StablehloOptions stablehlo;
    stablehlo.typed_calls = m.calls.renamed;
    absl::StatusOr<std::string> written = WriteStablehloBytecode(whole.module, stablehlo);
    if (written.ok()) {
      m.stablehlo = *std::move(written);
      return m;
    }
    if (!absl::IsUnimplemented(written.status())) return written.status();
    ProtoOptions proto;  // XLA converts what is not written
    proto.typed_calls = m.calls.renamed;
    SHARDCALL_ASSIGN_OR_RETURN(m.proto, WriteModuleProto(whole.module, ProtoForm::kModule, proto));
    m.why = std::string(written.status().message());
    return m;
  });
  nb::list functions;
  for (const ExportedTarget& t : made.calls.targets) {
    functions.append(nb::make_tuple(t.name, t.platform, reinterpret_cast<uintptr_t>(t.function)));
  }
  nb::list names;
  for (const RenamedTarget& t : made.names) names.append(nb::make_tuple(t.target, t.name));
  return nb::make_tuple(ToBytes(made.stablehlo), ToBytes(made.proto), made.why, made.shardy,
                        functions, names);
}

std::string Explained(const Program& p, const std::string& format) {
  const ExplainFormat as = format == "json"   ? ExplainFormat::kJson
                           : format == "html" ? ExplainFormat::kHtml
                                              : ExplainFormat::kText;
  return Explain(*p.partitioned, p.options.partition.spmd, as);
}

nb::list RunProgram(const Program& p, const std::vector<Array>& inputs,
                    const Deadlines& deadlines) {
  std::vector<Tensor> in = Take(ToTensors(inputs, p.global()));
  RunOptions options = p.options;
  options.deadline = absl::Seconds(deadlines.first);
  std::vector<Tensor> outputs =
      WithoutGil([&] { return RunPartitioned(*p.partitioned, in, options, nullptr); },
                 absl::Seconds(deadlines.second));
  nb::list out;
  for (Tensor& t : outputs) out.append(FromTensor(std::move(t)));
  return out;
}

std::string Propagated(const Request& request) {
  return WithoutGil([&]() -> absl::StatusOr<std::string> {
    SHARDCALL_ASSIGN_OR_RETURN(Module module, request.Read());
    SHARDCALL_ASSIGN_OR_RETURN(const auto p,
                               PropagateShardings(std::move(module), request.Options()));
    SHARDCALL_ASSIGN_OR_RETURN(const Module out,
                               ExportShardings(p->program, p->shardings.sharding));
    return PrintModule(out);
  });
}

// For each result of the program and each of its dimensions, the names of the mesh axes that it is
// sharded over, major to minor. A part of an axis has no name: it and what follows are left out.
using NamesByDim = std::vector<std::vector<std::string>>;
std::vector<NamesByDim> ResultAxes(const Request& request) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<NamesByDim>> {
    SHARDCALL_ASSIGN_OR_RETURN(Module module, request.Read());
    SHARDCALL_ASSIGN_OR_RETURN(const auto p,
                               PropagateShardings(std::move(module), request.Options()));
    std::vector<NamesByDim> out;
    for (const Sharding* s : p->shardings.outputs) {
      NamesByDim& dims = out.emplace_back(s == nullptr ? 0 : s->rank());
      for (size_t d = 0; d < dims.size(); ++d) {
        for (const NamedAxisRef& axis : NameAxes(*s->mesh(), s->dim(static_cast<int>(d)))) {
          if (axis.size != 0) break;  // a part
          dims[d].push_back(axis.name);
        }
      }
    }
    return out;
  });
}

std::string Verified(const Request& request, uint64_t seed, const std::vector<Array>& inputs,
                     const Deadlines& deadlines) {
  Module module = WithoutGil([&] { return request.Read(); });
  std::vector<Tensor> given;
  if (!inputs.empty()) given = Take(ToTensors(inputs, module));
  const auto verify = [&]() -> absl::StatusOr<std::string> {
    SHARDCALL_ASSIGN_OR_RETURN(
        const VerifyResult result,
        Verify(std::move(module), request.Run(absl::Seconds(deadlines.first)), seed,
               std::move(given), nullptr));
    return VerifyJson(result);
  };
  return WithoutGil(verify, absl::Seconds(deadlines.second));
}

std::string CheckedRule(const TargetsRef& targets, const std::string& target,
                        const Request* program, uint64_t seed, bool vjp, double deadline_s) {
  return WithoutGil([&]() -> absl::StatusOr<std::string> {
    absl::optional<Module> module;
    if (program != nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(module, program->Read());
    }
    SHARDCALL_ASSIGN_OR_RETURN(const RuleCheck check,
                               CheckTarget({.target = target,
                                            .program = module.has_value() ? &*module : nullptr,
                                            .seed = seed,
                                            .vjp = vjp,
                                            .deadline = absl::Seconds(deadline_s)},
                                           targets->registry.rules, targets->registry.handlers));
    return RuleCheckJson(check);
  });
}

// What Python's Request is made of.
void InitRequest(Request* r, nb::bytes bytes, std::string name, std::string converter,
                 TargetsRef targets, int64_t num_partitions, bool propagate,
                 std::vector<std::string> allow_replicate, int64_t max_reshard_bytes,
                 const std::string& conflicts, const std::string& cost, int64_t max_memory,
                 const std::string& search, bool strict_partial,
                 std::optional<std::pair<std::vector<bool>, std::vector<bool>>> open) {
  std::optional<OpenEdges> edges;
  if (open.has_value()) edges = {std::move(open->first), std::move(open->second)};
  new (r) Request{.bytes = std::move(bytes),
                  .name = std::move(name),
                  .converter = std::move(converter),
                  .targets = std::move(targets),
                  .num_partitions = num_partitions,
                  .propagate = propagate,
                  .allow_replicate = std::move(allow_replicate),
                  .max_reshard_bytes = max_reshard_bytes,
                  .conflicts = Take(ParseConflictOrder(conflicts)),
                  .cost = Take(ParseCostModel(cost)),
                  .max_memory = max_memory,
                  .search = Take(ParseStateSearch(search)),
                  .strict_partial = strict_partial,
                  .open = std::move(edges)};
}

}  // namespace

void DefinePrograms(nb::module_& m) {
  nb::class_<Array>(m, "Array")
      .def(
          "__init__",
          [](Array* a, std::string type, std::vector<int64_t> dims, Bytes bytes) {
            new (a) Array{std::move(type), std::move(dims), std::move(bytes)};
          },
          "type"_a, "dims"_a, "bytes"_a);
  nb::class_<Request>(m, "Request")
      .def("__init__", InitRequest, "bytes"_a, "name"_a, "converter"_a, "targets"_a,
           "num_partitions"_a, "propagate"_a, "allow_replicate"_a, "max_reshard_bytes"_a,
           "conflicts"_a = "cheapest", "cost"_a = "", "max_memory"_a = 0, "search"_a = "small",
           "strict_partial"_a = false, "open"_a = nb::none());
  nb::class_<Program>(m, "Program")
      .def_prop_ro("num_partitions", &Program::num_partitions)
      .def_ro("called", &Program::called)
      .def_prop_ro("text", [](const Program& p) { return PrintModule(p.local().module); })
      .def("serialize",
           [](const Program& p) {
             return ToBytes(WithoutGil([&] { return WriteModuleProto(p.local().module); }));
           })
      .def("report",
           [](const Program& p) { return ReportJson(*p.partitioned, p.options.partition.spmd); })
      .def("explain", &Explained, "format"_a)
      .def(
          "write_report",
          [](const Program& p, const std::string& folder) {
            Check(pjrt::WriteReport({.report = folder}, *p.partitioned));
          },
          "folder"_a)
      .def(
          "expect",
          [](const Program& p, const std::string& contract) {
            Check(CheckContract(Take(ParseContract(contract)), *p.partitioned));
          },
          "contract"_a)
      .def("inputs", [](const Program& p) { return LeafTypes(ParameterLeaves(p.global())); })
      .def("outputs", [](const Program& p) { return LeafTypes(ResultLeaves(p.global())); })
      .def("run", &RunProgram, "inputs"_a, "deadline_s"_a)
      .def("for_jax", &ForJax, "platform"_a, "known"_a, "asked"_a, "ordinals"_a, "started_calls"_a);
  m.def(
      "looks_like_stablehlo", [](const nb::bytes& b) { return LooksLikeStablehlo(ViewOf(b)); },
      "bytes"_a);
  m.def(
      "write_file",
      [](const std::string& path, const std::string& text) { Check(WriteWholeFile(path, text)); },
      "path"_a, "text"_a);
  m.def("check_options", &CheckOptions, "conflicts"_a, "cost"_a, "search"_a);
  m.def("partition", &PartitionProgram, "request"_a);
  m.def("partition_for_jax", &PartitionForJax, "request"_a, "platform"_a);
  m.def("propagate", &Propagated, "request"_a);
  m.def("result_axes", &ResultAxes, "request"_a);
  m.def(
      "inputs",
      [](const Request& r) {
        return LeafTypes(ParameterLeaves(WithoutGil([&] { return r.Read(); })));
      },
      "request"_a);
  m.def("verify", &Verified, "request"_a, "seed"_a, "inputs"_a, "deadline_s"_a);
  m.def("check_rule", &CheckedRule, "targets"_a, "target"_a, "program"_a.none(), "seed"_a, "vjp"_a,
        "deadline_s"_a);
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
