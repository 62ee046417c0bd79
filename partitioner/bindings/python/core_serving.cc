// SPDX-License-Identifier: Apache-2.0
// A target's rule for XLA's own partitioner: the three callbacks that jaxlib takes, over serialised
// messages, and the rule as Shardy's text.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/bindings/python/interpreter.h"
#include "shardcall/partitioner/bindings/xla/asked_call.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/bindings/xla/pjrt_serving.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

// Values from Python; the structs point into this object.
class Values {
 public:
  Values(const std::vector<nb::bytes>& shapes, const nb::list& shardings) : shapes_(shapes) {
    for (nb::handle s : shardings) shardings_.push_back(nb::borrow(s));
    if (shapes_.size() != shardings_.size()) throw nb::value_error("as many shardings as shapes");
    for (size_t k = 0; k < shapes_.size(); ++k) {
      Shardcall_PjrtAval aval = {ToC(shapes_[k]), !shardings_[k].is_none(), {}};
      if (aval.has_sharding) aval.sharding = ToC(nb::borrow<nb::bytes>(shardings_[k]));
      avals_.push_back(aval);
    }
  }
  static Shardcall_PjrtString ToC(const nb::bytes& b) { return {b.c_str(), b.size()}; }
  Shardcall_PjrtAval* data() { return avals_.data(); }
  size_t size() const { return avals_.size(); }

 private:
  std::vector<nb::bytes> shapes_;
  std::vector<nb::object> shardings_;
  std::vector<Shardcall_PjrtAval> avals_;
};

// Callbacks for the calls of a target that are like the one in `like`, StableHLO as bytecode;
// empty: for those without layouts, aliases and side effects. E101 for a target without a rule.
Shardcall_PjrtCallbacks* MakeCallbacks(const std::shared_ptr<Targets>& targets,
                                       const std::string& name, const nb::bytes& like) {
  PjrtTarget target = {.name = name, .rules = {targets, &targets->registry.rules}};
  if (like.size() > 0) {
    target.like = std::make_shared<const Module>(
        Take(ReadStablehloBytecode(ViewOf(like), std::make_shared<Context>())));
  }
  return Take(NewPjrtCallbacks(std::move(target)));
}

class Served {
 public:
  Served(const std::shared_ptr<Targets>& targets, const std::string& name, const nb::bytes& like)
      : callbacks_(MakeCallbacks(targets, name, like)) {}
  ~Served() { callbacks_->dtor(callbacks_); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  bool side_effects() const { return callbacks_->can_side_effecting_have_replicated_sharding; }
  nb::bytes Propagate(const nb::bytes& sharding, const nb::bytes& shape, const nb::bytes& config) {
    Shardcall_PjrtPropagateArgs args = {};
    args.backend_config = Values::ToC(config);
    args.result_shape = Values::ToC(shape);
    args.result_sharding = Values::ToC(sharding);
    return Ask(callbacks_->propagate_user_sharding, &args,
               [&] { return ToBytes(View(args.result_sharding)); });
  }
  nb::object Infer(const std::vector<nb::bytes>& shapes, const nb::list& shardings,
                   const nb::bytes& shape, const nb::bytes& config) {
    Values values(shapes, shardings);
    Shardcall_PjrtInferArgs args = {};
    args.num_args = values.size();
    args.op_args = values.data();
    args.result_shape = Values::ToC(shape);
    args.backend_config = Values::ToC(config);
    return Ask(callbacks_->infer_sharding, &args, [&]() -> nb::object {
      if (!args.has_result_sharding) return nb::none();
      return ToBytes(View(args.result_sharding));
    });
  }
  nb::tuple Partition(const std::vector<nb::bytes>& shapes, const nb::list& shardings,
                      const nb::bytes& shape, const nb::bytes& sharding, const nb::bytes& config) {
    Values values(shapes, shardings);
    Shardcall_PjrtPartitionArgs args = {};
    args.num_args = values.size();
    args.op_args = values.data();
    args.op_result = {Values::ToC(shape), true, Values::ToC(sharding)};
    args.backend_config = Values::ToC(config);
    return Ask(callbacks_->partition, &args, [&] {
      nb::list operands;
      for (size_t k = 0; k < values.size(); ++k)
        operands.append(ToBytes(View(args.args_sharding[k])));
      return nb::make_tuple(ToBytes(View(args.mlir_module)), operands,
                            ToBytes(View(args.result_sharding)));
    });
  }

 private:
  // Releases the GIL: rules may have Python callbacks.
  template <typename Args, typename Read>
  auto Ask(void (*function)(Shardcall_PjrtCallbacks*, Args*), Args* args, const Read& read)
      -> decltype(read()) {
    {
      const GilRelease release;
      function(callbacks_, args);
    }
    const absl::Cleanup cleanup = [args] {
      if (args->header.cleanup_fn != nullptr) args->header.cleanup_fn(args->header.data);
    };
    if (args->header.has_error) {
      throw StatusError{
          absl::Status(static_cast<absl::StatusCode>(args->header.code), View(args->header.error))};
    }
    return read();
  }

  Shardcall_PjrtCallbacks* const callbacks_;
};

// `#sdy.op_sharding_rule<..>` of the call in `like`, as of MakeCallbacks; '' without results, and
// for a target whose callbacks say how it shards. E101 without a rule, E111 where it does not fit
// the call.
std::string SdyRule(const Targets& targets, const std::string& name, const nb::bytes& like) {
  const Module module = Take(ReadStablehloBytecode(ViewOf(like), std::make_shared<Context>()));
  const InstrId id = CallIn(module, name);
  SHARDCALL_CHECK(id.valid());
  const Instruction& call = module.instr(id);
  if (call.shape->num_leaves() == 0) return "";  // Shardy's text of such a rule does not parse
  const TargetRule* const rule = targets.registry.rules.Find(name, call.backend_config);
  if (rule == nullptr || (rule->level == RuleLevel::kCallbacks && rule->alternatives.empty()) ||
      (rule->level == RuleLevel::kBatchDims && rule->batch_dims == kBatchDimsOfCall)) {
    return "";
  }
  std::vector<const Shape*> operands, results;
  for (InstrId x : module.operands(id)) operands.push_back(module.instr(x).shape->bare());
  for (int k = 0; k < call.shape->num_leaves(); ++k) {
    results.push_back(call.shape->leaf(k)->bare());
  }
  return Take(rule->Instantiate(call.backend_config, operands, results)).ToSdyText();
}

}  // namespace

void DefineServing(nb::module_& m) {
  nb::class_<Served>(m, "Served")
      .def(nb::init<std::shared_ptr<Targets>, std::string, nb::bytes>(), "targets"_a, "name"_a,
           "like"_a)
      .def_prop_ro("side_effects", &Served::side_effects)
      .def("propagate", &Served::Propagate)
      .def("infer", &Served::Infer)
      .def("partition", &Served::Partition);
  m.def("sdy_rule", &SdyRule, "targets"_a, "name"_a, "like"_a);
  // For the XLA of the plugin whose PJRT_Api* is in the capsule, where the calls have the name
  // `as`.
  m.def(
      "pass_rule_to_pjrt",
      [](const std::shared_ptr<Targets>& targets, const std::string& name, const nb::bytes& like,
         const std::string& as, const nb::capsule& c_api) {
        Shardcall_PjrtCallbacks* const callbacks = MakeCallbacks(targets, name, like);
        const absl::Status status = RegisterPartitionerWithPjrt(c_api.data(), as, callbacks);
        if (!status.ok()) callbacks->dtor(callbacks);
        Check(status);
      },
      "targets"_a, "name"_a, "like"_a, "as"_a, "c_api"_a);
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
