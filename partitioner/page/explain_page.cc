// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/page/explain_page.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/page/explain_page_internal.h"

namespace shardcall {
inline namespace internal {
namespace {

using page::Json;

// With more devices the page says that groups are left out.
constexpr int64_t kMostDevices = 1024;  // whose groups are listed

class Data {
 public:
  explicit Data(const PageContent& content)
      : content_(content),
        local_(*content.local),
        m_(local_.module),
        record_of_(m_.num_instructions(), -1) {}

  Json Make() {
    const CostModel& cost = content_.cost;
    Json j;
    j["name"] = content_.program;
    j["version"] = content_.version;
    j["devices"] = content_.num_partitions;
    j["instructions"] = {content_.instructions_in, m_.num_instructions()};
    j["bytes"] = content_.bytes_moved;
    const PageContent::Memory& memory = content_.memory;
    j["memory"] = {memory.peak, memory.arguments, memory.outputs, memory.temporaries,
                   memory.aliased};
    j["cost"] = {{"bandwidth", cost.bandwidth},
                 {"flops", cost.flop_rate},
                 {"memory", cost.memory_rate},
                 {"latency", cost.latency}};
    j["mesh"] = Mesh();
    j["collectives"] = Collectives();
    j["warnings"] = Warned();
    j["steps"] = page::Steps(local_, cost, record_of_, &texts_);
    j["entry"] = m_.entry().value;
    bool left_out = false;
    j["nodes"] = page::Nodes(local_, &texts_, &left_out);
    j["nodes_left_out"] = left_out;
    j["groups"] = std::move(groups_);
    j["texts"] = texts_.Take();
    return j;
  }

 private:
  size_t Text(std::string text) { return texts_.Of(std::move(text)); }

  Json Mesh() {
    Json axes = Json::array();
    for (const MeshAxis& axis : content_.mesh) axes.push_back({axis.name, axis.size});
    return axes;
  }

  Json Collectives() {
    Json out = Json::array();
    for (size_t k = 0; k < local_.collectives.size(); ++k) {
      const CollectiveRecord& r = local_.collectives[k];
      const PageContent::Collective& said = content_.collectives[k];
      record_of_[r.local.value] = static_cast<int>(k);
      out.push_back({{"name", std::string(m_.instr(r.local).name)},
                     {"opcode", Text(std::string(OpcodeText(r.opcode)))},
                     {"bytes", r.bytes_moved},
                     {"trips", r.trip_count},
                     {"seconds", content_.cost.Seconds(r.traffic())},
                     {"groups", r.num_groups},
                     {"size", r.group_size},
                     {"cause", Text(said.cause)},
                     {"source", Text(said.source)},
                     {"why", Text(said.why)},
                     {"devices", Groups(r)},
                     {"node", r.local.value}});
    }
    return out;
  }

  // The index in "groups" of the devices that communicate; -1 where they are not listed.
  int Groups(const CollectiveRecord& r) {
    const int64_t devices = content_.num_partitions;
    if (devices > kMostDevices) return -1;
    const Instruction& i = m_.instr(r.local);
    std::string key;
    if (i.attrs->kind == AttrKind::kCollective &&
        i.as<CollectiveAttrs>().groups.form != ReplicaGroups::Form::kLists) {
      const ReplicaGroups& g = i.as<CollectiveAttrs>().groups;
      key = absl::StrCat(g.num_groups, ",", g.group_size, "<=", absl::StrJoin(g.reshape, ","), "T",
                         absl::StrJoin(g.perm, ","), g.mesh_text);
      if (const auto it = known_groups_.find(key); it != known_groups_.end()) {
        return static_cast<int>(it->second);
      }
    }
    Json made;
    if (i.attrs->kind == AttrKind::kPermute) {
      const auto& attrs = i.as<PermuteAttrs>();
      Json pairs = Json::array();
      for (size_t k = 0; k < attrs.sources.size(); ++k) {
        pairs.push_back({attrs.sources[k], attrs.targets[k]});
      }
      made = {{"pairs", std::move(pairs)}};
    } else if (i.attrs->kind == AttrKind::kCollective) {
      const auto lists = ListedGroups(i.as<CollectiveAttrs>().groups, devices);
      if (!lists.has_value()) return -1;
      made = {{"lists", *lists}};
    } else {
      return -1;
    }
    if (key.empty()) key = made.dump();
    const auto [it, is_new] = known_groups_.try_emplace(std::move(key), groups_.size());
    if (is_new) groups_.push_back(std::move(made));
    return static_cast<int>(it->second);
  }

  Json Warned() {
    Json out = Json::array();
    for (const PageContent::Warning& w : content_.warnings) {
      out.push_back({{"code", w.code}, {"op", w.op}, {"text", w.text}, {"fix", w.fix}});
    }
    return out;
  }

  const PageContent& content_;
  const LocalProgram& local_;
  const Module& m_;
  std::vector<int> record_of_;  // by instruction, -1 for none
  page::Texts texts_;
  Json groups_ = Json::array();
  absl::flat_hash_map<std::string, size_t> known_groups_;
};

constexpr char kHtml[] = {
#include "page.html.inc"
    0};
constexpr char kStyle[] = {
#include "page.css.inc"
    0};
constexpr char kTable[] = {
#include "table.js.inc"
    0};
constexpr char kViews[] = {
#include "views.js.inc"
    0};

}  // namespace

std::string ExplainPageData(const PageContent& content) {
  return Data(content).Make().dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ExplainPage(const PageContent& content) {
  // Escaped so that the data cannot end its script element.
  const std::string data = absl::StrReplaceAll(ExplainPageData(content), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(
      kHtml, {{"@STYLE@", kStyle}, {"@DATA@", data}, {"@SCRIPT@", absl::StrCat(kTable, kViews)}});
}

}  // namespace internal
}  // namespace shardcall
