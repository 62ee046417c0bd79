// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/verify.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/whole_calls.h"
#include "shardcall/partitioner/exactness/exactness.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/partitioner/spmd/strategies/draws.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

double Tolerance(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kC64:
    case ElementType::kC128: return 1e-6;
    default: return 1e-2;
  }
}

// Sums of whole numbers beyond this are rounded, so their order matters. (Sums in narrower types
// make the whole program inexact.)
double LargestExact(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kC64: return 0x1p24;
    case ElementType::kF64:
    case ElementType::kC128: return 0x1p53;
    default: return std::numeric_limits<double>::infinity();
  }
}

// The elements as doubles; complex ones as pairs.
std::vector<double> Numbers(const Tensor& t) {
  if (!IsComplex(t.type())) return ToDoubles(t);
  std::vector<double> out;
  for (const std::complex<double>& c : ToComplexes(t)) {
    out.push_back(c.real());
    out.push_back(c.imag());
  }
  return out;
}

}  // namespace

OutputDifference Compare(const Tensor& reference, const Tensor& got, bool exact, bool of_any_size,
                         double spread) {
  OutputDifference d;
  d.bitwise = BitwiseEqual(reference, got);
  if (!IsArrayType(reference.type())) {
    d.bitwise = d.ok = true;
    return d;
  }
  if (reference.type() != got.type() || reference.dims() != got.dims()) return d;
  if (!IsFloat(reference.type()) && !IsComplex(reference.type())) {
    d.ok = d.bitwise;
    for (int64_t i = 0; i < reference.num_elements(); ++i) {
      const double a = static_cast<double>(IntElement(reference, i));
      const double b = static_cast<double>(IntElement(got, i));
      d.max_abs_diff = std::max(d.max_abs_diff, std::abs(a - b));
      d.largest = std::max(d.largest, std::abs(a));
    }
    return d;
  }
  const std::vector<double> a = Numbers(reference), b = Numbers(got);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i])) d.largest = std::max(d.largest, std::abs(a[i]));
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      d.max_abs_diff = std::max(d.max_abs_diff, std::abs(a[i] - b[i]));
      d.same_zeros =
          d.same_zeros && (a[i] != 0 || b[i] != 0 || std::signbit(a[i]) == std::signbit(b[i]));
    } else if (!(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i]) {
      d.same_specials = false;
    }
  }
  if (!of_any_size && d.largest > LargestExact(reference.type())) exact = false;
  // Beyond this, numbers say nothing any more.
  constexpr double kMostTolerances = 100;
  const double tolerance = Tolerance(reference.type()) * d.largest;
  const double most = exact ? 0 : std::clamp(spread, tolerance, kMostTolerances * tolerance);
  d.ok = d.same_specials && d.max_abs_diff <= most && (d.same_zeros || !exact);
  return d;
}

std::string VerifyJson(const VerifyResult& result) {
  nlohmann::ordered_json j;
  j["status"] = result.status == VerifyResult::Status::kOk         ? "ok"
                : result.status == VerifyResult::Status::kMismatch ? "mismatch"
                                                                   : "unsupported";
  j["num_partitions"] = result.num_partitions;
  j["exact"] = result.exact;
  j["outputs"] = nlohmann::ordered_json::array();
  for (const OutputDifference& d : result.outputs) {
    j["outputs"].push_back({{"max_abs_diff", d.max_abs_diff},
                            {"largest", d.largest},
                            {"bitwise", d.bitwise},
                            {"ok", d.ok}});
  }
  j["reason"] = result.reason;
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

namespace {

bool AllFinite(const std::vector<Tensor>& outputs) {
  for (const Tensor& t : outputs) {
    if (!IsFloat(t.type()) && !IsComplex(t.type())) continue;
    for (double x : Numbers(t)) {
      if (!std::isfinite(x)) return false;
    }
  }
  return true;
}

// A reference with inputs for it.
struct Reference {
  std::vector<Tensor> inputs;
  ExactResults results;
};

// Inputs of both signs, unless perturbed sums move an output further than the comparison allows.
// Else positive ones: cancelling signs and negative second moments could turn one rounding
// difference, which sharding may cause, into an arbitrarily large one.
absl::StatusOr<Reference> MakeReference(
    const std::vector<LeafShape>& parameters, uint64_t seed, const ExactOptions& options,
    absl::FunctionRef<absl::StatusOr<ExactResults>(std::vector<Tensor>, const ExactOptions&)>
        evaluate) {
  // For loops whose end depends on the inputs.
  constexpr int64_t kMostSteps = int64_t{1} << 22;
  ExactOptions limited = options;
  limited.most_steps = kMostSteps;
  const std::vector<Tensor> inputs = RandomInputs(parameters, seed);
  absl::StatusOr<ExactResults> both = evaluate(inputs, limited);
  if (both.ok() && both->all()) return Reference{inputs, *std::move(both)};
  const bool late = absl::IsUnimplemented(both.status()) ||
                    absl::IsDeadlineExceeded(both.status()) ||
                    absl::IsResourceExhausted(both.status());
  if (late) return both.status();
  if (both.ok() && AllFinite(both->outputs)) {
    limited.nudge = 1;
    const absl::StatusOr<ExactResults> moved = evaluate(inputs, limited);
    bool steady = moved.ok();
    for (size_t k = 0; steady && k < both->outputs.size(); ++k) {
      steady = Compare(both->outputs[k], moved->outputs[k], /*exact=*/false).ok;
    }
    if (steady) return Reference{inputs, *std::move(both)};
  }
  std::vector<Tensor> positive = inputs;
  MakePositive(&positive);
  SHARDCALL_ASSIGN_OR_RETURN(ExactResults results, evaluate(positive, options));
  return Reference{std::move(positive), std::move(results)};
}

bool DrawsNumbers(const Module& module) {
  for (int k = 0; k < module.num_instructions(); ++k) {
    if (HasTrait(module.instr(InstrId(k)).opcode, kDrawsNumbers)) return true;
  }
  return false;
}

// One device: the plain evaluator is the one-device program, so it is compared with itself.
VerifyResult OnOneDevice(const ExactResults& reference, VerifyResult result) {
  result.num_partitions = 1;
  for (const Tensor& t : reference.outputs) result.outputs.push_back(Compare(t, t, true));
  result.reason = "one device: nothing is partitioned";
  return result;
}

std::string HowItDiffers(const OutputDifference& d) {
  if (!d.same_specials) return "in where it is NaN or infinite";
  if (d.max_abs_diff == 0 && !d.same_zeros) return "in the sign of a zero";
  return absl::StrCat("by ", d.max_abs_diff);
}

// Whether an op computes with sums that are not reduced yet. Parts may then add up to a zero of the
// other sign: -(1 - 1) is -0, and (-1) + 1 is +0.
bool ComputesWithSums(const PartitionedProgram& program) {
  const Module& module = program.global->program.module;
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Decision* const d = program.plan.ops[k].decision;
    if (d == nullptr || !HasTrait(module.instr(InstrId(k)).opcode, kElementwise | kBilinear)) {
      continue;
    }
    const bool sums = absl::c_any_of(d->operands, [](const Sharding* s) {
      return s != nullptr && !s->partial().empty() && s->partial_op() == PartialOp::kSum;
    });
    if (sums) return true;
  }
  return false;
}

// Whether a reduction multiplies complex numbers, whose parts are sums of products: in another
// order these are the same, but zeros may have other signs.
bool ReducesComplexProducts(const Module& module) {
  const auto multiplies = [&](CompId c) {
    return absl::c_any_of(module.comp(c).instructions, [&](InstrId id) {
      const Instruction& i = module.instr(id);
      return HasTrait(i.opcode, kBilinear) && i.shape->IsArray() &&
             IsComplex(i.shape->element_type());
    });
  };
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    if (HasTrait(i.opcode, kAppliesToElements) &&
        absl::c_any_of(CalledComputations(module, i), multiplies)) {
      return true;
    }
  }
  return false;
}

// The largest of the tolerances of the types that a program computes in.
double WidestTolerance(const Module& module) {
  double widest = 0;
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Shape& shape = *module.instr(InstrId(k)).shape;
    for (int leaf = 0; leaf < shape.num_leaves(); ++leaf) {
      const ElementType type = shape.leaf(leaf)->element_type();
      if (IsFloat(type) || IsComplex(type)) widest = std::max(widest, Tolerance(type));
    }
  }
  return widest;
}

// How outputs are compared. `zeros`: the signs of those that are exact count. `widest`: see
// WidestTolerance, for what is computed in a narrower type than that of an output.
struct Strictness {
  bool zeros = true;
  double widest = 0;
};

Strictness StrictnessFor(const PartitionedProgram& program) {
  const Module& module = program.global->program.module;
  return {.zeros = !ComputesWithSums(program) && !ReducesComplexProducts(module),
          .widest = WidestTolerance(module)};
}

// Adds the comparison of each output. The first one that differs is the reason. `moved`: what the
// program computes if inexact sums are perturbed; null: not known.
VerifyResult CompareOutputs(const ExactResults& want, absl::Span<const Tensor> got,
                            const Strictness& strictness, const ExactResults* moved,
                            VerifyResult result) {
  for (size_t k = 0; k < want.outputs.size(); ++k) {
    double spread = 0;
    if (moved != nullptr && !want.exact[k]) {
      constexpr double kMore = 2;
      spread = kMore * Compare(want.outputs[k], moved->outputs[k], /*exact=*/false).max_abs_diff;
    }
    result.outputs.push_back(
        Compare(want.outputs[k], got[k], want.exact[k], /*of_any_size=*/true, spread));
    OutputDifference& d = result.outputs.back();
    const bool only_zeros = !d.same_zeros && d.same_specials && d.max_abs_diff == 0;
    const double most = std::min(spread, strictness.widest * d.largest);
    d.ok = d.ok || (only_zeros && !strictness.zeros) || (d.same_specials && d.max_abs_diff < most);
    if (d.ok || !result.reason.empty()) continue;
    result.status = VerifyResult::Status::kMismatch;
    result.reason = absl::StrCat("output ", k, " differs ", HowItDiffers(d),
                                 ", its largest value is ", d.largest);
  }
  return result;
}

// The same, where `moved` is evaluated if an output that is not exact differs.
VerifyResult CompareWithSpread(const ExactResults& want, absl::Span<const Tensor> got,
                               const Strictness& strictness,
                               absl::FunctionRef<absl::StatusOr<ExactResults>()> moved,
                               const VerifyResult& result) {
  VerifyResult compared = CompareOutputs(want, got, strictness, nullptr, result);
  if (compared.status == VerifyResult::Status::kOk || compared.exact) return compared;
  const absl::StatusOr<ExactResults> changed = moved();
  return changed.ok() ? CompareOutputs(want, got, strictness, &*changed, result) : compared;
}

VerifyResult Unsupported(VerifyResult result, const absl::Status& status) {
  result.status = VerifyResult::Status::kUnsupported;
  result.reason = std::string(status.message());
  return result;
}

absl::StatusOr<VerifyResult> VerifyHere(Module module, const RunOptions& options, uint64_t seed,
                                        std::vector<Tensor> given, Communicator* communicator) {
  VerifyResult result;
  const auto unsupported = [&](const absl::Status& status) { return Unsupported(result, status); };
  const bool manual = HasManualRegion(module);
  const std::vector<LeafShape> parameters = ParameterLeaves(module);
  SHARDCALL_ASSIGN_OR_RETURN(const absl::optional<Module> whole,
                             WithWholeCalls(module, options.partition, options.handlers));
  const absl::StatusOr<ExactEvaluator> evaluator =
      ExactEvaluator::Create(whole.has_value() ? *whole : module, manual);
  if (absl::IsUnimplemented(evaluator.status())) return unsupported(evaluator.status());
  SHARDCALL_RETURN_IF_ERROR(evaluator.status());

  Reference reference;
  int reference_devices = 1;
  const BaseMesh* reference_mesh = nullptr;
  ExactOptions how{.handlers = options.handlers, .deadline = options.deadline};
  const auto evaluate = [&](std::vector<Tensor> inputs, const ExactOptions& with) {
    return evaluator->Run(std::move(inputs), with, reference_devices, reference_mesh);
  };
  const auto make_reference = [&]() -> absl::Status {
    if (given.empty()) {
      SHARDCALL_ASSIGN_OR_RETURN(reference, MakeReference(parameters, seed, how, evaluate));
    } else {
      SHARDCALL_ASSIGN_OR_RETURN(reference.results, evaluate(given, how));
      reference.inputs = std::move(given);
    }
    result.exact = reference.results.all();
    return absl::OkStatus();
  };
  // These programs are partitioned first, which gives the number of devices and the device that
  // draws each random number.
  const bool partition_first =
      manual || (options.partition.num_partitions != 1 && DrawsNumbers(module));
  if (!partition_first) {
    const absl::Status status = make_reference();
    if (absl::IsUnimplemented(status)) return unsupported(status);
    SHARDCALL_RETURN_IF_ERROR(status);
  }
  if (options.partition.num_partitions == 1) {
    if (manual) {
      return unsupported(
          absl::UnimplementedError("a program with manual regions runs over its own devices only"));
    }
    return OnOneDevice(reference.results, std::move(result));
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  result.num_partitions = program->global->program.num_partitions;
  if (partition_first) {
    const Program& global = program->global->program;
    how.draws = std::make_shared<const absl::flat_hash_map<std::string, std::vector<int>>>(
        DrawingDevices(global));
    if (manual) {
      reference_devices = static_cast<int>(result.num_partitions);
      reference_mesh = global.mesh;
    }
    const absl::Status status = make_reference();
    if (absl::IsUnimplemented(status)) return unsupported(status);
    SHARDCALL_RETURN_IF_ERROR(status);
  }
  RunOptions checked = options;
  checked.check_replicas = true;
  checked.full_precision = true;
  absl::StatusOr<std::vector<Tensor>> got =
      RunPartitioned(*program, reference.inputs, checked, communicator);
  if (absl::IsUnimplemented(got.status())) return unsupported(got.status());
  if (DiagnosticCode(got.status()) == "E321") {
    result.status = VerifyResult::Status::kMismatch;
    result.reason = std::string(got.status().message());
    return result;
  }
  SHARDCALL_RETURN_IF_ERROR(got.status());
  how.nudge = 1;
  const auto moved = [&] { return evaluate(reference.inputs, how); };
  return CompareWithSpread(reference.results, *got, StrictnessFor(*program), moved, result);
}

}  // namespace

absl::StatusOr<VerifyResult> Verify(Module module, const RunOptions& options, uint64_t seed,
                                    std::vector<Tensor> given, Communicator* communicator) {
  const std::string name(module.header.name);  // the module is moved from when this is printed
  return WithinMemory(name, [&] {
    return VerifyHere(std::move(module), options, seed, std::move(given), communicator);
  });
}

}  // namespace shardcall
