// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/call_sizes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/check/type_tries.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr size_t kMostEnumerated = 6;

bool OneWidth(const std::vector<ElementType>& types) {
  return std::all_of(types.begin(), types.end(), [&](ElementType t) {
    return ElementTypeBytes(t) == ElementTypeBytes(types[0]);
  });
}

// The error's text without its own fix.
std::string WithoutFix(std::string said) {
  const size_t fix = said.find(". Fix: ");
  if (fix == said.npos) return said;
  return said.erase(fix, std::min(said.find('\n', fix), said.size()) - fix);
}

}  // namespace

CallSizes::CallSizes(const CheckedCall& call, uint64_t seed, const TrialOptions& options,
                     RuleCheck* out)
    : call_(call), seed_(seed), options_(options), out_(*out) {
  for (size_t f = 0; f < call.rule.factors.size(); ++f) linked_.push_back({static_cast<int>(f)});
}

absl::Status CallSizes::Find() {
  Sizes given;
  std::vector<int> open;
  for (const Factor& f : call_.rule.factors) {
    if (f.size == kOpenSize) open.push_back(static_cast<int>(given.size()));
    given.push_back(f.size);
  }
  std::vector<Sizes> tries = !options_.inputs.empty() ? std::vector<Sizes>{given}
                             : open.empty()           ? GivenSizes(given)
                                                      : OpenSizes(given, open);
  if (options_.inputs.empty()) {
    for (Sizes& sizes : tries) call_.Relate(&sizes);
  } else {
    SHARDCALL_RETURN_IF_ERROR(CheckInputs(given));
  }
  Answers said;
  std::string without_result;  // what it says of calls without one
  const std::vector<std::vector<ElementType>> all_types = TypesToTry(call_);
  for (const std::vector<ElementType>& types : all_types) {
    // A handler that accesses memory outside of its buffers probably does not check types. Then
    // types of other widths would hide the fault, so go on only if all have one width.
    if (said.fault.has_value() && !OneWidth(types)) continue;
    call_.types = types;
    bool taken = TakesOneOf(tries, /*likeliest=*/types == all_types[0], &said);
    // A handler without results does not crash for one that it does not expect.
    const bool crashed =
        said.fault.has_value() && said.fault->result.outcome == TrialOutcome::kCrashed;
    if (!taken && call_.may_lack_result && !crashed && !faulty_) {
      taken = TakesWithoutResult(tries, &without_result);
    }
    if (taken) {
      if (open.empty() && options_.inputs.empty()) FillEmpty();
      return absl::OkStatus();
    }
    if (faulty_) return absl::OkStatus();
  }
  const Answer& last = said.fault.has_value() ? *said.fault : *said.refusal;
  call_.types = last.types;
  if (said.fault.has_value()) {
    ReportHandler(last.sizes, last.result);
    return absl::OkStatus();
  }
  const bool tried_given = std::count(tries.begin(), tries.end(), given) > 0;
  return Refused(last, without_result, tried_given);
}

bool CallSizes::TakesOneOf(const std::vector<Sizes>& tries, bool likeliest, Answers* said) {
  takes_.clear();
  for (const Sizes& sizes : tries) {
    base_ = sizes;
    Answer now{{}, call_.types, sizes};
    if (Takes(sizes, &now.result)) return true;
    if (faulty_) return false;
    // The first types are the likeliest, so a fault with them is the most informative.
    const bool refused =
        now.result.outcome == TrialOutcome::kRefused || now.result.outcome == TrialOutcome::kNoCall;
    if (!refused && !said->fault.has_value()) said->fault = now;
    if (likeliest || !said->refusal.has_value()) said->refusal = now;
  }
  return false;
}

bool CallSizes::TakesWithoutResult(const std::vector<Sizes>& tries, std::string* why) {
  CheckedCall with_result = call_;
  call_.DropResult();
  Answers said;
  if (TakesOneOf(tries, /*likeliest=*/false, &said)) return true;
  // A handler of one result that is given none may do anything, which is no fault of its own.
  if (why->empty() && !said.fault.has_value() && !faulty_) *why = said.refusal->result.message;
  call_ = std::move(with_result);
  return false;
}

absl::Status CallSizes::Refused(const Answer& last, const std::string& without_result,
                                bool tried_given) const {
  std::string fix = absl::StrCat(
      "Give a program with a call that it takes: shardcall check-rule CALL.hlo --target=",
      call_.target);
  if (call_.of_program) {
    fix = tried_given ? "Give the program's call the attributes, layouts and aliases that the "
                        "handler asks for (output_to_operand_aliasing; in JAX "
                        "input_output_aliases)"
                      : "Give a program whose call has smaller arrays";
  }
  std::string says = WithoutFix(last.result.message);
  if (!without_result.empty() && WithoutFix(without_result) != says) {
    absl::StrAppend(&says, "; of a call without results: ", WithoutFix(without_result));
  }
  return ToStatus({.code = "E190",
                   .message = absl::StrCat("the handler of \"", call_.target,
                                           "\" takes no call that was tried; it says: ", says),
                   .found = call_.SignatureText(last.sizes),
                   .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

void CallSizes::FillEmpty() {
  Sizes open_sizes = base_;
  std::vector<int> open;
  for (size_t f = 0; f < base_.size(); ++f) {
    if (base_[f] != 0) continue;
    open_sizes[f] = kOpenSize;
    open.push_back(static_cast<int>(f));
  }
  if (open.empty()) return;
  empty_ = base_;
  for (Sizes& sizes : OpenSizes(open_sizes, open)) {
    call_.Relate(&sizes);
    if (!Takes(sizes)) continue;
    base_ = sizes;
    return;
  }
}

// Sizes that are multiples of one another keep their ratios: they are divided by their common
// divisors until the least is at most 8. Other sizes are reduced to at most 8, and so are all if
// the ratios are too large.
std::vector<CallSizes::Sizes> CallSizes::GivenSizes(const Sizes& given) const {
  constexpr int64_t kSmall = 8;
  Sizes less = given;
  std::vector<bool> done(given.size());
  for (size_t f = 0; f < given.size(); ++f) {
    if (done[f] || given[f] < 2) continue;
    std::vector<size_t> group = {f};
    done[f] = true;
    for (size_t k = 0; k < group.size(); ++k) {
      const int64_t here = given[group[k]];
      for (size_t other = 0; other < given.size(); ++other) {
        if (done[other] || given[other] < 2) continue;
        if (given[other] % here != 0 && here % given[other] != 0) continue;
        done[other] = true;
        group.push_back(other);
      }
    }
    int64_t common = 0, least = given[f];
    for (size_t g : group) {
      common = std::gcd(common, given[g]);
      least = std::min(least, given[g]);
    }
    int64_t by = 1;
    for (int64_t d = 2; d <= common && least / by > kSmall; ++d) {
      if (common % d == 0) by = d;
    }
    for (size_t g : group) {
      less[g] = group.size() == 1 ? std::min(given[g], kSmall) : given[g] / by;
    }
  }
  if (!IsTooLarge(less)) {
    return IsTooLarge(given) ? std::vector<Sizes>{less} : std::vector<Sizes>{less, given};
  }
  Sizes small = given;
  for (int64_t& s : small) s = std::min(s, kSmall);
  return {small};
}

std::vector<CallSizes::Sizes> CallSizes::OpenSizes(const Sizes& given,
                                                   const std::vector<int>& open) const {
  std::vector<Sizes> tries;
  for (int64_t all : {0, 4, 8, 16, 64}) {
    Sizes sizes = given;
    int64_t next = 4;
    for (int64_t& s : sizes) {
      if (s == kOpenSize) s = all > 0 ? all : next;
      next += 2;
    }
    tries.push_back(std::move(sizes));
  }
  // Sizes that differ by one, as for bidiagonal matrices or half spectra.
  for (uint32_t bits = 1; open.size() <= kMostEnumerated && bits + 1 < 1u << open.size(); ++bits) {
    Sizes sizes = given;
    for (size_t k = 0; k < open.size(); ++k) sizes[open[k]] = (bits >> k & 1) != 0 ? 3 : 4;
    tries.push_back(std::move(sizes));
  }
  return tries;
}

CallSizes::Sizes CallSizes::With(int factor, int64_t size) const {
  Sizes sizes = base_;
  for (int f : linked_[factor]) sizes[f] = size;
  bool fits = true;
  for (const CheckedCall::Related& r : call_.related) {
    if (std::count(linked_[factor].begin(), linked_[factor].end(), r.factor) == 0) continue;
    const int64_t of = (size - r.plus) / r.times;
    if (of < 1 || r.times * of + r.plus != size) {
      fits = false;  // such a call does not exist
    } else {
      sizes[r.of] = of;
    }
  }
  if (fits) call_.Relate(&sizes);
  return sizes;
}

CallSizes::Sizes CallSizes::Shard(Sizes whole, int factor, int64_t tile) const {
  for (int f : linked_[factor]) whole[f] = tile;
  return whole;
}

bool CallSizes::Takes(const Sizes& sizes, TrialResult* why) {
  if (faulty_) return false;
  const auto [it, inserted] = takes_.try_emplace(sizes);
  if (inserted) {
    it->second = IsTooLarge(sizes)
                     ? TrialResult{TrialOutcome::kRefused,
                                   absl::StrCat("more than ", kMostElements, " elements")}
                 : !HasInputs(sizes)
                     ? TrialResult{TrialOutcome::kRefused, "no element is in its declared range"}
                     : HandlerTakes(call_, sizes, options_);
    if (it->second.outcome == TrialOutcome::kLate) ReportHandler(sizes, it->second);
  }
  if (why != nullptr) *why = it->second;
  return it->second.outcome == TrialOutcome::kHolds;
}

bool CallSizes::IsTooLarge(const Sizes& sizes) const {
  for (int t = 0; t < call_.num_tensors(); ++t) {
    double n = 1;
    for (int64_t d : call_.Dims(t, sizes)) n *= static_cast<double>(d);
    if (n > kMostElements) return true;
  }
  return false;
}

bool CallSizes::HasInputs(const Sizes& sizes) const {
  const auto at = [&](const CheckedCall::Related& r) {
    return (r.of < 0 ? 0 : r.times * sizes[r.of]) + r.plus;
  };
  for (const CheckedCall::Range& range : call_.ranges) {
    if (at(range.low) < at(range.high)) continue;
    const std::vector<int64_t> dims = call_.Dims(range.operand, sizes);
    if (std::count(dims.begin(), dims.end(), 0) == 0) return false;
  }
  return true;
}

bool CallSizes::HasResults(const CheckedCall& call, absl::Span<const int64_t> sizes) {
  for (int t = call.num_operands; t < call.num_tensors(); ++t) {
    const std::vector<int64_t> dims = call.Dims(t, sizes);
    if (std::count(dims.begin(), dims.end(), 0) == 0) return true;
  }
  return false;
}

absl::Status CallSizes::CheckInputs(const Sizes& given) const {
  std::string found;
  for (const Tensor& t : options_.inputs) {
    absl::StrAppend(&found, found.empty() ? "" : ", ", TypeAndDims(t));
  }
  std::string expected;
  for (int t = 0; t < call_.num_operands; ++t) {
    absl::StrAppend(&expected, t == 0 ? "" : ", ", call_.ShapeText(t, given));
  }
  if (found == expected) return absl::OkStatus();
  return ToStatus({.code = "E313",
                   .message = absl::StrCat("the inputs are not the operands of the call of \"",
                                           call_.target, "\""),
                   .expected = expected,
                   .found = found,
                   .fix = "Give one array for each operand of the program's one call"});
}

void CallSizes::ReportHandler(const Sizes& sizes, const TrialResult& result) {
  faulty_ = true;
  RuleFinding finding;
  finding.verdict = RuleVerdict::kHandlerFault;
  finding.rule = call_.RuleLine(sizes);
  finding.message = absl::StrCat("the handler of \"", call_.target, "\" ", result.message);
  if (result.outcome != TrialOutcome::kLate && options_.inputs.empty()) {
    absl::StrAppend(&finding.message,
                    ". Where sizes follow from others (\"sizes\": {\"g\": \"4 h\"}) or operands "
                    "are indices (\"ranges\": {\"operand 1\": [0, \"s\"]}), say so; or give a "
                    "program with its inputs");
  }
  finding.signature = call_.SignatureText(sizes);
  finding.backend_config = call_.backend_config;
  finding.seed = seed_;
  out_.findings.push_back(std::move(finding));
}

}  // namespace internal
}  // namespace shardcall
