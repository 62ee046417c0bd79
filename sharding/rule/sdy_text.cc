// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/sdy_text.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/text_cursor.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status ParseAxes(TextCursor& in, std::vector<NamedAxisRef>* out, bool* open) {
  if (in.Consume("}")) return absl::OkStatus();
  do {
    if (open != nullptr && in.Consume("?")) {
      *open = true;
      break;
    }
    NamedAxisRef& ref = out->emplace_back();
    SHARDCALL_ASSIGN_OR_RETURN(ref.name, in.Quoted());
    if (!in.Consume(":")) continue;
    SHARDCALL_RETURN_IF_ERROR(in.Expect("("));
    const size_t at = in.position();
    SHARDCALL_ASSIGN_OR_RETURN(ref.pre_size, in.Integer());
    SHARDCALL_RETURN_IF_ERROR(in.Expect(")"));
    SHARDCALL_ASSIGN_OR_RETURN(ref.size, in.Integer());
    if (ref.pre_size < 1 || ref.size < 1) {
      return in.ErrorAt(at, "an axis part is empty", "sizes of at least 1");
    }
  } while (in.Consume(","));
  return in.Expect("}");
}

// The text after `mesh<`, up to and including the closing '>'.
absl::Status ParseMesh(TextCursor& in, std::string name, Mesh* out) {
  SHARDCALL_RETURN_IF_ERROR(in.Expect("["));
  std::vector<MeshAxis> axes;
  if (!in.Consume("]")) {
    do {
      MeshAxis& a = axes.emplace_back();
      SHARDCALL_ASSIGN_OR_RETURN(a.name, in.Quoted());
      SHARDCALL_RETURN_IF_ERROR(in.Expect("="));
      SHARDCALL_ASSIGN_OR_RETURN(a.size, in.Integer());
    } while (in.Consume(","));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("]"));
  }
  const bool no_axes = axes.empty();
  SHARDCALL_ASSIGN_OR_RETURN(*out, Mesh::Create(std::move(name), std::move(axes)));
  if (in.Consume(",")) {
    SHARDCALL_RETURN_IF_ERROR(in.Expect("device_ids="));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("["));
    const size_t at = in.position();
    std::vector<int64_t> ids;
    do {
      SHARDCALL_ASSIGN_OR_RETURN(int64_t id, in.Integer());
      ids.push_back(id);
    } while (in.Consume(","));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("]"));
    if (static_cast<int64_t>(ids.size()) != out->num_devices()) {
      return in.ErrorAt(at, "mesh and device ids differ in number",
                        absl::StrCat(out->num_devices(), " ids"), absl::StrCat(ids.size()),
                        "list one device id per mesh position");
    }
    if (no_axes) {
      out->maximal_device = ids[0];
    } else {
      SHARDCALL_ASSIGN_OR_RETURN(out->order, DeviceOrder::List(std::move(ids)));
    }
  }
  return in.Expect(">");
}

// The text after '<', up to and including the closing '>'.
absl::Status ParseSharding(TextCursor& in, NamedSharding* out) {
  if (in.Consume("@")) {
    // MLIR quotes symbols that are not identifiers.
    if (in.Peek("\"")) {
      SHARDCALL_ASSIGN_OR_RETURN(out->mesh_name, in.Quoted());
    } else {
      out->mesh_name = std::string(in.Identifier());
    }
    if (out->mesh_name.empty()) return in.Error("the name of a mesh");
  } else if (in.Consume("mesh<")) {
    auto mesh = std::make_shared<Mesh>();
    SHARDCALL_RETURN_IF_ERROR(ParseMesh(in, "", mesh.get()));
    out->mesh = std::move(mesh);
  } else {
    return in.Error("'@' and the name of a mesh, or mesh<..>");
  }
  SHARDCALL_RETURN_IF_ERROR(in.Expect(","));
  SHARDCALL_RETURN_IF_ERROR(in.Expect("["));
  if (!in.Consume("]")) {
    do {
      SHARDCALL_RETURN_IF_ERROR(in.Expect("{"));
      NamedSharding::Dim& dim = out->dims.emplace_back();
      SHARDCALL_RETURN_IF_ERROR(ParseAxes(in, &dim.axes, &dim.open));
      if (in.Consume("p")) {
        const size_t at = in.position();
        SHARDCALL_ASSIGN_OR_RETURN(int64_t priority, in.Integer());
        if (priority > 1 << 20) return in.ErrorAt(at, "the priority is too large", "at most 2^20");
        dim.priority = static_cast<int>(priority);
      }
    } while (in.Consume(","));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("]"));
  }
  bool replicated = false, unreduced = false;
  while (in.Consume(",")) {
    if (!replicated && in.Consume("replicated=")) {
      replicated = true;
      SHARDCALL_RETURN_IF_ERROR(in.Expect("{"));
      SHARDCALL_RETURN_IF_ERROR(ParseAxes(in, &out->replicated, nullptr));
    } else if (!unreduced && in.Consume("unreduced=")) {
      unreduced = true;
      if (in.ConsumeWord("max")) out->unreduced_op = PartialOp::kMax;
      if (in.ConsumeWord("min")) out->unreduced_op = PartialOp::kMin;
      if (in.ConsumeWord("sum")) out->unreduced_op = PartialOp::kSum;
      SHARDCALL_RETURN_IF_ERROR(in.Expect("{"));
      SHARDCALL_RETURN_IF_ERROR(ParseAxes(in, &out->unreduced, nullptr));
    } else {
      return in.Error("replicated={..} or unreduced={..}, each once");
    }
  }
  return in.Expect(">");
}

void AppendMeshBody(const Mesh& mesh, std::string* out) {
  absl::StrAppend(out, "<[",
                  absl::StrJoin(mesh.axes, ", ",
                                [](std::string* o, const MeshAxis& a) {
                                  absl::StrAppend(o, QuotedText(a.name, '"'), "=", a.size);
                                }),
                  "]");
  if (mesh.maximal_device >= 0) {
    absl::StrAppend(out, ", device_ids=[", mesh.maximal_device, "]");
  } else if (!mesh.order.is_identity()) {
    *out += ", device_ids=[";
    for (int64_t p = 0; p < mesh.num_devices(); ++p) {
      absl::StrAppend(out, p > 0 ? ", " : "", mesh.order.DeviceAt(p));
    }
    *out += "]";
  }
  *out += ">";
}

void AppendBody(const NamedSharding& s, std::string* out) {
  if (s.mesh != nullptr) {
    *out += "<mesh";
    AppendMeshBody(*s.mesh, out);
  } else {
    absl::StrAppend(out, "<@", SymbolText(s.mesh_name));
  }
  *out += ", [";
  for (size_t i = 0; i < s.dims.size(); ++i) {
    const NamedSharding::Dim& d = s.dims[i];
    absl::StrAppend(out, i > 0 ? ", {" : "{", AxisRefsText(d.axes),
                    !d.open          ? ""
                    : d.axes.empty() ? "?"
                                     : ", ?",
                    "}");
    if (d.priority >= 0) absl::StrAppend(out, "p", d.priority);
  }
  *out += "]";
  if (!s.replicated.empty()) {
    absl::StrAppend(out, ", replicated={", AxisRefsText(s.replicated), "}");
  }
  if (!s.unreduced.empty()) {
    absl::StrAppend(out, ", unreduced=",
                    s.unreduced_op == PartialOp::kMax   ? "max"
                    : s.unreduced_op == PartialOp::kMin ? "min"
                                                        : "",
                    "{", AxisRefsText(s.unreduced), "}");
  }
  *out += ">";
}

}  // namespace

absl::StatusOr<std::vector<NamedSharding>> ParseSdyShardings(absl::string_view text) {
  TextCursor in(text, "sharding", "E161");
  std::vector<NamedSharding> out;
  if (in.Consume("#sdy.sharding<")) {
    SHARDCALL_RETURN_IF_ERROR(ParseSharding(in, &out.emplace_back()));
  } else if (in.Consume("#sdy.sharding_per_value<")) {
    SHARDCALL_RETURN_IF_ERROR(in.Expect("["));
    if (!in.Consume("]")) {
      do {
        SHARDCALL_RETURN_IF_ERROR(in.Expect("<"));
        SHARDCALL_RETURN_IF_ERROR(ParseSharding(in, &out.emplace_back()));
      } while (in.Consume(","));
      SHARDCALL_RETURN_IF_ERROR(in.Expect("]"));
    }
    SHARDCALL_RETURN_IF_ERROR(in.Expect(">"));
  } else {
    return in.Error("#sdy.sharding<..> or #sdy.sharding_per_value<[..]>");
  }
  SHARDCALL_RETURN_IF_ERROR(in.ExpectEnd());
  return out;
}

absl::StatusOr<NamedSharding> ParseSdySharding(absl::string_view text) {
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<NamedSharding> all, ParseSdyShardings(text));
  if (all.size() != 1) {
    return ToStatus({.code = "E161",
                     .message = "one value needs one sharding",
                     .expected = "1 sharding",
                     .found = absl::StrCat(all.size()),
                     .fix = "Write one sharding in the list"});
  }
  return std::move(all[0]);
}

absl::StatusOr<std::vector<std::string>> ParseSdyManualAxes(absl::string_view text) {
  TextCursor in(text, "list of manual axes", "E161");
  SHARDCALL_RETURN_IF_ERROR(in.Expect("#sdy<manual_axes"));
  SHARDCALL_RETURN_IF_ERROR(in.Expect("{"));
  std::vector<std::string> out;
  if (!in.Consume("}")) {
    do {
      SHARDCALL_ASSIGN_OR_RETURN(std::string name, in.Quoted());
      out.push_back(std::move(name));
    } while (in.Consume(","));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("}"));
  }
  SHARDCALL_RETURN_IF_ERROR(in.Expect(">"));
  SHARDCALL_RETURN_IF_ERROR(in.ExpectEnd());
  return out;
}

absl::StatusOr<std::vector<Mesh>> ParseSdyMeshes(absl::string_view text) {
  TextCursor in(text, "dictionary of meshes", "E161");
  SHARDCALL_RETURN_IF_ERROR(in.Expect("{"));
  std::vector<Mesh> out;
  if (!in.Consume("}")) {
    do {
      std::string name;
      if (in.Peek("\"")) {
        SHARDCALL_ASSIGN_OR_RETURN(name, in.Quoted());
      } else {
        name = std::string(in.Identifier());
      }
      if (name.empty()) return in.Error("the name of a mesh");
      for (const Mesh& m : out) {
        if (m.name == name) {
          return ToStatus({.code = "E160",
                           .message = absl::StrCat("two meshes are called \"", name, "\""),
                           .fix = "name each mesh once"});
        }
      }
      SHARDCALL_RETURN_IF_ERROR(in.Expect("="));
      SHARDCALL_RETURN_IF_ERROR(in.Expect("#sdy.mesh<"));
      SHARDCALL_RETURN_IF_ERROR(ParseMesh(in, std::move(name), &out.emplace_back()));
    } while (in.Consume(","));
    SHARDCALL_RETURN_IF_ERROR(in.Expect("}"));
  }
  SHARDCALL_RETURN_IF_ERROR(in.ExpectEnd());
  return out;
}

std::string SdyFactorName(int64_t factor) {
  constexpr int kLetters = 'z' - 'i' + 1;
  if (factor < kLetters) return std::string(1, static_cast<char>('i' + factor));
  return absl::StrCat("z_", factor - kLetters + 1);
}

std::string SdyShardingText(const NamedSharding& sharding) {
  std::string out = "#sdy.sharding";
  AppendBody(sharding, &out);
  return out;
}

std::string SdyShardingPerValueText(absl::Span<const NamedSharding> shardings) {
  std::string out = "#sdy.sharding_per_value<[";
  for (size_t i = 0; i < shardings.size(); ++i) {
    if (i > 0) out += ", ";
    AppendBody(shardings[i], &out);
  }
  return out + "]>";
}

std::string SdyManualAxesText(absl::Span<const std::string> axes) {
  return absl::StrCat(
      "#sdy<manual_axes{",
      absl::StrJoin(axes, ", ",
                    [](std::string* o, const std::string& a) { o->append(QuotedText(a, '"')); }),
      "}>");
}

std::string SdyMeshText(const Mesh& mesh) {
  std::string out = "#sdy.mesh";
  AppendMeshBody(mesh, &out);
  return out;
}

std::string SdyMeshesText(absl::Span<const Mesh> meshes) {
  return absl::StrCat("{",
                      absl::StrJoin(meshes, ", ",
                                    [](std::string* o, const Mesh& m) {
                                      absl::StrAppend(o, SymbolText(m.name), " = ", SdyMeshText(m));
                                    }),
                      "}");
}

}  // namespace internal
}  // namespace shardcall
