// SPDX-License-Identifier: Apache-2.0
#include "tests/plan_search/small_graphs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/fuzz/generator/random.h"

namespace shardcall {
namespace {

using Dims = std::vector<int64_t>;

struct Value {
  std::string name;
  Dims dims;
  int uses = 0;
};

std::string ArrayText(const Dims& dims) {
  return absl::StrCat("f32[", absl::StrJoin(dims, ","), "]");
}

class Builder {
 public:
  Builder(uint64_t seed, const SmallGraphOptions& options)
      : random_(seed * 0x9e3779b97f4a7c15u + 7), options_(options) {
    axes_ = random_.Pick(std::vector<Dims>{{4}, {8}, {8}, {2, 4}, {4, 2}});
  }

  std::string Run() {
    const int ops = static_cast<int>(random_.Int(2, options_.most_ops));
    const int arguments = static_cast<int>(random_.Int(1, 3));
    for (int k = 0; k < arguments; ++k) Argument(RandomDims());
    ops_ = 0;
    if (options_.loops && ops >= 3 && random_.Chance(25)) {
      for (int k = 0; k < 2 && random_.Chance(40); ++k) Op(&entry_, &values_);
      Loop(static_cast<int>(random_.Int(1, 3)));
    }
    while (ops_ < ops) Op(&entry_, &values_);
    return Text();
  }

 private:
  Dims RandomDims() {
    static const auto* const kSizes = new Dims{128, 256, 256, 512, 512, 1024, 2048};
    Dims dims(random_.Chance(85) ? 2 : 1);
    for (int64_t& d : dims) d = random_.Pick(*kSizes);
    return dims;
  }

  // Whole axes at random places.
  std::string Sharding(int rank) {
    std::vector<std::string> dims(rank);
    std::vector<int> order(axes_.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int>(k);
    random_.Shuffle(&order);
    for (int axis : order) {
      const int64_t place = random_.Int(-1, rank);
      if (place < 0 || place == rank) continue;
      absl::StrAppend(&dims[place], dims[place].empty() ? "" : ", ", "'", kNames[axis], "'");
    }
    for (std::string& d : dims) d = absl::StrCat("{", d, "}");
    std::vector<std::string> mesh;
    for (size_t k = 0; k < axes_.size(); ++k) {
      mesh.push_back(absl::StrCat("'", kNames[k], "'=", axes_[k]));
    }
    return absl::StrCat("{mesh[", absl::StrJoin(mesh, ","), "], [", absl::StrJoin(dims, ", "),
                        "]}");
  }

  Value& Argument(const Dims& dims) {
    const std::string name = absl::StrCat("a", arguments_);
    absl::StrAppend(&entry_, "  ", name, " = ", ArrayText(dims), " parameter(", arguments_++,
                    "), sharding=", Sharding(static_cast<int>(dims.size())), "\n");
    values_.push_back({name, dims});
    return values_.back();
  }

  // Late values more often, and those that nothing reads yet.
  size_t Any(const std::vector<Value>& values) {
    const int64_t n = static_cast<int64_t>(values.size());
    size_t at = std::max(random_.Int(0, n - 1), random_.Int(0, n - 1));
    for (int k = 0; k < 3 && values[at].uses > 0; ++k) at = random_.Int(0, n - 1);
    return at;
  }
  // One of that shape, or -1.
  int Like(const std::vector<Value>& values, const Dims& dims, size_t other_than) {
    std::vector<int> same;
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k].dims == dims && k != other_than) same.push_back(static_cast<int>(k));
    }
    return same.empty() ? -1 : random_.Pick(same);
  }

  void Add(std::string* text, std::vector<Value>* values, const Dims& dims, const std::string& op) {
    const std::string name = absl::StrCat("v", names_++);
    absl::StrAppend(text, "  ", name, " = ", ArrayText(dims), " ", op, "\n");
    values->push_back({name, dims});
    ++ops_;
  }

  // May need an argument; in a loop it then does nothing.
  void Op(std::string* text, std::vector<Value>* values) {
    const bool entry = text == &entry_;
    const size_t at = Any(*values);
    const Dims dims = (*values)[at].dims;
    const std::string x = (*values)[at].name;
    const int rank = static_cast<int>(dims.size());
    const auto use = [&](size_t k) { ++(*values)[k].uses; };
    switch (random_.Int(0, 9)) {
      case 0:
        use(at);
        Add(text, values, dims, absl::StrCat(random_.Chance(50) ? "tanh(" : "negate(", x, ")"));
        return;
      case 1:
      case 2: {
        int other = Like(*values, dims, at);
        if (other < 0 && entry && random_.Chance(50)) {
          Argument(dims);
          other = static_cast<int>(values->size()) - 1;
        }
        if (other < 0) return;
        use(at), use(other);
        Add(text, values, dims,
            absl::StrCat(random_.Chance(60) ? "add(" : "multiply(", x, ", ", (*values)[other].name,
                         ")"));
        return;
      }
      case 3:
      case 4:
      case 5: Dot(text, values, at); return;
      case 6:
        if (rank < 2) return;
        use(at);
        Add(text, values, {dims[1], dims[0]}, absl::StrCat("transpose(", x, "), dimensions={1,0}"));
        return;
      case 7: {
        if (rank < 2) return;
        use(at);
        const int64_t dim = random_.Int(0, 1);
        Add(text, values, {dims[1 - dim]},
            absl::StrCat("reduce(", x, ", zero), dimensions={", dim, "}, to_apply=sum"));
        return;
      }
      case 8: {
        if (rank != 1) return;
        use(at);
        const int64_t dim = random_.Int(0, 1);
        Dims out(2, 512);
        out[dim] = dims[0];
        Add(text, values, out, absl::StrCat("broadcast(", x, "), dimensions={", dim, "}"));
        return;
      }
      default: {
        const int64_t dim = random_.Int(0, rank - 1);
        if (dims[dim] < 256) return;
        use(at);
        Dims out = dims;
        out[dim] /= 2;
        std::vector<std::string> ranges;
        for (int d = 0; d < rank; ++d) ranges.push_back(absl::StrCat("[0:", out[d], "]"));
        Add(text, values, out,
            absl::StrCat("slice(", x, "), slice={", absl::StrJoin(ranges, ", "), "}"));
      }
    }
  }

  void Dot(std::string* text, std::vector<Value>* values, size_t at) {
    const Dims dims = (*values)[at].dims;
    if (dims.size() < 2) return;
    const int64_t lhs = random_.Int(0, 1);
    std::vector<std::pair<int, int>> fit;  // value, contracted dimension
    for (size_t k = 0; k < values->size(); ++k) {
      const Dims& other = (*values)[k].dims;
      for (int d = 0; d < static_cast<int>(other.size()); ++d) {
        if (other.size() == 2 && other[d] == dims[lhs]) fit.push_back({static_cast<int>(k), d});
      }
    }
    if (text == &entry_ && (fit.empty() || random_.Chance(50))) {
      Dims weight = RandomDims();
      if (weight.size() < 2) weight.push_back(512);
      const int d = static_cast<int>(random_.Int(0, 1));
      weight[d] = dims[lhs];
      Argument(weight);
      fit = {{static_cast<int>(values->size()) - 1, d}};
    }
    if (fit.empty()) return;
    const auto [other, rhs] = random_.Pick(fit);
    ++(*values)[at].uses, ++(*values)[other].uses;
    Add(text, values, {dims[1 - lhs], (*values)[other].dims[1 - rhs]},
        absl::StrCat("dot(", (*values)[at].name, ", ", (*values)[other].name,
                     "), lhs_contracting_dims={", lhs, "}, rhs_contracting_dims={", rhs, "}"));
  }

  // Sixteen iterations over up to three values, the first of which the body changes.
  void Loop(int ops) {
    std::vector<Value> carried;
    std::vector<std::string> init, types = {"s32[]"};
    for (int k = 0; k < 3; ++k) {
      const size_t at = Any(values_);
      ++values_[at].uses;
      init.push_back(values_[at].name);
      types.push_back(ArrayText(values_[at].dims));
      carried.push_back({absl::StrCat("c", k), values_[at].dims});
    }
    const std::string tuple = absl::StrCat("(", absl::StrJoin(types, ", "), ")");
    std::string body = absl::StrCat(
        "body {\n  b = ", tuple, " parameter(0)\n  i = s32[] get-tuple-element(b), index=0\n",
        "  one = s32[] constant(1)\n  zero = f32[] constant(0)\n  n = s32[] add(i, one)\n");
    for (int k = 0; k < 3; ++k) {
      absl::StrAppend(&body, "  c", k, " = ", types[k + 1], " get-tuple-element(b), index=", k + 1,
                      "\n");
    }
    const size_t given = carried.size();
    for (int tries = 0; static_cast<int>(carried.size() - given) < ops && tries < 20; ++tries)
      Op(&body, &carried);
    // The latest of each shape is what the next iteration has.
    std::vector<std::string> next = {"n"};
    for (int k = 0; k < 3; ++k) {
      std::string name = carried[k].name;
      for (size_t v = given; v < carried.size(); ++v) {
        const bool taken = std::find(next.begin(), next.end(), carried[v].name) != next.end();
        if (carried[v].dims == carried[k].dims && !taken) name = carried[v].name;
      }
      next.push_back(name);
    }
    computations_ = absl::StrCat(
        body, "  ROOT r = ", tuple, " tuple(", absl::StrJoin(next, ", "), ")\n}\n",
        "condition {\n  b = ", tuple, " parameter(0)\n  i = s32[] get-tuple-element(b), index=0\n",
        "  trips = s32[] constant(16)\n  ROOT l = pred[] compare(i, trips), direction=LT\n}\n");
    absl::StrAppend(&entry_, "  start = s32[] constant(0)\n  init = ", tuple, " tuple(start, ",
                    absl::StrJoin(init, ", "), ")\n  loop = ", tuple,
                    " while(init), condition=condition, body=body\n");
    for (int k = 0; k < 3; ++k) {
      if (next[k + 1] == carried[k].name && random_.Chance(60)) continue;
      absl::StrAppend(&entry_, "  w", k, " = ", types[k + 1],
                      " get-tuple-element(loop), index=", k + 1, "\n");
      values_.push_back({absl::StrCat("w", k), carried[k].dims});
    }
  }

  std::string Text() {
    std::vector<std::string> names, types, shardings;
    std::vector<bool> open;
    for (const Value& v : values_) {
      if (v.uses > 0 || v.name[0] == 'a') continue;
      names.push_back(v.name);
      types.push_back(ArrayText(v.dims));
      open.push_back(random_.Chance(50));
      shardings.push_back(Sharding(static_cast<int>(v.dims.size())));
    }
    if (names.empty()) return "";
    std::string identities, flags;
    for (size_t k = 0; k < names.size(); ++k) {
      absl::StrAppend(&flags, k == 0 ? "" : ",", "true");
      if (open[k]) continue;
      absl::StrAppend(&identities, "  r", k, " = ", types[k], " custom-call(", names[k],
                      "), custom_call_target=\"Sharding\", sharding=", shardings[k], "\n");
      names[k] = absl::StrCat("r", k);
    }
    return absl::StrCat("HloModule graph, allow_spmd_sharding_propagation_to_output={", flags,
                        "}, num_partitions=", axes_.size() == 1 ? axes_[0] : axes_[0] * axes_[1],
                        "\n",
                        "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = "
                        "f32[] add(x, y)\n}\n",
                        computations_, "ENTRY main {\n  zero = f32[] constant(0)\n", entry_,
                        identities, "  ROOT root = (", absl::StrJoin(types, ", "), ") tuple(",
                        absl::StrJoin(names, ", "), ")\n}\n");
  }

  static constexpr const char* kNames[] = {"a", "b"};
  Random random_;
  const SmallGraphOptions options_;
  Dims axes_;
  std::string entry_, computations_;
  std::vector<Value> values_;
  int arguments_ = 0, names_ = 0, ops_ = 0;
};

}  // namespace

std::string SmallGraph(uint64_t seed, const SmallGraphOptions& options) {
  return Builder(seed, options).Run();
}

}  // namespace shardcall
