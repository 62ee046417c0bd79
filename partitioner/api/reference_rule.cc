// SPDX-License-Identifier: Apache-2.0
// The rule of a reference computation, found by partitioning it.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/api/partition.h"
#include "partitioner/api/reference.h"
#include "partitioner/api/verify.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"
#include "partitioner/ir/verifier.h"
#include "partitioner/propagation/dimension_classes.h"
#include "partitioner/propagation/resize.h"
#include "partitioner/propagation/rule_builder.h"
#include "partitioner/runtime/float_arrays.h"
#include "partitioner/runtime/random_inputs.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int64_t kSmall = 8;
constexpr int64_t kMostElements = int64_t{1} << 22;

absl::StatusOr<Module> Parsed(const std::string& hlo) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(hlo),
                                         std::make_shared<Context>(), "reference"));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "reference"));
  return module;
}

absl::Status Unfit(std::string message, std::string where = "") {
  return ToStatus({.code = "E114",
                   .message = std::move(message),
                   .where = std::move(where),
                   .fix = "Write the reference as a program for one device, arrays in and out"});
}

// Dimensions of operands and results as atoms.
struct Signature {
  std::vector<std::vector<std::vector<int>>> tensors;  // tensor, dimension, atoms
  std::vector<ElementType> types;
  int num_operands = 0;
  std::map<int, int64_t> sizes;  // of its atoms
  std::set<int> fixed;
};

class RuleFinder {
 public:
  RuleFinder(std::string hlo, const TargetRegistry& targets)
      : hlo_(std::move(hlo)), targets_(targets) {}

  absl::StatusOr<RuleAlternative> Run() {
    SHARDCALL_RETURN_IF_ERROR(ReadSignature());
    SHARDCALL_RETURN_IF_ERROR(FindSize());
    for (const auto& [atom, size] : s_.sizes) {
      Factor& f = factors_[atom];
      f.kind = FactorKind::kNeedReplication;
      if (s_.fixed.count(atom) > 0 || Twice(atom)) continue;
      SHARDCALL_RETURN_IF_ERROR(FindKind(atom, &f));
    }
    SHARDCALL_RETURN_IF_ERROR(CheckPairs());
    return Text();
  }

 private:
  absl::Status ReadSignature() {
    SHARDCALL_ASSIGN_OR_RETURN(Module module, Parsed(hlo_));
    if (module.header.num_partitions > 1 || module.header.replica_count > 1) {
      return Unfit("the reference is for several devices");
    }
    SHARDCALL_ASSIGN_OR_RETURN(const Program program, ImportModule(std::move(module), {}));
    const Module& m = program.module;
    for (int n = 0; n < m.num_instructions(); ++n) {
      const Instruction& i = m.instr(InstrId(n));
      const bool effects = i.opcode == Opcode::kCustomCall
                               ? i.as<CustomCallAttrs>().has_side_effect
                               : HasTrait(i.opcode, kSideEffect);
      if (effects || HasTrait(i.opcode, kCollectiveOp)) {
        return Unfit(absl::StrCat("the reference has ", OpcodeText(i.opcode)),
                     absl::StrCat("%", i.name));
      }
      ++opcodes_[static_cast<size_t>(i.opcode)];
    }
    RuleTable rules(program, {&targets_, {"all"}});
    const DimensionClasses classes(program, rules);
    SHARDCALL_RETURN_IF_ERROR(rules.status());
    auto add = [&](InstrId id, int k) -> absl::Status {
      const Shape* shape = m.instr(id).shape;
      if (shape->IsTuple()) shape = shape->leaf(k);
      if (!shape->IsArray()) return Unfit("the reference takes or gives what is no array");
      s_.types.push_back(shape->element_type());
      s_.tensors.emplace_back();
      for (int d = 0; d < shape->rank(); ++d) {
        s_.tensors.back().push_back(classes.Atoms(program.leaves.leaf(id, k), d));
        for (int a : s_.tensors.back().back()) {
          s_.sizes[a] = classes.size(a);
          if (classes.fixed(a)) s_.fixed.insert(a);
        }
      }
      return absl::OkStatus();
    };
    for (InstrId p : m.comp(m.entry()).parameters) {
      if (m.instr(p).shape->IsTuple()) return Unfit("a parameter of the reference is a tuple");
      SHARDCALL_RETURN_IF_ERROR(add(p, 0));
    }
    s_.num_operands = static_cast<int>(s_.tensors.size());
    if (s_.num_operands == 0) return Unfit("the reference has no operand");
    const InstrId root = m.comp(m.entry()).root;
    tuple_ = m.instr(root).shape->IsTuple();
    for (int k = 0; k < m.instr(root).shape->num_leaves(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(add(root, k));
    }
    return absl::OkStatus();
  }

  int Count(int tensor, int atom) const {
    int n = 0;
    for (const auto& dim : s_.tensors[tensor]) n += std::count(dim.begin(), dim.end(), atom);
    return n;
  }
  // An axis cuts a tensor once.
  bool Twice(int atom) const {
    for (size_t t = 0; t < s_.tensors.size(); ++t) {
      if (Count(static_cast<int>(t), atom) > 1) return true;
    }
    return false;
  }

  // Trials are on small arrays, whatever sizes the reference is written in.
  int64_t Usual(int atom) const {
    const int64_t size = s_.sizes.at(atom);
    return small_ && s_.fixed.count(atom) == 0 ? std::min<int64_t>(size, kSmall) : size;
  }
  // Whether it can be made small; if not, it must be so by itself.
  absl::Status FindSize() {
    small_ = true;
    if (Resized({}).ok()) return absl::OkStatus();
    small_ = false;
    for (const auto& tensor : s_.tensors) {
      int64_t elements = 1;
      for (const auto& dim : tensor) {
        for (int a : dim) {
          if (__builtin_mul_overflow(elements, s_.sizes.at(a), &elements) ||
              elements > kMostElements) {
            return Unfit("the reference is written in one large size, which its rule cannot be "
                         "tried on");
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // The reference with other sizes of some atoms; the operands' dims.
  absl::StatusOr<Module> Resized(const std::map<int, int64_t>& now) const {
    std::vector<std::vector<int64_t>> dims;
    for (int t = 0; t < s_.num_operands; ++t) {
      dims.emplace_back();
      for (const auto& atoms : s_.tensors[t]) {
        int64_t size = 1;
        for (int a : atoms) size *= now.count(a) > 0 ? now.at(a) : Usual(a);
        dims.back().push_back(size);
      }
    }
    SHARDCALL_ASSIGN_OR_RETURN(Module module, Parsed(hlo_));
    return ResizeModule(std::move(module), dims, &targets_);
  }

  // Whether the reference with these atoms cut in two each runs as the same ops
  // on shards, and communicates nothing but what the reduction factors say.
  absl::StatusOr<bool> IsLocal(const std::vector<std::pair<int, Factor>>& cut) const {
    std::map<int, int64_t> now;
    std::string axes, devices;
    for (size_t k = 0; k < cut.size(); ++k) {
      now[cut[k].first] = 4;
      absl::StrAppend(&axes, k ? "," : "", "'x", k, "'=2");
    }
    absl::StatusOr<Module> resized = Resized(now);
    if (DiagnosticCode(resized.status()) == "E113") return false;  // it has one size
    SHARDCALL_RETURN_IF_ERROR(resized.status());
    Module module = *std::move(resized);
    auto sharding = [&](int t) {
      std::vector<std::string> dims;
      for (const auto& atoms : s_.tensors[t]) {
        std::string text;
        for (size_t k = 0; k < cut.size(); ++k) {
          if (atoms[0] == cut[k].first) text = absl::StrCat("'x", k, "'");
        }
        dims.push_back(absl::StrCat("{", text, "}"));
      }
      return absl::StrCat("{mesh[", axes, "], [", absl::StrJoin(dims, ", "), "]}");
    };
    const Computation& entry = module.comp(module.entry());
    auto set = [&](InstrId id, const std::string& text) -> absl::Status {
      SHARDCALL_ASSIGN_OR_RETURN(HloSharding parsed, ParseHloSharding(text));
      module.mutable_instr(id).sharding = InternHloSharding(module.context(), std::move(parsed));
      return absl::OkStatus();
    };
    for (int t = 0; t < s_.num_operands; ++t) {
      SHARDCALL_RETURN_IF_ERROR(set(entry.parameters[t], sharding(t)));
    }
    std::vector<std::string> results;
    for (size_t t = s_.num_operands; t < s_.tensors.size(); ++t) {
      results.push_back(sharding(static_cast<int>(t)));
    }
    // A parameter that is the result keeps its own.
    if (module.instr(entry.root).opcode != Opcode::kParameter) {
      const std::string all = absl::StrJoin(results, ", ");
      SHARDCALL_RETURN_IF_ERROR(set(entry.root, tuple_ ? absl::StrCat("{", all, "}") : all));
    }
    module.header.num_partitions = int64_t{1} << cut.size();
    module.header.has_num_partitions = true;
    PartitionOptions options;
    options.targets = &targets_;
    options.allow_replicate = {"all"};
    options.spmd.cost.memory_rate = 1;  // sharded work is worth anything
    const auto program = Partition(std::move(module), options);
    if (!program.ok()) return false;  // two partial operations on one value, and the like
    return OnlyReduces((*program)->local.module, cut);
  }

  // Whether `local` has the ops of the reference and all-reduces of the cut
  // factors. Where on the way to a result they stand is the planner's choice.
  static bool IsReduction(const Module& local, const Instruction& i,
                          const std::vector<std::pair<int, Factor>>& cut) {
    PartialOp op;
    if (!RecognizePartialOp(local, CalledComputations(local, i)[0], &op)) return false;
    return std::any_of(cut.begin(), cut.end(), [&](const auto& c) {
      return c.second.kind == FactorKind::kReduction && c.second.reduction == op;
    });
  }
  bool OnlyReduces(const Module& local, const std::vector<std::pair<int, Factor>>& cut) const {
    absl::flat_hash_set<CompId> reducers;
    for (int n = 0; n < local.num_instructions(); ++n) {
      const Instruction& i = local.instr(InstrId(n));
      if (i.opcode != Opcode::kAllReduce) continue;
      if (!IsReduction(local, i, cut)) return false;
      for (CompId c : CalledComputations(local, i)) reducers.insert(c);
    }
    std::array<int, 256> left = opcodes_;
    for (int n = 0; n < local.num_instructions(); ++n) {
      const Instruction& i = local.instr(InstrId(n));
      if (i.opcode == Opcode::kTuple || i.opcode == Opcode::kGetTupleElement ||
          i.opcode == Opcode::kCopy || i.opcode == Opcode::kAllReduce ||
          i.opcode == Opcode::kParameter || reducers.count(i.computation) > 0) {
        continue;
      }
      // Whatever depends on the device, or moves data, is an op more.
      if (--left[static_cast<size_t>(i.opcode)] < 0) return false;
    }
    return true;
  }

  static std::vector<double> Values(const Tensor& t) {
    if (IsFloat(t.type())) return ToDoubles(t);
    std::vector<double> out;
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      out.push_back(static_cast<double>(IntElement(t, k)));
    }
    return out;
  }

  // Whether what the whole gives is what two halves give, reduced: on numbers,
  // since a sum may stand before ops that do not pass it on (a bias, a root).
  absl::StatusOr<bool> HalvesMakeTheWhole(int atom, PartialOp op) const {
    SHARDCALL_ASSIGN_OR_RETURN(const Module half, Resized({{atom, 2}}));
    SHARDCALL_ASSIGN_OR_RETURN(const Module whole, Resized({{atom, 4}}));
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(whole), seed);
      const auto want = Evaluate(whole, inputs, nullptr);
      std::vector<Tensor> parts[2];
      for (int64_t h : {0, 1}) {
        std::vector<Tensor> mine;
        for (int t = 0; t < s_.num_operands; ++t) mine.push_back(Half(t, inputs[t], atom, h));
        auto got = Evaluate(half, std::move(mine), nullptr);
        if (!want.ok() || !got.ok()) return false;
        parts[h] = *std::move(got);
      }
      for (size_t r = 0; r < want->size(); ++r) {
        const int t = s_.num_operands + static_cast<int>(r);
        const Tensor& all = (*want)[r];
        if (Count(t, atom) > 0) {
          for (int64_t h : {0, 1}) {
            if (!Compare(Half(t, all, atom, h), parts[h][r], /*exact=*/false).ok) return false;
          }
          continue;
        }
        if (!IsFloat(all.type()) && !IsInteger(all.type())) return false;
        std::vector<double> x = Values(parts[0][r]);
        const std::vector<double> y = Values(parts[1][r]);
        for (size_t k = 0; k < x.size(); ++k) {
          x[k] = op == PartialOp::kSum   ? x[k] + y[k]
                 : op == PartialOp::kMax ? std::max(x[k], y[k])
                                         : std::min(x[k], y[k]);
        }
        const bool same = IsFloat(all.type())
                              ? Compare(all, FromDoubles(all.type(), all.dims(), x),
                                        /*exact=*/false).ok
                              : x == Values(all);
        if (!same) return false;
      }
    }
    return true;
  }

  // The dimension of tensor t that has the atom, as its most major; -1 for none.
  int DimOf(int t, int atom) const {
    for (size_t d = 0; d < s_.tensors[t].size(); ++d) {
      if (s_.tensors[t][d][0] == atom) return static_cast<int>(d);
    }
    return -1;
  }

  Tensor Half(int t, const Tensor& from, int atom, int64_t h) const {
    const int dim = DimOf(t, atom);
    if (dim < 0) return from;
    Dims dims = from.dims();
    dims[dim] /= 2;
    Tensor out(from.type(), dims);
    int64_t inner = from.element_bytes(), outer = 1;
    for (int d = 0; d < dim; ++d) outer *= dims[d];
    for (int d = dim; d < out.rank(); ++d) inner *= dims[d];
    for (int64_t k = 0; k < outer; ++k) {
      std::copy_n(from.data() + (2 * k + h) * inner, inner, out.MutableData() + k * inner);
    }
    return out;
  }

  bool InEveryResult(int atom) const {
    for (size_t t = s_.num_operands; t < s_.tensors.size(); ++t) {
      if (Count(static_cast<int>(t), atom) == 0) return false;
    }
    return true;
  }

  absl::Status FindKind(int atom, Factor* f) {
    for (size_t t = 0; t < s_.tensors.size(); ++t) {
      for (const auto& dim : s_.tensors[t]) {
        const auto at = std::find(dim.begin(), dim.end(), atom);
        if (at != dim.end() && at != dim.begin()) return absl::OkStatus();  // behind another
      }
    }
    Factor tried = *f;
    tried.kind = FactorKind::kPassThrough;
    SHARDCALL_ASSIGN_OR_RETURN(bool local, IsLocal({{atom, tried}}));
    if (local) {
      *f = tried;
      return absl::OkStatus();
    }
    if (InEveryResult(atom)) return absl::OkStatus();
    tried.kind = FactorKind::kReduction;
    for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
      tried.reduction = op;
      SHARDCALL_ASSIGN_OR_RETURN(local, IsLocal({{atom, tried}}));
      if (!local) continue;
      SHARDCALL_ASSIGN_OR_RETURN(local, HalvesMakeTheWhole(atom, op));
      if (!local) continue;
      *f = tried;
      return FindPad(atom, f);
    }
    return absl::OkStatus();
  }

  // The value that may fill up the operands: it leaves results without the factor
  // as they are.
  absl::Status FindPad(int atom, Factor* f) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double pad = f->reduction == PartialOp::kSum ? 0
                       : f->reduction == PartialOp::kMax ? -kInfinity
                                                         : kInfinity;
    for (int t = 0; t < s_.num_operands; ++t) {
      if (Count(t, atom) > 0 && pad != 0 && !IsFloat(s_.types[t])) return absl::OkStatus();
    }
    SHARDCALL_ASSIGN_OR_RETURN(const Module small, Resized({{atom, 3}}));
    SHARDCALL_ASSIGN_OR_RETURN(const Module large, Resized({{atom, 5}}));
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(small), seed);
      std::vector<Tensor> padded;
      for (int t = 0; t < s_.num_operands; ++t) padded.push_back(Padded(t, inputs[t], atom, pad));
      const auto want = Evaluate(small, inputs, nullptr);
      const auto got = Evaluate(large, padded, nullptr);
      if (!want.ok() || !got.ok()) return absl::OkStatus();
      for (size_t r = 0; r < want->size(); ++r) {
        if (Count(s_.num_operands + static_cast<int>(r), atom) > 0) continue;
        if (!Compare((*want)[r], (*got)[r], /*exact=*/true).ok) return absl::OkStatus();
      }
    }
    f->has_pad = true;
    f->pad = pad;
    return absl::OkStatus();
  }

  // Operand t with two more of `atom`, which are `pad`. The atom is the most major
  // of its dimension.
  Tensor Padded(int t, const Tensor& from, int atom, double pad) const {
    Dims dims = from.dims();
    const int dim = DimOf(t, atom);
    if (dim < 0) return from;
    dims[dim] = dims[dim] / 3 * 5;
    Tensor out(from.type(), dims);
    if (pad == 0) {
      out = Tensor::Zeros(from.type(), dims);
    } else {
      out = FromDoubles(from.type(), dims, std::vector<double>(out.num_elements(), pad));
    }
    int64_t inner = from.element_bytes(), outer = 1;
    for (int d = 0; d < dim; ++d) outer *= dims[d];
    for (int d = dim + 1; d < from.rank(); ++d) inner *= dims[d];
    for (int64_t k = 0; k < outer; ++k) {
      std::copy_n(from.data() + k * from.dim(dim) * inner, from.dim(dim) * inner,
                  out.MutableData() + k * dims[dim] * inner);
    }
    return out;
  }

  absl::Status CheckPairs() {
    auto shards = [](const Factor& f) { return f.kind != FactorKind::kNeedReplication; };
    for (auto a = factors_.begin(); a != factors_.end(); ++a) {
      for (auto b = std::next(a); b != factors_.end(); ++b) {
        if (!shards(a->second) || !shards(b->second)) continue;
        SHARDCALL_ASSIGN_OR_RETURN(
            const bool local, IsLocal({{a->first, a->second}, {b->first, b->second}}));
        if (local) continue;
        b->second.kind = FactorKind::kNeedReplication;
        b->second.has_pad = false;
      }
    }
    return absl::OkStatus();
  }

  RuleAlternative Text() const {
    RuleAlternative out;
    std::map<int, std::string> names;
    std::set<std::string> alone, cut;
    int next = 0;
    for (size_t t = 0; t < s_.tensors.size(); ++t) {
      std::vector<std::string> dims;
      for (const auto& atoms : s_.tensors[t]) {
        std::vector<std::string> dim;
        for (int a : atoms) {
          // What a tensor has twice is one factor each time.
          auto [it, first] = names.try_emplace(a, "");
          const bool fresh = first || Twice(a);
          if (fresh) it->second = FactorName(next++);
          dim.push_back(it->second);
          if (!fresh) continue;
          const Factor& f = factors_.at(a);
          if (f.kind == FactorKind::kNeedReplication) {
            out.text.need_replication.push_back(it->second);
          } else if (f.kind == FactorKind::kReduction) {
            out.text.reduction.emplace_back(it->second, f.reduction);
          }
          if (f.has_pad) out.text.pad.emplace_back(it->second, f.pad);
        }
        (dim.size() == 1 ? alone : cut).insert(dim.begin(), dim.end());
        dims.push_back(dim.size() == 1 ? dim[0] : absl::StrCat("(", absl::StrJoin(dim, " "), ")"));
      }
      absl::StrAppend(&out.text.rule,
                      static_cast<int>(t) == s_.num_operands ? " -> " : t > 0 ? ", " : "",
                      absl::StrJoin(dims, " "));
    }
    for (const auto& [a, name] : names) {
      if (cut.count(name) == 0 || alone.count(name) > 0) continue;
      // The most major of a cut takes another size, the rest are the reference's.
      bool major = false;
      for (const auto& tensor : s_.tensors) {
        for (const auto& dim : tensor) major = major || (dim.size() > 1 && dim[0] == a);
      }
      if (major) {
        out.inferred.push_back(name);
      } else {
        out.text.sizes.emplace_back(name, s_.sizes.at(a));
      }
    }
    std::vector<std::string> types[2];
    const bool one_type = std::all_of(s_.types.begin(), s_.types.end(),
                                      [&](ElementType t) { return t == s_.types[0]; });
    for (size_t t = 0; t < s_.types.size(); ++t) {
      types[static_cast<int>(t) >= s_.num_operands].push_back(
          one_type ? "T" : std::string(ElementTypeName(s_.types[t])));
    }
    out.types = absl::StrCat(absl::StrJoin(types[0], ", "), " -> ", absl::StrJoin(types[1], ", "));
    return out;
  }

  const std::string hlo_;
  const TargetRegistry& targets_;
  Signature s_;
  bool tuple_ = false, small_ = false;
  std::array<int, 256> opcodes_{};
  std::map<int, Factor> factors_;
};

}  // namespace

absl::StatusOr<RuleAlternative> RuleOfReference(const std::string& hlo,
                                                const TargetRegistry& targets) {
  return RuleFinder(hlo, targets).Run();
}

}  // namespace shardcall
