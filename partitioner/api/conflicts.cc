// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/conflicts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "shardcall/sharding/base/human_bytes.h"

namespace shardcall {
inline namespace internal {
namespace {

using Json = nlohmann::ordered_json;

std::string NameOf(const PropagatedProgram& p, InstrId op) {
  return absl::StrCat("%", p.program.module.instr(op).name);
}

std::string AxisOf(const PropagatedProgram& p, const Conflict& c) {
  const Sharding* s = p.shardings.sharding[c.sides[0].from.value];
  return (s->HasShardedDim() ? s->mesh() : p.program.mesh)->AxisName(c.axis);
}

// The side whose dimension has the axis in the end; -1: none.
int Taker(const PropagatedProgram& p, const Conflict& c) {
  const Sharding* s = p.shardings.sharding[p.program.leaves.canonical(c.value).value];
  for (int k = 0; k < 2; ++k) {
    if (Overlaps(s->dim(c.sides[k].dim), absl::MakeConstSpan(&c.axis, 1))) return k;
  }
  return -1;
}

ConflictOrder OrderFor(InstrId op, const TriedOrder& t) {
  for (const ConflictChoice& c : t.choices) {
    if (c.op == op) return c.order;
  }
  return t.order;
}

// The least that was found to be sent where the ops of the conflict have another order, and most of
// the others the same. None if no such plan was tried.
std::optional<double> BytesOtherwise(const PropagatedProgram& p, const Conflict& c) {
  const auto taken = std::find_if(p.tried_orders.begin(), p.tried_orders.end(),
                                  [](const TriedOrder& t) { return t.taken; });
  if (taken == p.tried_orders.end()) return std::nullopt;
  std::optional<double> least;
  for (const TriedOrder& t : p.tried_orders) {
    if (OrderFor(c.op, t) == OrderFor(c.op, *taken)) continue;
    if (t.order != taken->order && p.shardings.met.size() > 1) continue;
    if (!least.has_value() || t.bytes < *least) least = t.bytes;
  }
  return least;
}

// "%h: "d" of its result goes to dim 0 (argument 0), not to dim 1 (argument 1); the other way ..".
std::string TextOf(const PropagatedProgram& p, const Conflict& c, double bytes, Reasons* reasons) {
  const int taker = Taker(p, c);
  const auto side = [&](int k) {
    const Conflict::Side& s = c.sides[k];
    const LeafId from = p.program.leaves.canonical(s.from);
    const Sharding* has = p.shardings.sharding[from.value];
    const std::string why = s.from_dim < 0 || has->dim(s.from_dim).empty()
                                ? ""
                                : absl::StrCat(" (", reasons->OfDim(from, s.from_dim), ")");
    return absl::StrCat("dim ", s.dim, why);
  };
  const InstrId owner = p.program.leaves.instr(p.program.leaves.canonical(c.value));
  std::string out = absl::StrCat("  ", NameOf(p, c.op), ": ", AxisOf(p, c), " of ",
                                 owner == c.op ? "its result" : NameOf(p, owner));
  if (taker < 0) {
    absl::StrAppend(&out, " goes neither to ", side(0), " nor to ", side(1));
  } else {
    absl::StrAppend(&out, " goes to ", side(taker), ", not to ", side(1 - taker));
  }
  if (const auto otherwise = BytesOtherwise(p, c); otherwise.has_value()) {
    const double more = *otherwise - bytes;
    absl::StrAppend(&out, taker < 0 ? "; another order" : "; the other way", " would send ",
                    HumanBytes(std::abs(more)), more < 0 ? " less" : " more");
  }
  return absl::StrCat(out, "\n");
}

}  // namespace

std::string ConflictsText(const PropagatedProgram& p, bool whole_reasons, size_t most) {
  if (p.tried_orders.empty()) return "";
  std::vector<std::string> orders;
  std::string taken;
  double bytes = 0;
  int choices = 0;
  for (const TriedOrder& t : p.tried_orders) {
    const std::string cost = absl::StrFormat("%s %.3g ms%s", HumanBytes(t.bytes), 1e3 * t.seconds,
                                             t.taken ? " (taken)" : "");
    if (t.taken) bytes = t.bytes;
    if (t.choices.empty()) {
      orders.push_back(absl::StrCat(ConflictOrderName(t.order), " ", cost));
      continue;
    }
    ++choices;
    if (!t.taken) continue;
    const auto append = [&](std::string* text, const ConflictChoice& c) {
      absl::StrAppend(text, NameOf(p, c.op), " ", ConflictOrderName(c.order));
    };
    taken = absl::StrCat("; ", ConflictOrderName(t.order), " but for ops like ",
                         absl::StrJoin(t.choices, ", ", append), ": ", cost);
  }
  std::string out = absl::StrCat("conflicts over axes: ", absl::StrJoin(orders, ", "), "\n");
  if (choices > 0) {
    absl::StrAppend(&out, "  ", choices, " more, with another order for one kind of op",
                    taken.empty() ? ", are not cheaper" : taken, "\n");
  }
  Reasons reasons(p.program, p.shardings, whole_reasons);
  const auto& met = p.shardings.met;
  const size_t told = std::min(met.size(), most);
  for (size_t k = 0; k < told; ++k) absl::StrAppend(&out, TextOf(p, met[k], bytes, &reasons));
  if (told < met.size()) absl::StrAppend(&out, "  and ", met.size() - told, " more conflicts\n");
  return out;
}

Json ConflictsJson(const PropagatedProgram& p) {
  if (p.tried_orders.empty()) return nullptr;
  Json out = {{"order", ConflictOrderName(p.shardings.conflicts)},
              {"tried", Json::array()},
              {"met", Json::array()}};
  const auto name = [&](InstrId op) { return std::string(p.program.module.instr(op).name); };
  for (const TriedOrder& t : p.tried_orders) {
    Json tried = {{"order", ConflictOrderName(t.order)},
                  {"bytes", t.bytes},
                  {"seconds", t.seconds},
                  {"taken", t.taken}};
    for (const ConflictChoice& c : t.choices) {
      tried["choices"].push_back({{"op", name(c.op)}, {"order", ConflictOrderName(c.order)}});
    }
    out["tried"].push_back(std::move(tried));
  }
  for (const Conflict& c : p.shardings.met) {
    Json met = {{"op", name(c.op)},
                {"value", name(p.program.leaves.instr(p.program.leaves.canonical(c.value)))},
                {"axis", AxisOf(p, c)},
                {"wanted", Json::array()}};
    for (const Conflict::Side& s : c.sides) {
      met["wanted"].push_back(
          {{"dim", s.dim},
           {"from", name(p.program.leaves.instr(p.program.leaves.canonical(s.from)))},
           {"from_dim", s.from_dim}});
    }
    if (const int taker = Taker(p, c); taker >= 0) met["taken_by_dim"] = c.sides[taker].dim;
    if (const auto otherwise = BytesOtherwise(p, c); otherwise.has_value()) {
      met["bytes_otherwise"] = *otherwise;
    }
    out["met"].push_back(std::move(met));
  }
  return out;
}

namespace {

// Each value once, in the order of the program.
std::vector<LeafId> ChosenValues(const PropagatedProgram& p) {
  std::vector<LeafId> out;
  for (const auto& [leaf, before] : p.shardings.propagated) {
    if (p.program.leaves.canonical(leaf) == leaf) out.push_back(leaf);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string ChosenText(const PropagatedProgram& p) {
  const size_t values = ChosenValues(p).size();
  if (values == 0) return "";
  return absl::StrFormat(
      "chosen shardings: %d value%s, other than propagated: %s %.3g ms in place of %s %.3g ms\n",
      values, values == 1 ? "" : "s", HumanBytes(p.shardings.chosen_bytes),
      1e3 * p.shardings.chosen_seconds, HumanBytes(p.shardings.propagated_bytes),
      1e3 * p.shardings.propagated_seconds);
}

Json ChosenJson(const PropagatedProgram& p) {
  const std::vector<LeafId> values = ChosenValues(p);
  if (values.empty()) return nullptr;
  Json out = {{"bytes", p.shardings.chosen_bytes},
              {"seconds", p.shardings.chosen_seconds},
              {"propagated_bytes", p.shardings.propagated_bytes},
              {"propagated_seconds", p.shardings.propagated_seconds},
              {"values", Json::array()}};
  for (LeafId leaf : values) {
    out["values"].push_back(
        {{"name", std::string(p.program.module.instr(p.program.leaves.instr(leaf)).name)},
         {"index", p.program.leaves.index(leaf)},
         {"propagated", p.shardings.propagated.at(leaf)->ToString()},
         {"chosen", p.shardings.sharding[leaf.value]->ToString()}});
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
