// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/call_checker.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int64_t kDevices[] = {2, 3, 4};
constexpr int64_t kTiles[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr int kMostPairs = 12;
constexpr size_t kMostEnumerated = 6;

bool OneWidth(const std::vector<ElementType>& types) {
  return std::all_of(types.begin(), types.end(), [&](ElementType t) {
    return ElementTypeBytes(t) == ElementTypeBytes(types[0]);
  });
}

bool MayShard(const Factor& f) {
  return f.kind == FactorKind::kPassThrough || f.kind == FactorKind::kReduction;
}

}  // namespace

absl::Status CallChecker::Run() {
  SHARDCALL_RETURN_IF_ERROR(FindSizes());
  if (faulty_) return absl::OkStatus();
  if (options_.reference != nullptr) CheckReference();
  CheckShapes();
  if (call_.callbacks) {
    CheckCallbacks();
    return absl::OkStatus();
  }
  for (int f = 0; f < NumFactors(); ++f) {
    const std::string& name = call_.rule.factors[f].name;
    if (!MayShard(call_.rule.factors[f])) continue;
    if (!IsMajor(f)) {
      if (InATensor(f)) {
        out_.untested.push_back(absl::StrCat(name, ": it stands behind another in a dimension"));
      }
      continue;
    }
    const Tested tested = TestFactor(call_, f);
    if (faulty_) return absl::OkStatus();
    if (tested.failure.has_value()) {
      Report(f, *tested.failure);
      continue;
    }
    if (tested.runs == 0) {
      out_.untested.push_back(absl::StrCat(name, ": ", tested.reason));
      continue;
    }
    sound_.push_back(f);
    if (tested.uneven == 0) {
      out_.untested.push_back(absl::StrCat(name, ", uneven sizes: ", tested.uneven_reason));
    }
  }
  CheckPairs(sound_);
  return absl::OkStatus();
}

void CallChecker::CheckShapes() {
  const TargetRegistry* targets = options_.targets;
  const TargetFacts* facts = targets == nullptr ? nullptr : targets->Facts(call_.target);
  if (facts == nullptr || facts->shapes == nullptr) return;
  Context context;
  std::vector<const Shape*> shapes;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    shapes.push_back(context.MakeArray(call_.types[t], call_.Dims(t, base_)));
  }
  const auto results = absl::MakeConstSpan(shapes).subspan(call_.num_operands);
  const Shape* declared =
      results.size() == 1 && !call_.tuple_result ? results[0] : context.MakeTuple(results);
  const absl::Status status =
      targets->CheckShape({&context, call_.target, call_.backend_config,
                           absl::MakeConstSpan(shapes).first(call_.num_operands)},
                          declared);
  if (status.ok()) return;
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.message =
      absl::StrCat("the target's shape function contradicts its handler, which gives ",
                   declared->ToString(/*with_layout=*/false), "; asked of it: ", status.message());
  finding.signature = call_.SignatureText(base_);
  finding.backend_config = call_.backend_config;
  out_.findings.push_back(std::move(finding));
}

bool CallChecker::IsMajor(int f) const {
  bool used = false;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    for (const FactorList& dim : call_.rule.tensor(t).dims) {
      const auto it = std::find(dim.begin(), dim.end(), f);
      if (it != dim.begin() && it != dim.end()) return false;
      used = used || it != dim.end();
    }
  }
  return used;
}

bool CallChecker::InEveryResult(const CheckedCall& call, int f) {
  const auto& results = call.rule.results;
  return std::all_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::InATensor(int f) const { return InAnOperand(f) || InAResult(call_, f); }

bool CallChecker::InAResult(const CheckedCall& call, int f) {
  const auto& results = call.rule.results;
  return std::any_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::InAnOperand(int f) const {
  const auto& operands = call_.rule.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::IsTooLarge(const Sizes& sizes) const {
  for (int t = 0; t < call_.num_tensors(); ++t) {
    double n = 1;
    for (int64_t d : call_.Dims(t, sizes)) n *= static_cast<double>(d);
    if (n > kMostElements) return true;
  }
  return false;
}

bool CallChecker::HasInputs(const Sizes& sizes) const {
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

bool CallChecker::HasResults(const CheckedCall& call, absl::Span<const int64_t> sizes) {
  for (int t = call.num_operands; t < call.num_tensors(); ++t) {
    const std::vector<int64_t> dims = call.Dims(t, sizes);
    if (std::count(dims.begin(), dims.end(), 0) == 0) return true;
  }
  return false;
}

bool CallChecker::Takes(const Sizes& sizes, TrialResult* why) {
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

void CallChecker::ReportHandler(const Sizes& sizes, const TrialResult& result) {
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

absl::Status CallChecker::CheckInputs(const Sizes& given) const {
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

// Sizes of which one is a multiple of another keep that: they are divided by what all
// of them have in common, until the least is 8 or less. The others are 8 at most, and all where that is
// too large.
std::vector<CallChecker::Sizes> CallChecker::GivenSizes(const Sizes& given) const {
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
  if (!IsTooLarge(less)) return {less, given};
  Sizes small = given;
  for (int64_t& s : small) s = std::min(s, kSmall);
  return {small};
}

std::vector<CallChecker::Sizes> CallChecker::OpenSizes(const Sizes& given,
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
  // One more or less, as of a bidiagonal or half a spectrum.
  for (uint32_t bits = 1; open.size() <= kMostEnumerated && bits + 1 < 1u << open.size(); ++bits) {
    Sizes sizes = given;
    for (size_t k = 0; k < open.size(); ++k) sizes[open[k]] = (bits >> k & 1) != 0 ? 3 : 4;
    tries.push_back(std::move(sizes));
  }
  return tries;
}

absl::Status CallChecker::FindSizes() {
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
  // What the handler said, and of what call; and what was worse than a refusal.
  struct Said {
    TrialResult result;
    std::vector<ElementType> types;
    Sizes sizes;
  };
  std::optional<Said> said, fault;
  const std::vector<std::vector<ElementType>> all_types = TypesToTry(call_);
  for (const std::vector<ElementType>& types : all_types) {
    // A handler that left its buffers looks at no type, so that elements of other widths
    // would hide what it does.
    if (fault.has_value() && !OneWidth(types)) continue;
    call_.types = types;
    takes_.clear();
    for (const Sizes& sizes : tries) {
      base_ = sizes;
      Said now{{}, types, sizes};
      if (Takes(sizes, &now.result)) {
        if (open.empty() && options_.inputs.empty()) FillEmpty();
        return absl::OkStatus();
      }
      if (faulty_) return absl::OkStatus();
      // The first types are the likeliest, so what is wrong with them says most.
      if (now.result.outcome != TrialOutcome::kRefused && !fault.has_value()) fault = now;
      if (types == all_types[0] || !said.has_value()) said = now;
    }
  }
  const Said& last = fault.has_value() ? *fault : *said;
  call_.types = last.types;
  if (fault.has_value()) {
    ReportHandler(last.sizes, last.result);
    return absl::OkStatus();
  }
  return ToStatus({.code = "E190",
                   .message = absl::StrCat("the handler of \"", call_.target,
                                           "\" takes no call that was tried; it says: ",
                                           last.result.message),
                   .found = call_.SignatureText(last.sizes),
                   .fix = "Give a program with a call that it takes: shardcall check-rule "
                          "CALL.hlo --target=" + call_.target},
                  absl::StatusCode::kFailedPrecondition);
}

void CallChecker::FillEmpty() {
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

CallChecker::Sizes CallChecker::With(int factor, int64_t size) const {
  Sizes sizes = base_;
  for (int f : linked_[factor]) sizes[f] = size;
  bool fits = true;
  for (const CheckedCall::Related& r : call_.related) {
    if (std::count(linked_[factor].begin(), linked_[factor].end(), r.factor) == 0) continue;
    const int64_t of = (size - r.plus) / r.times;
    if (of < 1 || r.times * of + r.plus != size) {
      fits = false;  // there is no such call
    } else {
      sizes[r.of] = of;
    }
  }
  if (fits) call_.Relate(&sizes);
  return sizes;
}

CallChecker::Sizes CallChecker::Shard(Sizes whole, int factor, int64_t tile) const {
  for (int f : linked_[factor]) whole[f] = tile;
  return whole;
}

bool CallChecker::Try(RuleTrial trial, Tested* tested) {
  bool compared = false;
  for (uint64_t kind : {0, 1}) {
    if (faulty_) return false;
    trial.seed = 2 * seed_ + kind;
    TrialResult result = RunTrial(trial, options_);
    if (result.outcome == TrialOutcome::kLate) {
      ReportHandler(trial.sizes, result);
      return false;
    }
    if (result.outcome == TrialOutcome::kNoReference) continue;
    if (result.outcome == TrialOutcome::kNotSharded) {
      tested->reason = result.message;
      continue;
    }
    ++out_.trials;
    if (result.outcome == TrialOutcome::kHolds && !HasResults(*trial.call, trial.sizes)) {
      tested->reason = "its results have no elements";
      continue;
    }
    compared = true;
    if (result.outcome == TrialOutcome::kHolds) continue;
    tested->failure = Failure{trial, std::move(result)};
    tested->failure->trial.call = nullptr;  // `call` may end before
    return true;
  }
  return compared;
}

CallChecker::Tested CallChecker::TestGiven(const CheckedCall& call, int f) {
  Tested tested;
  tested.reason = "the given inputs have too few of it";
  tested.uneven_reason = "the given inputs divide evenly";
  for (int64_t n : kDevices) {
    if (base_[f] < n) continue;
    const bool compared = Try({.call = &call, .sizes = base_, .shards = {{f, n}}}, &tested);
    tested.runs += compared;
    tested.uneven += compared && base_[f] % n != 0;
    if (!compared && base_[f] % n != 0) tested.uneven_reason = tested.reason;
    if (tested.failure.has_value()) return tested;
  }
  return tested;
}

std::optional<CallChecker::Failure> CallChecker::TestEmpty(const CheckedCall& call, int f) {
  Tested tested;
  for (int64_t n : kDevices) {
    if (empty_.empty() || faulty_ || tested.failure.has_value()) break;
    Try({.call = &call, .sizes = empty_, .shards = {{f, n}}}, &tested);
  }
  return std::move(tested.failure);
}

CallChecker::Tested CallChecker::TestFactor(const CheckedCall& call, int f) {
  if (!options_.inputs.empty()) return TestGiven(call, f);
  Tested tested;
  tested.failure = TestEmpty(call, f);
  if (tested.failure.has_value()) return tested;
  bool taken = false;
  TrialResult refusal;
  for (int64_t n : kDevices) {
    for (int64_t tile : kTiles) {
      const Sizes whole = With(f, n * tile);
      TrialResult why;
      if (!Takes(whole, &why) || !Takes(Shard(whole, f, tile), &why)) {
        if (!why.message.empty()) refusal = why;
        continue;
      }
      taken = true;
      RuleTrial trial{.call = &call, .sizes = whole, .shards = {{f, n}}};
      tested.runs += Try(trial, &tested);
      if (tested.failure.has_value()) return tested;
      if (tile == 1) continue;  // one row a shard says little of an order
      break;
    }
    for (int64_t size : {2 * n - 1, 4 * n - 1, n + 1}) {
      const Sizes whole = With(f, size);
      if (!Takes(whole) || !Takes(Shard(whole, f, (size + n - 1) / n))) continue;
      RuleTrial trial{.call = &call, .sizes = whole, .shards = {{f, n}}};
      const std::string even_reason = tested.reason;
      const bool compared = Try(trial, &tested);
      tested.runs += compared;
      tested.uneven += compared;
      if (!compared) tested.uneven_reason = tested.reason;
      if (tested.runs > 0) tested.reason = even_reason;
      if (tested.failure.has_value()) return tested;
    }
  }
  if (!taken && !refusal.message.empty() && !faulty_ && base_[f] > 0) {
    // The whole call is taken as it is, and never with less of this factor.
    RuleTrial trial{.sizes = base_, .shards = {{f, 2}}};
    if (refusal.outcome == TrialOutcome::kHolds) refusal.outcome = TrialOutcome::kRefused;
    tested.failure = Failure{trial, refusal};
  }
  return tested;
}

void CallChecker::CheckPairs(const std::vector<int>& factors) {
  int pairs = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t j = i + 1; j < factors.size(); ++j) {
      if (faulty_) return;
      if (++pairs > kMostPairs) {
        out_.untested.push_back(
            absl::StrCat("pairs of factors after the first ", kMostPairs));
        return;
      }
      for (int64_t tile : {2, 8, 32}) {
        Sizes whole = base_;
        if (options_.inputs.empty()) {
          for (int f : {factors[i], factors[j]}) whole[f] = 2 * tile;
          call_.Relate(&whole);
          Sizes part = whole;
          for (int f : {factors[i], factors[j]}) part[f] = tile;
          if (!Takes(whole) || !Takes(part)) continue;
        }
        Tested tested;
        Try({.call = &call_, .sizes = whole, .shards = {{factors[i], 2}, {factors[j], 2}}},
            &tested);
        if (tested.failure.has_value()) {
          Report(factors[j], *tested.failure);
          return;
        }
        break;
      }
    }
  }
}

std::optional<CheckedCall> CallChecker::Better(const CheckedCall& given, int f,
                                               bool with_replication) {
  std::vector<Factor> variants;
  auto add = [&](FactorKind kind, PartialOp op, std::optional<double> pad) {
    Factor v = given.rule.factors[f];
    v.kind = kind;
    v.reduction = op;
    // What no result has and any shard gives the whole result of is said so.
    if (!InAResult(given, f)) v.blocked = kind == FactorKind::kPassThrough;
    v.has_pad = pad.has_value();
    v.pad = pad.value_or(0);
    variants.push_back(v);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  add(FactorKind::kPassThrough, PartialOp::kSum, std::nullopt);
  if (given.rule.factors[f].kind == FactorKind::kPassThrough) {
    // A kernel that trusts its indices takes padding that is one.
    add(FactorKind::kPassThrough, PartialOp::kSum, 0);
  }
  if (!InEveryResult(given, f)) {
    add(FactorKind::kReduction, PartialOp::kSum, 0);
    add(FactorKind::kReduction, PartialOp::kMax, -kInfinity);
    add(FactorKind::kReduction, PartialOp::kMin, kInfinity);
    for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
      add(FactorKind::kReduction, op, std::nullopt);
    }
  }
  for (const Factor& v : variants) {
    CheckedCall call = given;
    call.rule.factors[f] = v;
    const Tested tested = TestFactor(call, f);
    if (tested.runs > 0 && !tested.failure.has_value()) return call;
  }
  if (!with_replication) return std::nullopt;
  CheckedCall call = given;
  call.rule.factors[f].kind = FactorKind::kNeedReplication;
  call.rule.factors[f].has_pad = false;
  return call;
}

void CallChecker::Report(int f, const Failure& failure) {
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.factor = call_.rule.factors[f].name;
  std::string over;
  for (const auto& [factor, n] : failure.trial.shards) {
    const std::string& name = call_.rule.factors[factor].name;
    finding.shards.emplace_back(name, n);
    absl::StrAppend(&over, over.empty() ? "" : ", ", name, " = ", failure.trial.sizes[factor],
                    " over ", n, " devices");
  }
  const TrialOutcome outcome = failure.result.outcome;
  finding.message = absl::StrCat(
      over, ": ",
      outcome == TrialOutcome::kRefused ? "the handler refuses a shard: "
      : outcome == TrialOutcome::kCrashed || outcome == TrialOutcome::kOutside
          ? absl::StrCat("given a shard, the handler of \"", call_.target, "\" ")
          : "",
      failure.result.message);
  finding.signature = call_.SignatureText(failure.trial.sizes);
  finding.backend_config = call_.backend_config;
  finding.seed = failure.trial.seed;
  if (failure.trial.shards.size() == 1) {
    finding.suggestion = Better(call_, f, /*with_replication=*/true)->RuleLine(base_);
  }
  out_.findings.push_back(std::move(finding));
}

void CallChecker::CheckReference() {
  std::vector<Sizes> tries = {base_};
  if (!empty_.empty() && empty_ != base_) tries.push_back(empty_);
  for (int f = 0; f < NumFactors(); ++f) {
    for (int64_t size : {1, 3, 8}) tries.push_back(With(f, size));
  }
  for (const Sizes& sizes : tries) {
    if (!Takes(sizes)) continue;
    const TrialResult result = AgainstReference(call_, sizes, seed_, options_);
    if (result.outcome == TrialOutcome::kNoReference) {
      if (sizes != base_) continue;
      out_.untested.push_back(absl::StrCat("the reference: ", result.message));
      return;
    }
    ++out_.trials;
    if (result.outcome == TrialOutcome::kHolds) continue;
    if (result.outcome == TrialOutcome::kLate || result.outcome == TrialOutcome::kCrashed) {
      ReportHandler(sizes, result);
      return;
    }
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = call_.RuleLine(base_);
    finding.message = absl::StrCat("the handler and the reference disagree on one device: ",
                                   result.message);
    finding.signature = call_.SignatureText(sizes);
    finding.backend_config = call_.backend_config;
    finding.seed = seed_;
    out_.findings.push_back(std::move(finding));
    return;
  }
}

void CallChecker::CheckCallbacks() {
  for (int t = 0; t < call_.num_operands; ++t) {
    const int rank = static_cast<int>(call_.Dims(t, base_).size());
    for (int dim = 0; dim < rank; ++dim) {
      if (CheckCallbacksDim(base_, t, dim) && !empty_.empty() && empty_ != base_) {
        CheckCallbacksDim(empty_, t, dim);
      }
      if (faulty_) return;
    }
  }
}

bool CallChecker::CheckCallbacksDim(const Sizes& sizes, int t, int dim) {
  const int64_t size = call_.Dims(t, sizes)[dim];
  const std::string where = absl::StrCat("operand ", t, ", dimension ", dim);
  bool uneven = false;
  for (int64_t n : kDevices) {
    Tested tested;
    const bool compared =
        Try({.call = &call_, .sizes = sizes, .dims = {{{t, dim}, n}}}, &tested);
    if (faulty_) return false;
    if (!compared && !tested.reason.empty()) {
      if (sizes == base_) out_.untested.push_back(absl::StrCat(where, ": ", tested.reason));
      return true;
    }
    uneven = uneven || size % n != 0;
    if (!tested.failure.has_value()) continue;
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = "callbacks";
    finding.factor = where;
    const TrialResult& result = tested.failure->result;
    finding.message = result.outcome == TrialOutcome::kCrashed
                          ? absl::StrCat("given a shard, the handler of \"", call_.target, "\" ",
                                         result.message)
                          : result.message;
    finding.signature = call_.SignatureText(sizes);
    finding.backend_config = call_.backend_config;
    finding.shards.emplace_back(finding.factor, n);
    finding.seed = tested.failure->trial.seed;
    out_.findings.push_back(std::move(finding));
    return false;
  }
  if (!uneven && sizes == base_) {
    out_.untested.push_back(absl::StrCat(where, ", uneven sizes: it has ", size));
  }
  return true;
}

}  // namespace shardcall
