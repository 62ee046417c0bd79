// SPDX-License-Identifier: Apache-2.0
#include "tests/plan_search/search.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"
#include "shardcall/partitioner/spmd/states/narrowed_results.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

// A value that may have any of these shardings.
struct Open {
  LeafId leaf;  // canonical
  std::vector<const Sharding*> states;
};

// All shardings of whole axes that divide the dimensions evenly.
std::vector<const Sharding*> AllStates(Context& context, const BaseMesh& mesh, const Shape& shape) {
  std::vector<const Sharding*> out;
  std::vector<AxisRef> axes;
  for (int a = 0; a < mesh.num_axes(); ++a) axes.push_back(mesh.FullAxis(a));
  // Each axis goes to no dimension, or to the front or the back of what one has.
  std::vector<ShardingBuilder> made = {ShardingBuilder(&mesh, shape.rank())};
  for (const AxisRef& axis : axes) {
    const std::vector<ShardingBuilder> before = made;
    for (const ShardingBuilder& b : before) {
      for (int d = 0; d < shape.rank(); ++d) {
        ShardingBuilder back = b;
        back.dims[d].push_back(axis);
        if (shape.dim(d) % AxesSize(back.dims[d]) != 0) continue;
        made.push_back(back);
        if (b.dims[d].empty()) continue;
        ShardingBuilder front = b;
        front.dims[d].insert(front.dims[d].begin(), axis);
        made.push_back(front);
      }
    }
  }
  for (const ShardingBuilder& b : made) out.push_back(b.Intern(context));
  return out;
}

std::vector<Open> OpenValues(const Program& program) {
  const Module& module = program.module;
  const LeafTable& leaves = program.leaves;
  std::vector<bool> fixed(leaves.num_leaves(), false);
  for (int l = 0; l < leaves.num_leaves(); ++l) {
    const LeafId leaf(l);
    const Instruction& instr = module.instr(leaves.instr(leaf));
    const Shape* shape = program.LeafShape(leaf);
    const bool given = instr.opcode == Opcode::kConstant ||
                       (instr.opcode == Opcode::kParameter && instr.computation == module.entry());
    if (given || program.constraints[l] != nullptr || !shape->IsArray() || shape->rank() == 0) {
      fixed[leaves.canonical(leaf).value] = true;
    }
  }
  const InstrId root = module.comp(module.entry()).root;
  for (int k = 0; k < module.instr(root).shape->num_leaves(); ++k) {
    if (program.may_set_output[k]) fixed[leaves.canonical(root, k).value] = true;
  }
  std::vector<bool> planned(module.num_computations(), false);
  for (CompId c : PartitionedComputations(program, ComputationPostOrder(module))) {
    planned[c.value] = true;
  }
  std::vector<Open> out;
  for (int l = 0; l < leaves.num_leaves(); ++l) {
    const LeafId leaf(l);
    if (leaves.canonical(leaf) != leaf || fixed[l]) continue;
    if (!planned[module.instr(leaves.instr(leaf)).computation.value]) continue;
    out.push_back({leaf, AllStates(module.context(), *program.mesh, *program.LeafShape(leaf))});
  }
  return out;
}

class Search {
 public:
  Search(PropagatedProgram& program, const SpmdOptions& options)
      : program_(program),
        options_(options),
        shardings_(program.shardings),
        open_(OpenValues(program.program)) {}

  absl::StatusOr<SearchResult> Run(const Plan& own, int64_t most) {
    SearchResult out;
    out.seconds = out.best_seconds = own.seconds;
    out.bytes = out.best_bytes = own.bytes;
    double count = 1;
    for (const Open& v : open_) count *= static_cast<double>(v.states.size());
    if (count > static_cast<double>(most)) return out;
    std::vector<size_t> at(open_.size(), 0);
    for (size_t k = 0; k < open_.size(); ++k) Set(k, 0);
    std::vector<const Sharding*> best;
    for (bool more = true; more;) {
      absl::StatusOr<Plan> plan = Make();
      ++out.tried;
      if (plan.ok() && plan->seconds < out.best_seconds * (1 - 1e-9)) {
        out.best_seconds = plan->seconds;
        out.best_bytes = plan->bytes;
        best = shardings_.sharding;
      }
      more = false;
      for (size_t k = 0; k < open_.size() && !more; ++k) {
        at[k] = (at[k] + 1) % open_[k].states.size();
        Set(k, at[k]);
        more = at[k] != 0;
      }
    }
    if (best.empty()) return out;
    const Module& module = program_.program.module;
    for (const Open& v : open_) {
      const Sharding *mine = program_.shardings.sharding[v.leaf.value],
                     *theirs = best[v.leaf.value];
      if (mine == theirs) continue;
      absl::StrAppend(&out.best, "  %", module.instr(program_.program.leaves.instr(v.leaf)).name,
                      " ", program_.program.leaves.index(v.leaf), ": ", mine->ToString(), " -> ",
                      theirs->ToString(), "\n");
    }
    return out;
  }

 private:
  absl::StatusOr<Plan> Make() {
    return MakeNarrowPlan(program_.program, shardings_, *program_.rules, options_, &memo_);
  }

  void Set(size_t k, size_t state) {
    const LeafTable& leaves = program_.program.leaves;
    const Sharding* const s = open_[k].states[state];
    const LeafId leaf = open_[k].leaf;
    if (members_.empty()) {
      members_.resize(leaves.num_leaves());
      for (int l = 0; l < leaves.num_leaves(); ++l) {
        members_[leaves.canonical(LeafId(l)).value].push_back(l);
      }
    }
    for (uint32_t l : members_[leaf.value]) shardings_.sharding[l] = s;
  }

  PropagatedProgram& program_;
  const SpmdOptions options_;
  PropagationResult shardings_;
  const std::vector<Open> open_;
  PlanMemo memo_;
  std::vector<std::vector<uint32_t>> members_;  // by canonical leaf
};

}  // namespace

absl::StatusOr<SearchResult> SearchPlans(const std::string& text, int64_t most,
                                         StateSearch search) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(text),
                                         std::make_shared<Context>(), "graph.hlo", &TestTargets()));
  PartitionOptions options;
  options.targets = &TestTargets();
  options.spmd.search = search;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options));
  options.spmd.search = StateSearch::kAll;  // ops have as many candidates, whoever is compared
  return Search(*program->global, options.spmd).Run(program->plan, most);
}

}  // namespace shardcall
