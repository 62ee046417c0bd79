// SPDX-License-Identifier: Apache-2.0
// Finds the rule of a reference computation by partitioning it.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/check/reference_body.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/rules/rule_builder.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

class RuleFinder {
 public:
  RuleFinder(const ReferenceBody& body, const TargetRegistry& targets)
      : body_(body), targets_(targets) {}

  absl::StatusOr<RuleAlternative> Run() {
    for (const auto& [atom, size] : body_.sizes()) {
      Factor& f = factors_[atom];
      f.kind = FactorKind::kNeedReplication;
      if (body_.fixed(atom) || body_.Twice(atom)) continue;
      SHARDCALL_RETURN_IF_ERROR(FindKind(atom, &f));
    }
    SHARDCALL_RETURN_IF_ERROR(CheckPairs());
    return Text();
  }

 private:
  // Whether the reference, with each of these atoms sharded in two, runs as the same ops on shards,
  // without other communication than that of the reduction factors.
  absl::StatusOr<bool> IsLocal(const std::vector<std::pair<int, Factor>>& cut) const {
    std::map<int, int64_t> now;
    std::string axes, devices;
    for (size_t k = 0; k < cut.size(); ++k) {
      now[cut[k].first] = 4;
      absl::StrAppend(&axes, k ? "," : "", "'x", k, "'=2");
    }
    absl::StatusOr<Module> resized = body_.Resized(now);
    if (DiagnosticCode(resized.status()) == "E113") return false;  // its size is fixed
    SHARDCALL_RETURN_IF_ERROR(resized.status());
    Module module = *std::move(resized);
    auto sharding = [&](int t) {
      std::vector<std::string> dims;
      for (const auto& atoms : body_.dims(static_cast<int>(t))) {
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
    for (int t = 0; t < body_.num_operands(); ++t) {
      SHARDCALL_RETURN_IF_ERROR(set(entry.parameters[t], sharding(t)));
    }
    std::vector<std::string> results;
    for (size_t t = body_.num_operands(); t < static_cast<size_t>(body_.num_tensors()); ++t) {
      results.push_back(sharding(static_cast<int>(t)));
    }
    // A result that is a parameter keeps the parameter's sharding.
    if (module.instr(entry.root).opcode != Opcode::kParameter) {
      const std::string all = absl::StrJoin(results, ", ");
      SHARDCALL_RETURN_IF_ERROR(
          set(entry.root, body_.tuple_result() ? absl::StrCat("{", all, "}") : all));
    }
    module.header.num_partitions = int64_t{1} << cut.size();
    module.header.has_num_partitions = true;
    PartitionOptions options;
    options.targets = &targets_;
    options.spmd.search = StateSearch::kNone;
    options.allow_replicate = {"all"};
    options.spmd.cost.memory_rate = 1;  // so that sharding always pays
    const auto program = Partition(std::move(module), options);
    if (!program.ok()) return false;  // such as a value that is partial in two ways
    return OnlyReduces((*program)->local.module, cut);
  }

  // Whether `local` has only the ops of the reference, and all-reduces of the sharded factors. The
  // planner decides where the all-reduces are.
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
    std::array<int, 256> left = body_.opcodes();
    for (int n = 0; n < local.num_instructions(); ++n) {
      const Instruction& i = local.instr(InstrId(n));
      if (i.opcode == Opcode::kTuple || i.opcode == Opcode::kGetTupleElement ||
          i.opcode == Opcode::kCopy || i.opcode == Opcode::kAllReduce ||
          i.opcode == Opcode::kParameter || reducers.count(i.computation) > 0) {
        continue;
      }
      // An op that depends on the device or moves data is not in the reference.
      if (--left[static_cast<size_t>(i.opcode)] < 0) return false;
    }
    return true;
  }

  absl::Status FindKind(int atom, Factor* f) {
    for (size_t t = 0; t < static_cast<size_t>(body_.num_tensors()); ++t) {
      for (const auto& dim : body_.dims(static_cast<int>(t))) {
        const auto at = std::find(dim.begin(), dim.end(), atom);
        if (at != dim.end() && at != dim.begin()) return absl::OkStatus();  // minor to another atom
      }
    }
    Factor tried = *f;
    tried.kind = FactorKind::kPassThrough;
    SHARDCALL_ASSIGN_OR_RETURN(bool local, IsLocal({{atom, tried}}));
    if (local) {
      *f = tried;
      f->blocked = !body_.InAResult(atom);  // no result depends on it
      return absl::OkStatus();
    }
    if (body_.InEveryResult(atom)) return absl::OkStatus();
    tried.kind = FactorKind::kReduction;
    for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
      tried.reduction = op;
      SHARDCALL_ASSIGN_OR_RETURN(local, IsLocal({{atom, tried}}));
      if (!local) continue;
      SHARDCALL_ASSIGN_OR_RETURN(local, HalvesMakeTheWhole(body_, atom, op));
      if (!local) continue;
      *f = tried;
      SHARDCALL_ASSIGN_OR_RETURN(const std::optional<double> pad, PadOf(body_, atom, op));
      f->has_pad = pad.has_value();
      f->pad = pad.value_or(0);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status CheckPairs() {
    auto shards = [](const Factor& f) { return f.kind != FactorKind::kNeedReplication; };
    for (auto a = factors_.begin(); a != factors_.end(); ++a) {
      for (auto b = std::next(a); b != factors_.end(); ++b) {
        if (!shards(a->second) || !shards(b->second)) continue;
        SHARDCALL_ASSIGN_OR_RETURN(const bool local,
                                   IsLocal({{a->first, a->second}, {b->first, b->second}}));
        if (local) continue;
        b->second.kind = FactorKind::kNeedReplication;
        b->second.has_pad = b->second.blocked = false;
      }
    }
    return absl::OkStatus();
  }

  RuleAlternative Text() const {
    RuleAlternative out;
    std::map<int, std::string> names;
    std::set<std::string> alone, cut;
    int next = 0;
    for (size_t t = 0; t < static_cast<size_t>(body_.num_tensors()); ++t) {
      std::vector<std::string> dims;
      for (const auto& atoms : body_.dims(static_cast<int>(t))) {
        std::vector<std::string> dim;
        for (int a : atoms) {
          // A dimension that a tensor has twice is one factor in each place.
          auto [it, first] = names.try_emplace(a, "");
          const bool fresh = first || body_.Twice(a);
          if (fresh) it->second = FactorName(next++);
          dim.push_back(it->second);
          if (!fresh) continue;
          const Factor& f = factors_.at(a);
          if (f.kind == FactorKind::kNeedReplication) {
            out.text.need_replication.push_back(it->second);
          } else if (f.kind == FactorKind::kReduction) {
            out.text.reduction.emplace_back(it->second, f.reduction);
          }
          if (f.blocked) out.text.blocked.push_back(it->second);
          if (f.has_pad) out.text.pad.emplace_back(it->second, f.pad);
        }
        (dim.size() == 1 ? alone : cut).insert(dim.begin(), dim.end());
        dims.push_back(dim.size() == 1 ? dim[0] : absl::StrCat("(", absl::StrJoin(dim, " "), ")"));
      }
      absl::StrAppend(&out.text.rule,
                      static_cast<int>(t) == body_.num_operands() ? " -> "
                      : t > 0                                     ? ", "
                                                                  : "",
                      absl::StrJoin(dims, " "));
    }
    for (const auto& [a, name] : names) {
      if (cut.count(name) == 0 || alone.count(name) > 0) continue;
      // The size of the most major atom follows from the call; the others have the reference's
      // sizes.
      bool major = false;
      for (int t = 0; t < body_.num_tensors(); ++t) {
        for (const auto& dim : body_.dims(t)) major = major || (dim.size() > 1 && dim[0] == a);
      }
      if (!major) out.text.sizes.emplace_back(name, body_.sizes().at(a));
    }
    std::vector<std::string> types[2];
    bool one_type = true;
    for (int t = 0; t < body_.num_tensors(); ++t) {
      one_type = one_type && body_.type(t) == body_.type(0);
    }
    for (int t = 0; t < body_.num_tensors(); ++t) {
      types[t >= body_.num_operands()].push_back(
          one_type ? "T" : std::string(ElementTypeName(body_.type(t))));
    }
    out.types = absl::StrCat(absl::StrJoin(types[0], ", "), " -> ", absl::StrJoin(types[1], ", "));
    return out;
  }

  const ReferenceBody& body_;
  const TargetRegistry& targets_;
  std::map<int, Factor> factors_;
};

}  // namespace

absl::StatusOr<RuleAlternative> RuleOfReference(const std::string& hlo,
                                                const TargetRegistry& targets) {
  SHARDCALL_ASSIGN_OR_RETURN(const ReferenceBody body, ReferenceBody::Read(hlo, targets));
  return RuleFinder(body, targets).Run();
}

}  // namespace shardcall
