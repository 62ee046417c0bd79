// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/partition_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"

namespace shardcall {
namespace {

// "f32[8] [{'x'}]" as "f32[8]" and "[{'x'}]"; a shape alone has no sharding.
std::pair<std::string, std::string> Split(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == text.npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

std::string Annotation(const SpecifiedCall& call, const std::string& sharding) {
  return absl::StrCat("{mesh[", call.mesh, "], ", sharding, "}");
}

// `{mesh['x'=2], [{'x'}]}` without its mesh.
std::string WithoutMesh(const std::string& text) {
  const size_t end = text.find("], ");
  return end == text.npos ? text : text.substr(end + 3, text.size() - end - 4);
}

// The shape of the call, and a get-tuple-element for each result that is annotated.
struct ResultText {
  std::string shape;
  bool wanted = false;
};
ResultText ResultsOf(const SpecifiedCall& call) {
  ResultText out;
  std::vector<std::string> shapes;
  for (const std::string& r : call.results) {
    const auto [shape, sharding] = Split(r);
    shapes.push_back(shape);
    out.wanted = out.wanted || !sharding.empty();
  }
  out.shape = shapes.size() == 1 ? absl::StrCat(shapes[0], " ")
              : shapes.empty()   ? ""
                                 : absl::StrCat("(", absl::StrJoin(shapes, ", "), ") ");
  return out;
}

}  // namespace

std::string ProgramOf(const SpecifiedCall& call) {
  std::string out =
      "HloModule call, allow_spmd_sharding_propagation_to_output={true}\n\nENTRY main {\n";
  std::vector<std::string> names;
  for (const std::string& operand : call.operands) {
    const auto [shape, sharding] = Split(operand);
    names.push_back(absl::StrCat("operand.", names.size()));
    absl::StrAppend(&out, "  ", names.back(), " = ", shape, " parameter(", names.size() - 1, ")",
                    sharding.empty() ? "" : ", sharding=",
                    sharding.empty() ? "" : Annotation(call, sharding), "\n");
  }
  const ResultText results = ResultsOf(call);
  absl::StrAppend(&out, results.wanted ? "  call = " : "  ROOT call = ", results.shape,
                  "custom-call(", absl::StrJoin(names, ", "), "), custom_call_target=\"",
                  absl::CEscape(call.target), "\", api_version=API_VERSION_TYPED_FFI");
  if (call.has_side_effect) absl::StrAppend(&out, ", custom_call_has_side_effect=true");
  if (!call.backend_config.empty()) {
    absl::StrAppend(&out, ", backend_config=", call.backend_config);
  }
  absl::StrAppend(&out, "\n");
  if (results.wanted) {
    std::vector<std::string> parts;
    for (size_t k = 0; k < call.results.size(); ++k) {
      const auto [shape, sharding] = Split(call.results[k]);
      parts.push_back(call.results.size() == 1 ? "call" : absl::StrCat("part.", k));
      if (call.results.size() > 1) {
        absl::StrAppend(&out, "  ", parts.back(), " = ", shape,
                        " get-tuple-element(call), index=", k, "\n");
      }
      if (sharding.empty()) continue;
      absl::StrAppend(&out, "  result.", k, " = ", shape, " custom-call(", parts.back(),
                      "), custom_call_target=\"Sharding\", sharding=", Annotation(call, sharding),
                      "\n");
      parts.back() = absl::StrCat("result.", k);
    }
    absl::StrAppend(&out, "  ROOT results = tuple(", absl::StrJoin(parts, ", "), ")\n");
  }
  absl::StrAppend(&out, "}\n");
  return out;
}

absl::StatusOr<CallPartitioning> PartitionCall(const SpecifiedCall& call,
                                               const TargetRegistry& targets) {
  // Parse the mesh first: it gives the number of devices, whatever the operands name.
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding whole, ParseHloSharding(Annotation(call, "[]")));
  const int64_t devices = whole.named.mesh->num_devices();
  const std::string name = absl::StrCat("call of ", call.target);
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(ProgramOf(call)),
                                         std::make_shared<Context>(), name, &targets));
  module.header.num_partitions = devices;
  module.header.has_num_partitions = true;
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, name, &targets));
  CallPartitioning out;
  PartitionOptions options;
  options.targets = &targets;
  SHARDCALL_ASSIGN_OR_RETURN(out.program, Partition(std::move(module), options));
  for (const Sharding* s : out.program->global->shardings.outputs) {
    if (s == nullptr) {
      out.results.emplace_back("token");
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(const HloSharding text, ToHloShardingV3(*s));
    out.results.push_back(WithoutMesh(text.Print()));
  }
  return out;
}

absl::StatusOr<std::string> CanonicalSharding(const SpecifiedCall& call,
                                              const std::string& sharding) {
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding parsed,
                             ParseHloSharding(Annotation(call, sharding)));
  Context context;
  MeshCollector collector;
  SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(parsed));
  SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes, collector.Finish(context));
  SHARDCALL_ASSIGN_OR_RETURN(const ShardingConstraint constraint,
                             meshes.FromHlo(parsed, static_cast<int>(parsed.named.dims.size())));
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding text,
                             ToHloShardingV3(*ToSharding(context, constraint)));
  return WithoutMesh(text.Print());
}

}  // namespace shardcall
