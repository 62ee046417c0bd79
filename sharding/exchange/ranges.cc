// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/exchange/ranges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace shardcall {
inline namespace internal {
namespace {

// How many messages an exchange may have in all. Where each of many shards needs a part of the
// tiles of many others, which grows with the square of the devices, a gather takes less time.
int64_t MostNeeds(int64_t num_shards) {
  constexpr int64_t kAlways = 1 << 16, kOfEach = 8;
  return std::max(kAlways, kOfEach * num_shards);
}

// Elements [from, from + size) of the tile of shard `source` that shard `target` needs.
struct Need {
  int64_t source, target, from, size;
  int64_t key;  // needs of one key may share a message
};

// The part of the range of shard i that lies in tile j; of size 0 if there is none.
Need NeedOf(const ShardRanges& r, int64_t i, int64_t j) {
  const int64_t first = std::max(r.Start(i), r.begin), last = std::min(r.Stop(i), r.end);
  const int64_t from = std::max(first, j * r.tile), to = std::min(last, (j + 1) * r.tile);
  return {j, i, from - j * r.tile, std::max<int64_t>(to - from, 0), 0};
}

// Calls `visit` for each tile that the range of shard i touches, in order.
template <typename Visit>
void ForTilesOf(const ShardRanges& r, int64_t i, const Visit& visit) {
  const int64_t first = std::max(r.Start(i), r.begin), last = std::min(r.Stop(i), r.end);
  if (last <= first) return;
  for (int64_t j = first / r.tile; j <= (last - 1) / r.tile; ++j) visit(j);
}

RangePart EmptyPart(const ShardRanges& r, int64_t size) {
  RangePart part;
  part.size = size;
  part.from.assign(r.num_shards, 0);
  part.to.assign(r.num_shards, -size);
  return part;
}

// What each shard needs of its own tile, as one part that is not sent.
void AddOwnPart(const ShardRanges& r, std::vector<RangePart>* parts) {
  int64_t size = 0;
  for (int64_t i = 0; i < r.num_shards; ++i) size = std::max(size, NeedOf(r, i, i).size);
  if (size == 0) return;
  RangePart part = EmptyPart(r, size);
  part.own = true;
  for (int64_t i = 0; i < r.num_shards; ++i) {
    const Need need = NeedOf(r, i, i);
    if (need.size == 0) continue;
    part.pairs.push_back({i, i});
    part.from[i] = std::min(need.from, r.tile - size);
    part.to[i] = i * r.tile + part.from[i] - r.Start(i);
  }
  parts->push_back(std::move(part));
}

// What one collective-permute sends.
struct Message {
  int64_t size = 0;
  std::vector<Need> needs;
};

// One message for the needs of each key, and more where a shard would send to several others in
// one: sources and targets of a collective-permute are unique.
std::vector<Message> Messages(const std::vector<Need>& needs) {
  std::map<std::pair<int64_t, int64_t>, Message> messages;           // by key and round
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t> rounds;  // by key and source
  for (const Need& need : needs) {
    Message& message = messages[{need.key, rounds[{need.key, need.source}]++}];
    message.size = std::max(message.size, need.size);
    message.needs.push_back(need);
  }
  std::vector<Message> out;
  for (auto& [key, message] : messages) out.push_back(std::move(message));
  return out;
}

// The same needs, each in the first message that is free at both ends, the largest first: messages
// of alike sizes send little for nothing. None if that takes many messages.
std::vector<Message> MessagesBySize(std::vector<Need> needs, int64_t num_shards) {
  constexpr size_t kMost = 16;
  struct Ends {
    std::vector<bool> sources, targets;
  };
  std::vector<Message> messages;
  std::vector<Ends> taken;
  std::stable_sort(needs.begin(), needs.end(),
                   [](const Need& a, const Need& b) { return a.size > b.size; });
  for (const Need& need : needs) {
    size_t k = 0;
    while (k < messages.size() &&
           (taken[k].sources[need.source] || taken[k].targets[need.target])) {
      ++k;
    }
    if (k == kMost) return {};
    if (k == messages.size()) {
      messages.push_back({need.size, {}});
      taken.push_back({std::vector<bool>(num_shards), std::vector<bool>(num_shards)});
    }
    messages[k].needs.push_back(need);
    taken[k].sources[need.source] = taken[k].targets[need.target] = true;
  }
  return messages;
}

std::vector<RangePart> PartsOf(const ShardRanges& r, const std::vector<Message>& messages) {
  std::vector<RangePart> parts;
  for (const Message& message : messages) {
    RangePart part = EmptyPart(r, message.size);
    for (const Need& need : message.needs) {
      part.pairs.push_back({need.source, need.target});
      part.from[need.source] = std::min(need.from, r.tile - message.size);
      part.to[need.target] = need.source * r.tile + part.from[need.source] - r.Start(need.target);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// Elements that the parts send if each collective takes as long as the shard that sends most.
int64_t Length(const std::vector<RangePart>& parts) {
  int64_t length = 0;
  for (const RangePart& p : parts) length += p.own || p.pairs.empty() ? 0 : p.size;
  return length;
}

// The same of messages.
int64_t Length(const std::vector<Message>& messages) {
  int64_t length = 0;
  for (const Message& m : messages) length += m.size;
  return length;
}

bool IsBetter(const std::vector<Message>& a, const std::vector<Message>& b) {
  const int64_t x = Length(a), y = Length(b);
  return x != y ? x < y : a.size() < b.size();
}

// What all shards send.
double Sent(const std::vector<Message>& messages) {
  double sent = 0;
  for (const Message& m : messages) {
    sent += static_cast<double>(m.size) * static_cast<double>(m.needs.size());
  }
  return sent;
}

// Whether `a` sends less than `b` on `shards` shards, and takes about as long. A message more has
// to save many elements on each, so that it is worth its latency whatever an element stands for.
bool SendsLess(const std::vector<Message>& a, const std::vector<Message>& b, int64_t shards) {
  constexpr double kAsLong = 1.01, kWorthAMessage = 1 << 14;
  if (a.empty() || static_cast<double>(Length(a)) > kAsLong * static_cast<double>(Length(b))) {
    return false;
  }
  const double more = std::max(0.0, static_cast<double>(a.size()) - static_cast<double>(b.size()));
  return Sent(a) + more * kWorthAMessage * static_cast<double>(shards) < Sent(b);
}

// The messages that bring each shard what it needs of others, but for those to itself; of as many
// as a gather, or of very many, none.
bool AddMessages(const ShardRanges& r, int64_t gathered, std::vector<RangePart>* parts) {
  constexpr int64_t kShare = 64;  // of the shards those that have a share in a message, at least
  std::vector<Need> by_distance, by_place;
  for (int64_t i = 0; i < r.num_shards; ++i) {
    int64_t place = 0;
    ForTilesOf(r, i, [&](int64_t j) {
      Need need = NeedOf(r, i, j);
      const int64_t k = place++;
      if (i == j || need.size == 0) return;
      need.key = j - i;
      by_distance.push_back(need);
      need.key = k;
      by_place.push_back(need);
    });
    if (static_cast<int64_t>(by_place.size()) > MostNeeds(r.num_shards)) return false;
  }
  std::vector<Message> messages = Messages(by_distance), placed = Messages(by_place);
  if (IsBetter(placed, messages)) messages = std::move(placed);
  double needed = 0;
  for (const Need& need : by_place) needed += static_cast<double>(need.size);
  if (Sent(messages) > needed) {
    std::vector<Message> sized = MessagesBySize(std::move(by_place), r.num_shards);
    if (SendsLess(sized, messages, r.num_shards)) messages = std::move(sized);
  }
  const int64_t length = Length(messages);
  const int64_t entries = static_cast<int64_t>(messages.size()) * r.num_shards;
  if ((length > 0 && length >= gathered) || entries > kShare * MostNeeds(r.num_shards)) {
    return false;
  }
  *parts = PartsOf(r, messages);
  return true;
}

// If ranges lie alike in the tiles of all shards: the parts by distance, each of one length on all
// shards. At most `most` of them; empty if there would be more.
std::vector<RangePart> PartsInARow(const ShardRanges& r, int64_t most) {
  std::vector<RangePart> parts;
  const int64_t first = FloorDiv(r.offset, r.tile);
  const int64_t last = FloorDiv(r.offset + r.length - 1, r.tile);
  if (last - first >= most) return parts;
  for (int64_t distance = first; distance <= last; ++distance) {
    const int64_t from = std::max<int64_t>(r.offset - distance * r.tile, 0);
    const int64_t to = std::min(r.offset + r.length - distance * r.tile, r.tile);
    RangePart part = EmptyPart(r, to - from);
    part.own = distance == 0;
    part.from.assign(r.num_shards, from);
    for (int64_t i = 0; i < r.num_shards; ++i) {
      const int64_t j = i + distance;
      if (j < 0 || j >= r.num_shards || (!part.own && NeedOf(r, i, j).size == 0)) continue;
      part.pairs.push_back({j, i});
      part.to[i] = j * r.tile + from - r.Start(i);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// The same around a ring.
std::vector<RangePart> PartsOfRing(const ShardRanges& r) {
  std::vector<RangePart> parts;
  const int64_t first = (r.offset % r.extent + r.extent) % r.extent;
  for (int64_t at = first; at < first + r.length;) {
    const int64_t distance = at / r.tile % r.num_shards, from = at % r.tile;
    RangePart part = EmptyPart(r, std::min(r.tile - from, first + r.length - at));
    part.own = distance == 0;
    part.from.assign(r.num_shards, from);
    for (int64_t i = 0; i < r.num_shards; ++i) {
      part.pairs.push_back({(i + distance) % r.num_shards, i});
      part.to[i] = at - first;
    }
    at += part.size;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

bool ShardRanges::LeavesBounds() const {
  if (wraps) return false;
  const int64_t a = Start(0), b = Start(num_shards - 1);
  return std::min(a, b) < begin || std::max(a, b) + length > end;
}

ExchangePlan PlanExchange(const ShardRanges& r) {
  ExchangePlan plan;
  if (r.tile == 0 || r.length == 0) return plan;
  const int64_t gathered = (r.num_shards - 1) * r.tile;
  if (r.wraps) {
    plan.parts = PartsOfRing(r);
    plan.in_a_row = true;
  } else if (r.IsAffine() && r.step == r.tile) {
    plan.parts =
        PartsInARow(r, std::min(2 * r.num_shards + 1, MostNeeds(r.num_shards) / r.num_shards));
    plan.in_a_row = !plan.parts.empty();
  }
  const ExchangePlan gather{
      .gather = true, .num_collectives = 1, .sent = static_cast<double>(gathered)};
  if (!plan.in_a_row) {
    if (!AddMessages(r, gathered, &plan.parts)) return gather;
    AddOwnPart(r, &plan.parts);
  }
  const int64_t length = Length(plan.parts);
  if (!r.wraps && length > 0 && length >= gathered) return gather;
  int64_t sent = 0;
  for (const RangePart& p : plan.parts) {
    if (p.own || p.pairs.empty()) continue;
    ++plan.num_collectives;
    sent += p.size * static_cast<int64_t>(p.pairs.size());
  }
  plan.sent = static_cast<double>(sent) / static_cast<double>(r.num_shards);
  return plan;
}

double SentBytes(const RangePart& part, double row_bits) {
  if (part.own) return 0;
  return std::ceil(static_cast<double>(part.size) * row_bits / 8) *
         static_cast<double>(part.pairs.size());
}

double SentBytes(const ExchangePlan& plan, const ShardRanges& ranges, double row_bits) {
  if (std::fmod(row_bits, 8) == 0) return plan.sent * row_bits / 8;
  if (plan.gather) {
    return std::ceil(static_cast<double>(ranges.tile) * row_bits / 8) *
           static_cast<double>(ranges.num_shards - 1);
  }
  double bytes = 0;
  for (const RangePart& p : plan.parts) bytes += SentBytes(p, row_bits);
  return bytes / static_cast<double>(ranges.num_shards);
}

double NeededElements(const ShardRanges& r) {
  if (r.wraps) return PlanExchange(r).sent;
  int64_t needed = 0;
  for (int64_t i = 0; i < r.num_shards; ++i) {
    const int64_t first = std::max(r.Start(i), r.begin);
    const int64_t last = std::min(r.Stop(i), r.end);
    needed += std::max<int64_t>(last - first, 0) - NeedOf(r, i, i).size;
  }
  return static_cast<double>(needed) / static_cast<double>(r.num_shards);
}

}  // namespace internal
}  // namespace shardcall
