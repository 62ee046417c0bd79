// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/draws.h"

#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"

namespace shardcall {
inline namespace internal {
namespace {

// For each device: the device with the same manual coordinate, and the free-axes coordinate of
// `device`.
std::vector<int> StandsThere(const Program& program, InstrId id, int64_t device) {
  const BaseMesh& mesh = *program.mesh;
  const AxisList free = FreeAxes(program, id);
  const absl::Span<const AxisRef> manual = program.manual_axes(id);
  const int n = static_cast<int>(program.num_partitions);
  const int64_t there = mesh.Coordinate(free, mesh.order().PositionOf(device));
  std::vector<int> by_manual(n, 0), out;
  for (int d = 0; d < n; ++d) {
    const int64_t position = mesh.order().PositionOf(d);
    if (mesh.Coordinate(free, position) == there) by_manual[mesh.Coordinate(manual, position)] = d;
  }
  for (int d = 0; d < n; ++d) {
    out.push_back(by_manual[mesh.Coordinate(manual, mesh.order().PositionOf(d))]);
  }
  return out;
}

class Walk {
 public:
  explicit Walk(const Program& program) : program_(program) {}

  absl::flat_hash_map<std::string, std::vector<int>> Run() {
    std::vector<int> own(program_.num_partitions);
    std::iota(own.begin(), own.end(), 0);
    const Module& m = program_.module;
    for (CompId c : PartitionedComputations(program_, ComputationPostOrder(m))) {
      for (InstrId id : m.comp(c).instructions) {
        const int64_t device = RunsOnDevice(program_, id);
        const Instruction& instr = m.instr(id);
        if (IsDrawnOnce(instr)) {
          Note(instr, device < 0 ? own : StandsThere(program_, id, device));
        } else if (device >= 0) {
          NoteCalled(instr, StandsThere(program_, id, device));
        }
      }
    }
    for (const std::string& name : ambiguous_) found_.erase(name);
    return std::move(found_);
  }

 private:
  void Note(const Instruction& instr, const std::vector<int>& devices) {
    const auto [it, inserted] = found_.try_emplace(std::string(instr.name), devices);
    if (!inserted && it->second != devices) ambiguous_.insert(it->first);
  }
  // Notes the draws in computations called by an op that one device runs.
  void NoteCalled(const Instruction& instr, const std::vector<int>& devices) {
    const Module& m = program_.module;
    std::vector<CompId> work;
    absl::flat_hash_set<CompId> seen;
    const auto push = [&](const Instruction& i) {
      for (CompId c : CalledComputations(m, i)) {
        if (seen.insert(c).second) work.push_back(c);
      }
    };
    for (push(instr); !work.empty();) {
      const Computation& comp = m.comp(work.back());
      work.pop_back();
      for (InstrId id : comp.instructions) {
        push(m.instr(id));
        if (IsDrawnOnce(m.instr(id))) Note(m.instr(id), devices);
      }
    }
  }

  const Program& program_;
  absl::flat_hash_map<std::string, std::vector<int>> found_;
  absl::flat_hash_set<std::string> ambiguous_;
};

}  // namespace

absl::flat_hash_map<std::string, std::vector<int>> DrawingDevices(const Program& program) {
  return Walk(program).Run();
}

}  // namespace internal
}  // namespace shardcall
