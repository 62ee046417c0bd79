// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <complex>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "partitioner/api/exactness.h"
#include "partitioner/runtime/executor.h"
#include "partitioner/runtime/lower.h"
#include "partitioner/runtime/npz.h"
#include "partitioner/runtime/out_of_memory.h"
#include "partitioner/runtime/float_arrays.h"
#include "sharding/status.h"

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

// Sums of whole numbers beyond this are rounded, so their order counts. (Sums in
// narrower types make the whole program inexact.)
double LargestExact(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kC64: return 0x1p24;
    case ElementType::kF64:
    case ElementType::kC128: return 0x1p53;
    default: return std::numeric_limits<double>::infinity();
  }
}

bool MakesFractions(Opcode op) {
  switch (op) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kCbrt:
    case Opcode::kPower:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
    case Opcode::kTanh:
    case Opcode::kErf:
    case Opcode::kAtan2:
    case Opcode::kAcos:
    case Opcode::kAcosh:
    case Opcode::kAsin:
    case Opcode::kAsinh:
    case Opcode::kAtanh:
    case Opcode::kCosh:
    case Opcode::kSinh:
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad: return true;
    default: return false;
  }
}

bool IsExactTarget(absl::string_view target) {
  return target == "Sharding" || absl::StartsWith(target, "xla.sdy.") ||
         absl::StartsWith(target, "SPMD") || target == "custom_relu" ||
         target == "topk" || target == "sparse_matmul" || target == "nccl_allreduce" ||
         absl::StartsWith(target, "moe_") ||
         target == "annotate_device_placement";
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

bool IsExactProgram(const Module& module) {
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    // Integer division is exact.
    if (MakesFractions(i.opcode) &&
        !(i.opcode == Opcode::kDivide && IsInteger(i.shape->element_type()))) {
      return false;
    }
    if (i.opcode == Opcode::kCustomCall && !IsExactTarget(i.as<CustomCallAttrs>().target)) {
      return false;
    }
    // Sums in a narrow type round once a shard, not once.
    if ((i.opcode == Opcode::kDot || i.opcode == Opcode::kConvolution ||
         i.opcode == Opcode::kReduce || i.opcode == Opcode::kScatter ||
         i.opcode == Opcode::kReduceWindow) &&
        i.shape->IsArray() && IsNarrowFloat(i.shape->element_type())) {
      return false;
    }
  }
  return true;
}

OutputDifference Compare(const Tensor& reference, const Tensor& got, bool exact,
                         bool of_any_size) {
  OutputDifference d;
  d.bitwise = BitwiseEqual(reference, got);
  if (!IsArrayType(reference.type())) {
    d.bitwise = d.ok = true;
    return d;
  }
  if (reference.type() != got.type() || reference.dims() != got.dims()) return d;
  if (!IsFloat(reference.type()) && !IsComplex(reference.type())) {
    d.ok = d.bitwise;
    for (int64_t i = 0; i < reference.num_elements() && !d.bitwise; ++i) {
      const double a = static_cast<double>(IntElement(reference, i));
      const double b = static_cast<double>(IntElement(got, i));
      d.max_abs_diff = std::max(d.max_abs_diff, std::abs(a - b));
      d.largest = std::max(d.largest, std::abs(a));
    }
    return d;
  }
  const std::vector<double> a = Numbers(reference), b = Numbers(got);
  bool same_specials = true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      d.max_abs_diff = std::max(d.max_abs_diff, std::abs(a[i] - b[i]));
      d.largest = std::max(d.largest, std::abs(a[i]));
    } else if (!(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i]) {
      same_specials = false;
    }
  }
  if (!of_any_size && d.largest > LargestExact(reference.type())) exact = false;
  // The sign of zero may differ between a sum of parts and the whole.
  d.ok = same_specials &&
         (exact ? d.max_abs_diff == 0 : d.max_abs_diff <= Tolerance(reference.type()) * d.largest);
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

// Inputs of both signs, if the program computes numbers from them that sums in another
// order would not move further than the comparison allows. Else positive ones: signs
// that cancel and second moments below zero would turn one rounding, which sharding may
// change, into any difference.
absl::StatusOr<Reference> MakeReference(const Module& module, uint64_t seed,
                                        const RunOptions& options) {
  // Of loops that end by chance.
  constexpr int64_t kMostSteps = int64_t{1} << 22;
  constexpr uint64_t kNudge = 1;
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(module), seed);
  absl::StatusOr<ExactResults> both = EvaluateExactly(module, inputs, options.handlers,
                                                      options.deadline, 0, kMostSteps);
  if (both.ok() && both->all()) return Reference{inputs, *std::move(both)};
  const bool late = absl::IsUnimplemented(both.status()) ||
                    absl::IsDeadlineExceeded(both.status()) ||
                    absl::IsResourceExhausted(both.status());
  if (late) return both.status();
  if (both.ok() && AllFinite(both->outputs)) {
    const absl::StatusOr<ExactResults> moved = EvaluateExactly(
        module, inputs, options.handlers, options.deadline, kNudge, kMostSteps);
    bool steady = moved.ok();
    for (size_t k = 0; steady && k < both->outputs.size(); ++k) {
      steady = Compare(both->outputs[k], moved->outputs[k], /*exact=*/false).ok;
    }
    if (steady) return Reference{inputs, *std::move(both)};
  }
  std::vector<Tensor> positive = inputs;
  MakePositive(&positive);
  SHARDCALL_ASSIGN_OR_RETURN(
      ExactResults results,
      EvaluateExactly(module, positive, options.handlers, options.deadline));
  return Reference{std::move(positive), std::move(results)};
}

absl::StatusOr<VerifyResult> VerifyHere(Module module, const RunOptions& options, uint64_t seed,
                                        std::vector<Tensor> given, Communicator* communicator) {
  VerifyResult result;
  std::vector<Tensor> inputs = std::move(given);
  auto unsupported = [&](const absl::Status& status) {
    result.status = VerifyResult::Status::kUnsupported;
    result.reason = std::string(status.message());
    return result;
  };
  const bool manual = HasManualRegion(module);
  std::vector<Tensor> reference;
  std::vector<bool> exact;  // by output
  if (!manual) {
    absl::StatusOr<ExactResults> evaluated;
    if (inputs.empty()) {
      absl::StatusOr<Reference> made = MakeReference(module, seed, options);
      evaluated = made.ok() ? absl::StatusOr<ExactResults>(std::move(made->results))
                            : absl::StatusOr<ExactResults>(made.status());
      if (made.ok()) inputs = std::move(made->inputs);
    } else {
      evaluated = EvaluateExactly(module, inputs, options.handlers, options.deadline);
    }
    if (absl::IsUnimplemented(evaluated.status())) return unsupported(evaluated.status());
    SHARDCALL_RETURN_IF_ERROR(evaluated.status());
    result.exact = evaluated->all();
    reference = std::move(evaluated->outputs);
    exact = std::move(evaluated->exact);
  } else {
    result.exact = IsExactProgram(module);
    if (inputs.empty()) {
      inputs = RandomInputs(ParameterLeaves(module), seed);
      if (!result.exact) MakePositive(&inputs);
    }
  }
  if (options.partition.num_partitions == 1) {
    // The plain evaluator stands for one device: it is compared with itself.
    if (manual) {
      return unsupported(absl::UnimplementedError(
          "a program with manual regions runs over its own devices only"));
    }
    result.num_partitions = 1;
    for (const Tensor& t : reference) result.outputs.push_back(Compare(t, t, true));
    result.reason = "one device: nothing is partitioned";
    return result;
  }
  // The reference of a manual program needs the number of devices, which import
  // finds; so it is lowered first and run after.
  LowerOptions global;
  global.global_mode = true;
  absl::StatusOr<std::shared_ptr<const DeviceProgram>> global_program =
      manual ? Lower(module, global) : nullptr;
  if (absl::IsUnimplemented(global_program.status())) return unsupported(global_program.status());
  SHARDCALL_RETURN_IF_ERROR(global_program.status());

  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  result.num_partitions = program->global->program.num_partitions;
  if (manual) {
    const int n = static_cast<int>(result.num_partitions);
    absl::StatusOr<std::vector<std::vector<Tensor>>> all =
        RunOnThreads(*global_program, std::vector<std::vector<Tensor>>(n, inputs), n,
                     options.handlers, options.deadline, program->global->program.mesh);
    if (absl::IsUnimplemented(all.status())) return unsupported(all.status());
    SHARDCALL_RETURN_IF_ERROR(all.status());
    reference = std::move((*all)[0]);
    exact.assign(reference.size(), result.exact);  // by what its ops can do
  }
  RunOptions checked = options;
  checked.check_replicas = true;
  absl::StatusOr<std::vector<Tensor>> got =
      RunPartitioned(*program, inputs, checked, communicator);
  if (absl::IsUnimplemented(got.status())) return unsupported(got.status());
  if (DiagnosticCode(got.status()) == "E321") {
    result.status = VerifyResult::Status::kMismatch;
    result.reason = std::string(got.status().message());
    return result;
  }
  SHARDCALL_RETURN_IF_ERROR(got.status());
  for (size_t k = 0; k < reference.size(); ++k) {
    result.outputs.push_back(Compare(reference[k], (*got)[k], exact[k], /*of_any_size=*/!manual));
    if (result.outputs.back().ok || !result.reason.empty()) continue;
    result.status = VerifyResult::Status::kMismatch;
    result.reason = absl::StrCat("output ", k, " differs by ", result.outputs.back().max_abs_diff,
                                 ", its largest value is ", result.outputs.back().largest);
  }
  return result;
}

}  // namespace

absl::StatusOr<VerifyResult> Verify(Module module, const RunOptions& options, uint64_t seed,
                                    std::vector<Tensor> given, Communicator* communicator) {
  return WithinMemory(module.header.name, [&] {
    return VerifyHere(std::move(module), options, seed, std::move(given), communicator);
  });
}

}  // namespace shardcall
