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
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/sharding/base/status.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace shardcall::inline internal::python {
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

class Served {
 public:
  Served(std::shared_ptr<Targets> targets, const std::string& name)
      : targets_(std::move(targets)),
        callbacks_(Take(targets_->registry.MakePjrtCallbacks(name))) {}
  ~Served() { callbacks_->dtor(callbacks_); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

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
      const nb::gil_scoped_release release;
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

  const std::shared_ptr<Targets> targets_;
  Shardcall_PjrtCallbacks* const callbacks_;
};

// `#sdy.op_sharding_rule<..>` of a call with such operands and results; '' for a target whose
// callbacks say how it shards. E101 without a rule, E111 where it does not fit the call.
std::string SdyRule(const Targets& targets, const std::string& name,
                    const std::string& backend_config, const std::vector<ArrayType>& operands,
                    const std::vector<ArrayType>& results) {
  const TargetRule* const rule = targets.registry.rules.Find(name, backend_config);
  if (rule == nullptr || (rule->level == RuleLevel::kCallbacks && rule->alternatives.empty()) ||
      (rule->level == RuleLevel::kBatchDims && rule->batch_dims == kBatchDimsOfCall)) {
    return "";
  }
  Context context;
  return Take(rule->Instantiate(backend_config, ToShapes(operands, &context),
                                ToShapes(results, &context)))
      .ToSdyText();
}

// A registry with only this target, which is to be gathered.
std::shared_ptr<Targets> GatheringTargets(const std::string& name) {
  auto out = std::make_shared<Targets>();
  Check(out->registry.rules.RegisterBatchPartitionable(name, 0));
  return out;
}

}  // namespace

void DefineServing(nb::module_& m) {
  nb::class_<Served>(m, "Served")
      .def(nb::init<std::shared_ptr<Targets>, std::string>(), "targets"_a, "name"_a)
      .def("propagate", &Served::Propagate)
      .def("infer", &Served::Infer)
      .def("partition", &Served::Partition);
  m.def("gathering_targets", &GatheringTargets, "name"_a);
  m.def("sdy_rule", &SdyRule, "targets"_a, "name"_a, "backend_config"_a, "operands"_a, "results"_a);
  // For the XLA of the plugin whose PJRT_Api* is in the capsule.
  m.def(
      "pass_rule_to_pjrt",
      [](const Targets& targets, const std::string& name, const nb::capsule& c_api) {
        Check(targets.registry.PassToPjrt(name, c_api.data()));
      },
      "targets"_a, "name"_a, "c_api"_a);
}

}  // namespace shardcall::inline internal::python
