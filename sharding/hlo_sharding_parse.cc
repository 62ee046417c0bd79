// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/text_cursor.h"
#include "shardcall/sharding/hlo_sharding.h"

namespace shardcall {
namespace {

class Parser {
 public:
  explicit Parser(absl::string_view text) : in_(text, "sharding", "E161") {}

  absl::StatusOr<HloSharding> Parse() {
    HloSharding out;
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
    if (in_.Peek("{") || in_.Peek("}")) {
      out.kind = HloSharding::Kind::kTuple;
      if (!in_.Consume("}")) {
        do {
          SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
          SHARDCALL_RETURN_IF_ERROR(Single(&out.tuple.emplace_back()));
        } while (in_.Consume(","));
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("}"));
      }
    } else {
      SHARDCALL_RETURN_IF_ERROR(Single(&out));
    }
    SHARDCALL_RETURN_IF_ERROR(in_.ExpectEnd());
    return out;
  }

 private:
  // The text after '{', up to and including the closing brace.
  absl::Status Single(HloSharding* out) {
    if (in_.Consume("mesh[")) return Named(out);
    // XLA prints single_device since jaxlib 0.12, and reads both.
    if (in_.Consume("maximal_mesh[") || in_.Consume("single_device[")) {
      out->kind = HloSharding::Kind::kMaximal;
      out->maximal_mesh = true;
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("device_id="));
      SHARDCALL_RETURN_IF_ERROR(Device(&out->device));
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("]"));
      if (in_.Consume(",")) {
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("metadata="));
        SHARDCALL_RETURN_IF_ERROR(Metadata(out));
      }
      return in_.Expect("}");
    }
    const size_t begin = in_.position();
    bool has_kind = false;
    auto set_kind = [&](HloSharding::Kind kind) {
      if (has_kind) {
        return in_.ErrorAt(begin, "a sharding says two things at once",
                           "one of replicated, manual, unreduced, unknown, maximal, devices=");
      }
      has_kind = true;
      out->kind = kind;
      return absl::OkStatus();
    };
    while (!in_.Consume("}")) {
      if (in_.ConsumeWord("replicated")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kReplicated));
      } else if (in_.ConsumeWord("manual")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kManual));
      } else if (in_.ConsumeWord("unreduced")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kUnreduced));
      } else if (in_.ConsumeWord("unknown")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kUnknown));
      } else if (in_.ConsumeWord("maximal")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kMaximal));
      } else if (in_.Consume("device=")) {
        SHARDCALL_RETURN_IF_ERROR(Device(&out->device));
      } else if (in_.Consume("devices=")) {
        SHARDCALL_RETURN_IF_ERROR(set_kind(HloSharding::Kind::kTiled));
        SHARDCALL_RETURN_IF_ERROR(Tiles(out));
      } else if (in_.ConsumeWord("last_tile_dim_replicate")) {
        if (!out->subgroups.empty()) return in_.Error("one list of subgroups");
        out->subgroups = {HloSharding::Subgroup::kReplicated};
      } else if (in_.Consume("last_tile_dims=")) {
        if (!out->subgroups.empty()) return in_.Error("one list of subgroups");
        SHARDCALL_RETURN_IF_ERROR(Subgroups(out));
      } else if (in_.ConsumeWord("shard_as")) {
        out->group = HloSharding::GroupKind::kShardAs;
        SHARDCALL_ASSIGN_OR_RETURN(out->group_id, in_.Integer());
      } else if (in_.ConsumeWord("shard_like")) {
        out->group = HloSharding::GroupKind::kShardLike;
        SHARDCALL_ASSIGN_OR_RETURN(out->group_id, in_.Integer());
      } else if (in_.Consume("metadata=")) {
        SHARDCALL_RETURN_IF_ERROR(Metadata(out));
      } else {
        return in_.Error(
            "replicated, manual, unreduced, unknown, maximal, devices=, "
            "last_tile_dim_replicate, last_tile_dims=, shard_as, shard_like, "
            "metadata=, mesh[ or '}'");
      }
    }
    if (!has_kind) return in_.ErrorAt(begin, "a sharding says nothing", "replicated, devices=, ..");
    if ((out->kind == HloSharding::Kind::kMaximal) != (out->device >= 0)) {
      return in_.ErrorAt(begin, "maximal and device= belong together", "maximal device=N");
    }
    if (out->kind != HloSharding::Kind::kTiled) {
      if (out->subgroups.empty()) return absl::OkStatus();
      return in_.ErrorAt(begin, "subgroups need tiles", "devices=[..] before them");
    }
    if (out->subgroups.size() > out->tile.size()) {
      return in_.ErrorAt(begin, "there are more subgroups than tile dimensions");
    }
    CanonicalizeTiles(out);
    return absl::OkStatus();
  }

  absl::Status Device(int64_t* out) {
    SHARDCALL_ASSIGN_OR_RETURN(*out, in_.Integer());
    return absl::OkStatus();
  }

  // Integers up to `close`, which is consumed.
  absl::Status Integers(absl::string_view close, std::vector<int64_t>* out) {
    do {
      SHARDCALL_ASSIGN_OR_RETURN(int64_t value, in_.Integer());
      out->push_back(value);
    } while (in_.Consume(","));
    return in_.Expect(close);
  }

  // `r,..]` and `T(p,..)`, stored as the canonical iota expression.
  absl::Status Iota(HloSharding* out, int64_t devices) {
    const size_t begin = in_.position();
    std::vector<int64_t> reshape, perm;
    SHARDCALL_RETURN_IF_ERROR(Integers("]", &reshape));
    if (in_.Consume("T(")) {
      SHARDCALL_RETURN_IF_ERROR(Integers(")", &perm));
    } else if (reshape.size() > 1) {
      return in_.ErrorAt(in_.position(), "an iota of several dimensions needs a transposition",
                         "T(..)", "none");
    }
    auto order = DeviceOrder::Iota(reshape, perm);
    if (!order.ok()) return order.status();
    if (order->num_devices() != devices) {
      return in_.ErrorAt(begin, "tiles and devices differ in number",
                         absl::StrCat(devices, " devices"), absl::StrCat(order->num_devices()),
                         "make the products of both lists equal");
    }
    out->reshape.assign(order->reshape().begin(), order->reshape().end());
    out->perm.assign(order->perm().begin(), order->perm().end());
    return absl::OkStatus();
  }

  absl::Status Tiles(HloSharding* out) {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("["));
    const size_t begin = in_.position();
    SHARDCALL_RETURN_IF_ERROR(Integers("]", &out->tile));
    int64_t devices = 1;
    for (int64_t d : out->tile) {
      if (d < 1 || __builtin_mul_overflow(devices, d, &devices) || devices > kMaxDevices) {
        return in_.ErrorAt(begin, "tile dimensions must be positive with a product below 2^31", "",
                           absl::StrCat("[", absl::StrJoin(out->tile, ","), "]"));
      }
    }
    if (in_.Consume("<=")) {
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("["));
      return Iota(out, devices);
    }
    const size_t list_begin = in_.position();
    do {
      SHARDCALL_ASSIGN_OR_RETURN(int64_t id, in_.Integer());
      out->list.push_back(id);
    } while (in_.Consume(","));
    if (static_cast<int64_t>(out->list.size()) != devices) {
      return in_.ErrorAt(list_begin, "tiles and devices differ in number",
                         absl::StrCat(devices, " devices"), absl::StrCat(out->list.size()),
                         "list one device per tile");
    }
    return absl::OkStatus();
  }

  absl::Status Subgroups(HloSharding* out) {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
    if (in_.Consume("}")) return absl::OkStatus();
    do {
      if (in_.ConsumeWord("manual")) {
        out->subgroups.push_back(HloSharding::Subgroup::kManual);
      } else if (in_.ConsumeWord("unreduced")) {
        out->subgroups.push_back(HloSharding::Subgroup::kUnreduced);
      } else if (in_.ConsumeWord("replicated")) {
        out->subgroups.push_back(HloSharding::Subgroup::kReplicated);
      } else {
        return in_.Error("manual, unreduced or replicated");
      }
    } while (in_.Consume(","));
    return in_.Expect("}");
  }

  absl::Status Metadata(HloSharding* out) {
    const size_t begin = in_.position();
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
    if (!in_.Peek("{")) {
      in_.set_position(begin);
      SHARDCALL_ASSIGN_OR_RETURN(absl::string_view one, in_.Braces());
      out->metadata.emplace_back(one);
      return absl::OkStatus();
    }
    do {
      SHARDCALL_ASSIGN_OR_RETURN(absl::string_view one, in_.Braces());
      out->metadata.emplace_back(one);
    } while (in_.Consume(","));
    return in_.Expect("}");
  }

  absl::Status Axes(std::vector<NamedAxisRef>* out, bool* open) {
    if (in_.Consume("}")) return absl::OkStatus();
    do {
      if (open != nullptr && in_.Consume("?")) {
        *open = true;
        break;
      }
      NamedAxisRef& ref = out->emplace_back();
      SHARDCALL_ASSIGN_OR_RETURN(ref.name, in_.Quoted());
      if (!in_.Consume(":")) continue;
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("("));
      SHARDCALL_ASSIGN_OR_RETURN(ref.pre_size, in_.Integer());
      SHARDCALL_RETURN_IF_ERROR(in_.Expect(")"));
      const size_t at = in_.position();
      SHARDCALL_ASSIGN_OR_RETURN(ref.size, in_.Integer());
      if (ref.size < 2 || ref.pre_size < 1) {
        return in_.ErrorAt(at, "an axis part splits nothing", "a size of at least 2");
      }
    } while (in_.Consume(","));
    return in_.Expect("}");
  }

  // The ids of a list that is not the identity go to `list` as written.
  absl::Status MeshText(Mesh* out, std::vector<int64_t>* list) {
    std::vector<MeshAxis> axes;
    if (!in_.Consume("]")) {
      do {
        MeshAxis& a = axes.emplace_back();
        SHARDCALL_ASSIGN_OR_RETURN(a.name, in_.Quoted());
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("="));
        SHARDCALL_ASSIGN_OR_RETURN(a.size, in_.Integer());
      } while (in_.Consume(","));
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("]"));
    }
    SHARDCALL_ASSIGN_OR_RETURN(*out, Mesh::Create("", std::move(axes)));
    in_.Consume(",");
    if (!in_.Consume("device_ids=")) return absl::OkStatus();
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("("));
    const size_t begin = in_.position();
    const int64_t devices = out->num_devices();
    if (in_.Consume("[")) {
      HloSharding iota;
      SHARDCALL_RETURN_IF_ERROR(Iota(&iota, devices));
      SHARDCALL_ASSIGN_OR_RETURN(out->order, DeviceOrder::Iota(iota.reshape, iota.perm));
      SHARDCALL_RETURN_IF_ERROR(in_.Expect(")"));
    } else {
      std::vector<int64_t> ids;
      SHARDCALL_RETURN_IF_ERROR(Integers(")", &ids));
      if (static_cast<int64_t>(ids.size()) != devices) {
        return in_.ErrorAt(begin, "mesh and device ids differ in number",
                           absl::StrCat(devices, " ids"), absl::StrCat(ids.size()),
                           "list one device id per mesh position");
      }
      SHARDCALL_ASSIGN_OR_RETURN(out->order, DeviceOrder::List(ids));
      if (!out->order.is_identity()) *list = std::move(ids);
    }
    in_.Consume(",");
    return absl::OkStatus();
  }

  absl::Status Named(HloSharding* out) {
    out->kind = HloSharding::Kind::kNamed;
    NamedSharding& named = out->named;
    auto mesh = std::make_shared<Mesh>();
    SHARDCALL_RETURN_IF_ERROR(MeshText(mesh.get(), &out->list));
    std::vector<NamedAxisRef> all;
    for (const MeshAxis& a : mesh->axes) all.push_back({.name = a.name});
    if (in_.ConsumeWord("replicated")) {
    } else if (in_.ConsumeWord("manual")) {
      named.manual = std::move(all);
    } else if (in_.ConsumeWord("unreduced")) {
      named.unreduced = std::move(all);
    } else {
      if (!in_.Consume("[")) return in_.Error("'[', replicated, manual or unreduced");
      if (!in_.Consume("]")) {
        do {
          SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
          NamedSharding::Dim& dim = named.dims.emplace_back();
          SHARDCALL_RETURN_IF_ERROR(Axes(&dim.axes, &dim.open));
        } while (in_.Consume(","));
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("]"));
      }
    }
    while (in_.Consume(",")) {
      if (named.replicated.empty() && in_.Consume("replicated=")) {
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
        SHARDCALL_RETURN_IF_ERROR(Axes(&named.replicated, nullptr));
      } else if (named.unreduced.empty() && in_.Consume("unreduced=")) {
        if (in_.ConsumeWord("max")) named.unreduced_op = PartialOp::kMax;
        if (in_.ConsumeWord("min")) named.unreduced_op = PartialOp::kMin;
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
        SHARDCALL_RETURN_IF_ERROR(Axes(&named.unreduced, nullptr));
      } else if (named.manual.empty() && in_.Consume("manual=")) {
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
        SHARDCALL_RETURN_IF_ERROR(Axes(&named.manual, nullptr));
      } else if (in_.Consume("metadata=")) {
        SHARDCALL_RETURN_IF_ERROR(Metadata(out));
      } else {
        return in_.Error("replicated=, unreduced=, manual= or metadata=, each once");
      }
    }
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("}"));
    SHARDCALL_RETURN_IF_ERROR(CheckAndNormalize(*mesh, &named));
    named.mesh = std::move(mesh);
    return absl::OkStatus();
  }

  TextCursor in_;
};

}  // namespace

absl::StatusOr<HloSharding> ParseHloSharding(absl::string_view text) {
  return Parser(text).Parse();
}

}  // namespace shardcall
