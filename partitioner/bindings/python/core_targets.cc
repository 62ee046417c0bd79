// SPDX-License-Identifier: Apache-2.0
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
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;

namespace shardcall::inline internal::python {
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
    rules.insert(r->alternatives.empty() ? std::string(RuleLevelName(r->level))
                                         : r->alternatives[0].text.rule);
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

// The result types of a call of the target with these operands, by its rule. E112 if the rule does
// not determine them.
std::vector<ArrayType> ResultTypes(const Targets& targets, const std::string& target,
                                   const std::vector<ArrayType>& operands) {
  Context context;
  const std::vector<const Shape*> shapes = ToShapes(operands, &context);
  ShapeRequest call;
  call.context = &context;
  call.target = target;
  call.operands = shapes;
  const Shape* const result = Take(targets.registry.rules.InferShape(call));
  std::vector<LeafShape> leaves;
  for (int k = 0; k < result->num_leaves(); ++k) leaves.push_back(MakeLeafShape(*result->leaf(k)));
  return LeafTypes(leaves);
}

}  // namespace

void DefineTargets(nb::module_& m) {
  nb::class_<Targets>(m, "Targets")
      .def(nb::new_([](const std::vector<std::string>& plugins,
                       const std::vector<std::string>& manifests) {
             nb::gil_scoped_release release;
             return Take(MakeTargets(plugins, manifests));
           }),
           nb::arg("plugins"), nb::arg("manifests"))
      .def("describe", &Describe)
      .def("result_types", &ResultTypes, nb::arg("target"), nb::arg("operands"))
      .def("text", [](const Targets& t) {
        return DescribeTargets(t.registry.rules, t.registry.handlers, &t.registry.lowerings);
      });
}

}  // namespace shardcall::inline internal::python
