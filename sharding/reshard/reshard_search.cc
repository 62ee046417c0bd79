// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

// Axis parts are cut at every boundary that occurs in either end; the pieces are called atoms. A
// state is a list of atoms per dimension and a set of partial atoms. It is encoded as bytes: atoms
// of dimension 0, '|', atoms of dimension 1, '|', .., then the partial atoms in increasing order.
using State = absl::InlinedVector<uint8_t, 40>;
constexpr char kSep = '|';
constexpr char kAtomBase = '\x80' + 0;  // atoms are bytes above ASCII

struct Node {
  double cost;
  State state;
  bool operator<(const Node& o) const {  // smallest cost first, then by state
    return cost != o.cost ? cost > o.cost : state > o.state;
  }
};
struct Step {
  State previous;
  Move move;
  double cost;
};
// Storage that successive searches in one Context reuse.
struct Scratch {
  std::vector<Node> queue;  // a heap
  absl::flat_hash_map<State, Step> best;
};

class Search {
 public:
  Search(Context& context, const Shape* global, const Sharding* from, const Sharding* to)
      : context_(context),
        global_(global),
        from_(from),
        to_(to),
        mesh_(from->mesh()),
        queue_(context.Get<Scratch>().queue),
        best_(context.Get<Scratch>().best) {
    queue_.clear();
    best_.clear();
    MakeAtoms();
  }

  void Run(std::vector<Move>* moves);

 private:
  using Lists = absl::InlinedVector<std::string, 6>;  // [rank] dims, then partial

  void MakeAtoms();
  std::string Atoms(absl::Span<const AxisRef> axes) const;
  AxisList Axes(const std::string& atoms) const;
  int64_t Size(const std::string& atoms) const;
  Lists Split(const State& s) const;
  State Join(const Lists& l) const;
  const Sharding* ToSharding(const Lists& l) const;

  int64_t Tile(int d, const std::string& atoms) const {
    return CeilDiv(global_->dim(d), Size(atoms));
  }
  double LocalBytes(const Lists& l) const {
    double n = std::max(1, ElementTypeBytes(global_->element_type()));
    for (int d = 0; d < rank(); ++d) n *= Tile(d, l[d]);
    return n;
  }
  // Scales `bytes` from the tiles of dimension d over `from` to those over `to`. Empty arrays have
  // no bytes to scale.
  double Padded(double bytes, int d, const std::string& from, const std::string& to) const {
    return bytes == 0 ? 0 : bytes / Tile(d, from) * Tile(d, to);
  }
  int rank() const { return global_->rank(); }
  // Whether `minor` can be all-gathered or sliced in a dimension that stays sharded by `major`
  // without a re-tile.
  bool Nests(int d, const std::string& major, const std::string& minor) const {
    return major.empty() || Tile(d, major) == Tile(d, major + minor) * Size(minor);
  }
  bool IsFree(const Lists& l, char atom) const {
    for (const std::string& s : l) {
      if (s.find(atom) != std::string::npos) return false;
    }
    return true;
  }
  static bool StartsWith(const std::string& s, const std::string& prefix) {
    return s.compare(0, prefix.size(), prefix) == 0;
  }

  void Push(Node node) {
    queue_.push_back(std::move(node));
    std::push_heap(queue_.begin(), queue_.end());
  }
  void Expand(const Node& node);
  void Try(const Node& node, Lists next, MoveKind kind, const std::string& atoms, int dim, int dim2,
           double bytes);
  void ExpandGathers(const Node& node, const Lists& l);
  void ExpandSlices(const Node& node, const Lists& l);
  void ExpandPartial(const Node& node, const Lists& l);
  void ExpandToPartial(const Node& node, const Lists& l);
  void ExpandPermutes(const Node& node, const Lists& l);

  Context& context_;
  const Shape* global_;
  const Sharding* from_;
  const Sharding* to_;
  const BaseMesh* mesh_;
  absl::InlinedVector<AxisRef, 8> atoms_;
  Lists target_;
  State goal_;
  // A lower bound of the cost of the last move, and the cost of the cheapest chain so far.
  double goal_bytes_ = 0, goal_cost_ = std::numeric_limits<double>::infinity();
  std::vector<Node>& queue_;
  absl::flat_hash_map<State, Step>& best_;
};

void Search::MakeAtoms() {
  absl::InlinedVector<absl::InlinedVector<int64_t, 6>, 4> cuts(mesh_->num_axes());
  for (const Sharding* s : {from_, to_}) {
    auto add = [&](absl::Span<const AxisRef> axes) {
      for (AxisRef a : axes) {
        cuts[a.axis].push_back(a.pre_size);
        cuts[a.axis].push_back(int64_t{a.pre_size} * a.size);
      }
    };
    for (int d = 0; d < s->rank(); ++d) add(s->dim(d));
    add(s->partial());
  }
  for (int axis = 0; axis < mesh_->num_axes(); ++axis) {
    auto& c = cuts[axis];
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    for (size_t i = 0; i + 1 < c.size(); ++i) {
      atoms_.push_back({static_cast<uint16_t>(axis), static_cast<uint32_t>(c[i]),
                        static_cast<uint32_t>(c[i + 1] / c[i])});
    }
  }
  SHARDCALL_CHECK(atoms_.size() < 100);
}

std::string Search::Atoms(absl::Span<const AxisRef> axes) const {
  std::string out;
  for (AxisRef a : axes) {
    for (size_t i = 0; i < atoms_.size(); ++i) {
      const AxisRef& t = atoms_[i];
      if (t.axis == a.axis && t.pre_size >= a.pre_size &&
          int64_t{t.pre_size} * t.size <= int64_t{a.pre_size} * a.size) {
        out.push_back(static_cast<char>(kAtomBase + i));
      }
    }
  }
  return out;
}

AxisList Search::Axes(const std::string& atoms) const {
  AxisList raw;
  for (char c : atoms) raw.push_back(atoms_[static_cast<unsigned char>(c - kAtomBase)]);
  return Canonical(*mesh_, raw);
}

int64_t Search::Size(const std::string& atoms) const {
  int64_t n = 1;
  for (char c : atoms) n *= atoms_[static_cast<unsigned char>(c - kAtomBase)].size;
  return n;
}

Search::Lists Search::Split(const State& s) const {
  Lists out(1);
  for (uint8_t c : s) {
    if (c == kSep) {
      out.emplace_back();
    } else {
      out.back().push_back(static_cast<char>(c));
    }
  }
  return out;
}

State Search::Join(const Lists& l) const {
  State s;
  for (size_t i = 0; i < l.size(); ++i) {
    if (i) s.push_back(kSep);
    for (char c : l[i]) s.push_back(static_cast<uint8_t>(c));
  }
  return s;
}

const Sharding* Search::ToSharding(const Lists& l) const {
  ShardingBuilder b(mesh_, rank());
  for (int d = 0; d < rank(); ++d) b.dims[d] = Axes(l[d]);
  b.partial = Axes(l[rank()]);
  b.partial_op = from_->partial().empty() ? to_->partial_op() : from_->partial_op();
  b.manual.assign(from_->manual().begin(), from_->manual().end());
  return b.Intern(context_);
}

void Search::Try(const Node& node, Lists next, MoveKind kind, const std::string& atoms, int dim,
                 int dim2, double bytes) {
  // A small cost for local work and start-up breaks ties between chains of equal bytes.
  const double cost = node.cost + bytes + 1e-3 * LocalBytes(next) + 64;
  if (cost >= goal_cost_) return;
  std::sort(next[rank()].begin(), next[rank()].end());
  State state = Join(next);
  if (state == goal_) {
    goal_cost_ = std::min(goal_cost_, cost);
  } else if (cost + goal_bytes_ + 64 >= goal_cost_) {
    return;  // every chain through here ends in a move to the goal
  }
  auto [it, fresh] = best_.try_emplace(state);
  if (!fresh && it->second.cost <= cost) return;
  it->second = Step{node.state, Move{kind, Axes(atoms), dim, dim2, nullptr, nullptr, bytes}, cost};
  Push({cost, std::move(state)});
}

void Search::ExpandGathers(const Node& node, const Lists& l) {
  const double local = LocalBytes(l);
  for (int d = 0; d < rank(); ++d) {
    for (size_t k = 1; k <= l[d].size(); ++k) {
      const std::string major = l[d].substr(0, l[d].size() - k);
      const std::string minor = l[d].substr(l[d].size() - k);
      if (!Nests(d, major, minor)) continue;
      const double g = Size(minor);
      Lists next = l;
      next[d] = major;
      const double gathered = CollectiveBytes(MoveKind::kAllGather, local, g);
      if (node.cost + gathered < goal_cost_) {
        Try(node, next, MoveKind::kAllGather, minor, d, -1, gathered);
      }
      for (int q = 0; q < rank(); ++q) {
        if (q == d || !Nests(q, l[q], minor)) continue;
        if (!std::all_of(minor.begin(), minor.end(),
                         [&](char c) { return target_[q].find(c) != std::string::npos; })) {
          continue;
        }
        Lists moved = next;
        moved[q] += minor;
        const double padded = Padded(local, q, l[q], moved[q]) * g;
        Try(node, moved, MoveKind::kAllToAll, minor, d, q,
            CollectiveBytes(MoveKind::kAllToAll, padded, g));
      }
    }
  }
}

void Search::ExpandSlices(const Node& node, const Lists& l) {
  for (int d = 0; d < rank(); ++d) {
    if (!StartsWith(target_[d], l[d])) continue;
    for (size_t k = 1; l[d].size() + k <= target_[d].size(); ++k) {
      const std::string minor = target_[d].substr(l[d].size(), k);
      if (!IsFree(l, minor.back())) break;
      if (!Nests(d, l[d], minor)) continue;
      Lists next = l;
      next[d] += minor;
      Try(node, next, MoveKind::kSlice, minor, d, -1, 0);
    }
  }
}

void Search::ExpandPartial(const Node& node, const Lists& l) {
  const std::string& partial = l[rank()];
  const double local = LocalBytes(l);
  const auto all_reduce_bytes = [&](const std::string& atoms) {
    return AllReduceBytes(from_->partial_op(), global_->element_type(), local, Size(atoms));
  };
  std::string rest, drop;
  for (char c : partial) {
    (target_[rank()].find(c) != std::string::npos ? rest : drop).push_back(c);
  }
  if (!drop.empty()) {
    Lists next = l;
    next[rank()] = rest;
    Try(node, next, MoveKind::kAllReduce, drop, -1, -1, all_reduce_bytes(drop));
  }
  // All-reduce one atom, so that the others can become a reduce-scatter, or because a reduction
  // that gathers parts is cheaper one axis at a time.
  if (drop.size() > 1) {
    for (char c : drop) {
      Lists next = l;
      next[rank()].erase(next[rank()].find(c), 1);
      const std::string one(1, c);
      Try(node, next, MoveKind::kAllReduce, one, -1, -1, all_reduce_bytes(one));
    }
  }
  for (int d = 0; d < rank(); ++d) {
    if (!StartsWith(target_[d], l[d])) continue;
    for (size_t k = 1; l[d].size() + k <= target_[d].size(); ++k) {
      const std::string minor = target_[d].substr(l[d].size(), k);
      if (drop.find(minor.back()) == std::string::npos) break;
      if (!Nests(d, l[d], minor)) continue;
      Lists next = l;
      next[d] += minor;
      for (char c : minor) next[rank()].erase(next[rank()].find(c), 1);
      const double g = Size(minor);
      const double padded = Padded(local, d, l[d], next[d]) * g;
      Try(node, next, MoveKind::kReduceScatter, minor, d, -1,
          CollectiveBytes(MoveKind::kReduceScatter, padded, g));
    }
  }
}

void Search::ExpandToPartial(const Node& node, const Lists& l) {
  const std::string& wanted = target_[rank()];
  std::string made;
  for (char c : wanted) {
    if (IsFree(l, c)) made.push_back(c);
  }
  if (!made.empty()) {
    Lists next = l;
    next[rank()] += made;
    Try(node, next, MoveKind::kDropPartial, made, -1, -1, 0);
  }
  for (int d = 0; d < rank(); ++d) {
    for (size_t k = 1; k <= l[d].size(); ++k) {
      const std::string major = l[d].substr(0, l[d].size() - k);
      const std::string minor = l[d].substr(l[d].size() - k);
      if (wanted.find(minor.front()) == std::string::npos) break;
      if (!Nests(d, major, minor)) continue;
      Lists next = l;
      next[d] = major;
      next[rank()] += minor;
      Try(node, next, MoveKind::kPadPartial, minor, d, -1, 0);
    }
  }
}

void Search::ExpandPermutes(const Node& node, const Lists& l) {
  const double local = LocalBytes(l);
  bool same = true, any = false;
  for (int d = 0; d < rank(); ++d) {
    same = same && Size(l[d]) == Size(target_[d]);
    any = any || !l[d].empty();
  }
  if (!any) return;
  if (same && l[rank()].empty() && target_[rank()].empty()) {
    Try(node, target_, MoveKind::kPermute, "", -1, -1, local);
  }
  for (int d = 0; d < rank(); ++d) {
    if (l[d].size() < 2 || !l[rank()].empty()) continue;
    for (size_t i = 0; i + 1 < l[d].size(); ++i) {
      Lists next = l;
      const char c = next[d][i];
      next[d].erase(i, 1);
      next[d].push_back(c);
      Try(node, next, MoveKind::kPermute, "", -1, -1, local);
    }
  }
}

void Search::Expand(const Node& node) {
  const Lists l = Split(node.state);
  ExpandSlices(node, l);
  ExpandGathers(node, l);
  ExpandPartial(node, l);
  ExpandToPartial(node, l);
  ExpandPermutes(node, l);
}

void Search::Run(std::vector<Move>* moves) {
  auto lists = [&](const Sharding* s) {
    Lists l;
    for (int d = 0; d < rank(); ++d) l.push_back(Atoms(s->dim(d)));
    l.push_back(Atoms(s->partial()));
    std::sort(l.back().begin(), l.back().end());
    return l;
  };
  const Lists start = lists(from_);
  target_ = lists(to_);
  goal_ = Join(target_);
  goal_bytes_ = 1e-3 * LocalBytes(target_);
  best_[Join(start)] = Step{};
  Push({0, Join(start)});
  bool found = false;
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Node node = std::move(queue_.back());
    queue_.pop_back();
    if (node.cost + goal_bytes_ + 64 >= goal_cost_ || node.state == goal_) {
      found = true;
      break;
    }
    if (node.cost > best_.find(node.state)->second.cost) continue;
    Expand(node);
  }
  SHARDCALL_CHECK(found);  // gathering all, then cutting, always leads there
  absl::InlinedVector<Move, 4> back;
  for (State s = goal_; s != Join(start);) {
    const Step& step = best_[s];
    Move m = step.move;
    m.before = ToSharding(Split(step.previous));
    m.after = ToSharding(Split(s));
    back.push_back(std::move(m));
    s = step.previous;
  }
  moves->insert(moves->end(), back.rbegin(), back.rend());
}

}  // namespace

void SearchReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves) {
  if (from == to) return;
  Search(context, global, from, to).Run(moves);
}

}  // namespace shardcall::inline internal
