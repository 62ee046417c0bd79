// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <set>

#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/custom_call/targets/jaxlib_targets.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

// The shipped targets, then those of plugin files, of manifests given as text, and of the process's
// registrations.
absl::StatusOr<std::shared_ptr<Targets>> MakeTargets(const std::vector<std::string>& plugins,
                                                     const std::vector<std::string>& manifests) {
  auto out = std::make_shared<Targets>();
  Registry& r = out->registry;
  SHARDCALL_RETURN_IF_ERROR(RegisterInspectSharding(r.rules));
  SHARDCALL_RETURN_IF_ERROR(pjrt::FillRegistry({.plugins = plugins}, &r));
  for (const std::string& manifest : manifests) {
    SHARDCALL_RETURN_IF_ERROR(LoadManifest(manifest, "rules", &r.rules, &r.handlers, &r.lowerings));
  }
  SHARDCALL_RETURN_IF_ERROR(AddRegisteredHandlers(&r.handlers));
  SHARDCALL_RETURN_IF_ERROR(AddFrameworkTargets(&r.rules));
  return out;
}

// name -> ([forms of its rule], [platforms with a kernel], [sources]).
using Described = std::map<std::string, std::array<std::set<std::string>, 3>>;

nb::dict Describe(const Targets& targets) {
  Described found;
  for (const TargetRule* r : targets.registry.rules.List()) {
    auto& [rules, platforms, sources] = found[r->target];
    if (r->alternatives.empty()) rules.insert(std::string(RuleLevelName(r->level)));
    for (size_t k = 0; k < r->num_given; ++k) rules.insert(r->alternatives[k].text.rule);
    sources.insert(r->source);
  }
  for (const HandlerEntry* h : targets.registry.handlers.List()) {
    auto& [rules, platforms, sources] = found[h->target];
    platforms.insert(h->platform);
    sources.insert(h->source);
  }
  nb::dict out;
  for (const auto& [name, parts] : found) {
    nb::list lists;
    for (const std::set<std::string>& part : parts) {
      nb::list list;
      for (const std::string& text : part) list.append(text);
      lists.append(list);
    }
    out[name.c_str()] = lists;
  }
  return out;
}

// The result types of a call of the target with these operands and attributes, by its rule. E112 if
// the rule does not determine them.
std::vector<ArrayType> ResultTypes(const Targets& targets, const std::string& target,
                                   const std::string& backend_config,
                                   const std::vector<ArrayType>& operands) {
  Context context;
  const std::vector<const Shape*> shapes = ToShapes(operands, &context);
  ShapeRequest call;
  call.context = &context;
  call.target = target;
  call.backend_config = backend_config;
  call.operands = shapes;
  const Shape* const result = Take(targets.registry.rules.InferShape(call));
  std::vector<LeafShape> leaves;
  for (int k = 0; k < result->num_leaves(); ++k) leaves.push_back(MakeLeafShape(*result->leaf(k)));
  return LeafTypes(leaves);
}

// Whether vmap over the operands that `batched` names may make one call of the target, by its rule;
// `operands` and `results` are those of the call without the batch.
bool RuleTakesBatch(const Targets& targets, const std::string& target,
                    const std::string& backend_config, const std::vector<ArrayType>& operands,
                    const std::vector<ArrayType>& results, const std::vector<bool>& batched) {
  const TargetRule* const rule = targets.registry.rules.Find(target, backend_config);
  if (rule == nullptr) return false;
  Context context;
  return TakesBatch(*rule, backend_config, ToShapes(operands, &context),
                    ToShapes(results, &context), batched);
}

// name -> how a call of the target of jaxlib is partitioned, in words.
std::map<std::string, std::string> TargetsOfJaxlib() {
  std::map<std::string, std::string> out;
  for (const JaxlibTarget& target : JaxlibTargets()) {
    for (std::string& name : JaxlibTargetNames(target)) {
      out.emplace(std::move(name), JaxlibTargetText(target));
    }
  }
  return out;
}

}  // namespace

void DefineTargets(nb::module_& m) {
  m.def("jaxlib_targets", &TargetsOfJaxlib);
  nb::class_<Targets>(m, "Targets")
      .def(nb::new_([](const std::vector<std::string>& plugins,
                       const std::vector<std::string>& manifests) {
             GilRelease release;
             return Take(MakeTargets(plugins, manifests));
           }),
           nb::arg("plugins"), nb::arg("manifests"))
      .def("describe", &Describe)
      .def("result_types", &ResultTypes, nb::arg("target"), nb::arg("backend_config"),
           nb::arg("operands"))
      .def("takes_batch", &RuleTakesBatch, nb::arg("target"), nb::arg("backend_config"),
           nb::arg("operands"), nb::arg("results"), nb::arg("batched"))
      .def("text", [](const Targets& t) {
        return DescribeTargets(t.registry.rules, t.registry.handlers, &t.registry.lowerings);
      });
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
