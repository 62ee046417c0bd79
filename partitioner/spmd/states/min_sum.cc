// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/min_sum.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {
namespace {

class Eliminator {
 public:
  Eliminator(absl::Span<const int> sizes, std::vector<CostTable> tables, size_t most)
      : sizes_(sizes),
        tables_(std::move(tables)),
        most_(most),
        of_variable_(sizes.size()),
        values_(sizes.size(), 0) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      for (int v : tables_[t].variables) of_variable_[v].push_back(static_cast<int>(t));
    }
  }

  std::vector<int> Run() {
    // By the size of the table that eliminating a variable makes. It changes as others are
    // eliminated, so that it is looked at again when its turn comes.
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (size_t v = 0; v < sizes_.size(); ++v) {
      if (sizes_[v] > 1) queue.push({JointSize(static_cast<int>(v)), static_cast<int>(v)});
    }
    while (!queue.empty()) {
      const auto [size, v] = queue.top();
      queue.pop();
      const double now = JointSize(v);
      if (now > size) {
        queue.push({now, v});
      } else if (now > static_cast<double>(most_)) {
        Fix(v);
      } else {
        Eliminate(v);
      }
    }
    std::vector<int> out(sizes_.size(), 0);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      out[step->variable] = step->choice[IndexIn(step->neighbours, out)];
    }
    return out;
  }

 private:
  struct Step {
    int variable;
    absl::InlinedVector<int, 4> neighbours;
    std::vector<int> choice;  // by the values of the neighbours
  };

  absl::InlinedVector<int, 4> Neighbours(int v) const {
    absl::InlinedVector<int, 4> out;
    for (int t : of_variable_[v]) {
      for (int u : tables_[t].variables) {
        if (u != v && sizes_[u] > 1 && !absl::c_linear_search(out, u)) out.push_back(u);
      }
    }
    absl::c_sort(out);
    return out;
  }

  double JointSize(int v) const {
    double size = sizes_[v];
    for (int u : Neighbours(v)) size *= sizes_[u];
    return size;
  }

  template <typename Values>
  size_t IndexIn(absl::Span<const int> variables, const Values& values) const {
    size_t index = 0;
    for (int v : variables) index = index * sizes_[v] + values[v];
    return index;
  }

  absl::InlinedVector<int, 8> SizesOf(absl::Span<const int> variables) const {
    absl::InlinedVector<int, 8> out;
    for (int v : variables) out.push_back(sizes_[v]);
    return out;
  }

  void Remove(int t) {
    for (int v : tables_[t].variables) std::erase(of_variable_[v], t);
  }

  void Eliminate(int v) {
    Step step{v, Neighbours(v), {}};
    const std::vector<int> joined = of_variable_[v];
    CostTable made;
    made.variables = step.neighbours;
    std::vector<int>& values = values_;
    ForAllValues(SizesOf(step.neighbours), [&](absl::Span<const int> at) {
      for (size_t k = 0; k < at.size(); ++k) values[step.neighbours[k]] = at[k];
      double least = std::numeric_limits<double>::infinity();
      int choice = 0;
      for (int own = 0; own < sizes_[v]; ++own) {
        values[v] = own;
        double sum = 0;
        for (int t : joined) sum += tables_[t].cost[IndexIn(tables_[t].variables, values)];
        if (sum < least) least = sum, choice = own;
      }
      made.cost.push_back(least);
      step.choice.push_back(choice);
    });
    for (int t : joined) Remove(t);
    for (int u : made.variables) of_variable_[u].push_back(static_cast<int>(tables_.size()));
    tables_.push_back(std::move(made));
    steps_.push_back(std::move(step));
  }

  // Its first value is taken.
  void Fix(int v) {
    const std::vector<int> joined = of_variable_[v];
    std::vector<int>& values = values_;
    for (int t : joined) {
      CostTable made;
      for (int u : tables_[t].variables) {
        if (u != v) made.variables.push_back(u);
      }
      values[v] = 0;
      ForAllValues(SizesOf(made.variables), [&](absl::Span<const int> at) {
        for (size_t k = 0; k < at.size(); ++k) values[made.variables[k]] = at[k];
        made.cost.push_back(tables_[t].cost[IndexIn(tables_[t].variables, values)]);
      });
      std::erase(of_variable_[v], t);
      tables_[t] = std::move(made);
    }
  }

  const absl::Span<const int> sizes_;
  std::vector<CostTable> tables_;
  const size_t most_;
  std::vector<std::vector<int>> of_variable_;  // tables
  std::vector<Step> steps_;
  std::vector<int> values_;  // of the variables that a table is made for
};

}  // namespace

std::vector<int> MinimizeSum(absl::Span<const int> sizes, std::vector<CostTable> tables,
                             size_t most) {
  return Eliminator(sizes, std::move(tables), most).Run();
}

}  // namespace internal
}  // namespace shardcall
