// SPDX-License-Identifier: Apache-2.0
// Attributes of Shardy, whose codes and fields stand in shardy/dialect/sdy/ir/bytecode.td. They
// become the text that MLIR prints for them, which HLO's frontend attributes hold.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode_reader.h"

namespace shardcall::stablehlo {
namespace {

enum SdyAttribute {
  kManualAxes,
  kMeshAxis,
  kMesh,
  kSubAxisInfo,
  kAxisRef,
  kDimensionSharding,
  kTensorSharding,
  kTensorShardingPerValue,
  kDimMapping,
  kTensorMapping,
  kOpShardingRule,
  kTensorShardingUnreduced = 15,
  kTensorShardingPerValueUnreduced = 16,
};
constexpr int kMaxDepth = 8;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

// "i".."z", then "z_1"..: Shardy's names of factors.
std::string FactorName(int64_t factor) {
  constexpr int kLetters = 'z' - 'i';
  if (factor <= kLetters) return std::string(1, static_cast<char>('i' + factor));
  return absl::StrCat("z_", factor - kLetters);
}

}  // namespace

// Entries of an array of attributes, as text.
std::vector<std::string> BytecodeReader::SdyList(BytecodeCursor& c, int depth) {
  std::vector<std::string> out(c.Count());
  for (std::string& text : out) text = SdyText(AttributeIndex(c), depth + 1);
  return out;
}

// Without the "#sdy.<name>" before it. Empty, with supported_ cleared, for an unknown code.
std::string BytecodeReader::SdyText(uint32_t index, int depth) {
  const Attribute& a = out_.attributes_[index];
  if (a.kind == Attribute::Kind::kSymbol) {
    return absl::StrCat("@", out_.attributes_[a.items[0]].text);
  }
  if (a.kind != Attribute::Kind::kSdy || depth > kMaxDepth) return Unknown();
  BytecodeCursor c(a.data);
  c.VarInt();
  const auto list = [&] { return SdyList(c, depth); };
  const auto braced = [](const std::vector<std::string>& items) {
    return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
  };
  std::string text;
  switch (a.code) {
    case kManualAxes: {
      std::vector<std::string> axes(c.Count());
      for (std::string& axis : axes) axis = Quoted(out_.attributes_[AttributeIndex(c)].text);
      text = braced(axes);
      break;
    }
    case kMeshAxis:
      text = Quoted(String(c));
      absl::StrAppend(&text, "=", c.SignedVarInt());
      break;
    case kMesh: {
      text = absl::StrCat("<[", absl::StrJoin(list(), ", "), "]");
      const std::vector<int64_t> devices = SignedList(c);
      if (!devices.empty()) {
        absl::StrAppend(&text, ", device_ids=[", absl::StrJoin(devices, ", "), "]");
      }
      text += ">";
      break;
    }
    case kSubAxisInfo: {
      const int64_t before = c.SignedVarInt();
      text = absl::StrCat("(", before, ")", c.SignedVarInt());
      break;
    }
    case kAxisRef: {
      text = Quoted(String(c));
      const uint64_t sub = c.VarInt();
      if (sub & 1) {
        if (sub >> 1 >= out_.attributes_.size()) return Unknown();
        absl::StrAppend(&text, ":", SdyText(static_cast<uint32_t>(sub >> 1), depth + 1));
      }
      break;
    }
    case kDimensionSharding: {
      std::vector<std::string> axes = list();
      if (c.Byte() == 0) axes.push_back("?");
      text = braced(axes);
      const uint64_t priority = c.VarInt();
      if (priority & 1) absl::StrAppend(&text, "p", priority >> 1);
      break;
    }
    case kTensorSharding:
    case kTensorShardingUnreduced: {
      const uint32_t mesh = AttributeIndex(c);
      const bool inlined = out_.attributes_[mesh].kind == Attribute::Kind::kSdy;
      text = absl::StrCat("<", inlined ? "mesh" : "", SdyText(mesh, depth + 1), ", [",
                          absl::StrJoin(list(), ", "), "]");
      const std::vector<std::string> replicated = list();
      if (!replicated.empty()) absl::StrAppend(&text, ", replicated=", braced(replicated));
      if (a.code == kTensorShardingUnreduced) {
        absl::StrAppend(&text, ", unreduced=", braced(list()));
      }
      text += ">";
      break;
    }
    case kTensorShardingPerValue:
    case kTensorShardingPerValueUnreduced:
      text = absl::StrCat("<[", absl::StrJoin(list(), ", "), "]>");
      break;
    case kDimMapping:
      // Factors of one dimension stand side by side, major to minor.
      text = absl::StrJoin(SignedList(c), "",
                           [](std::string* out, int64_t factor) { *out += FactorName(factor); });
      break;
    case kTensorMapping: text = absl::StrCat("[", absl::StrJoin(list(), ", "), "]"); break;
    case kOpShardingRule: {
      const std::vector<int64_t> sizes = SignedList(c);
      const std::vector<std::string> operands = list(), results = list();
      text = absl::StrCat("<(", absl::StrJoin(operands, ", "), ")->(", absl::StrJoin(results, ", "),
                          ") {");
      for (size_t k = 0; k < sizes.size(); ++k) {
        absl::StrAppend(&text, k > 0 ? ", " : "", FactorName(static_cast<int64_t>(k)), "=",
                        sizes[k]);
      }
      text += "}";
      for (const char* kind :
           {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
        const std::vector<int64_t> factors = SignedList(c);
        if (factors.empty()) continue;
        absl::StrAppend(&text, " ", kind, "={",
                        absl::StrJoin(factors, ", ",
                                      [](std::string* out, int64_t f) { *out += FactorName(f); }),
                        "}");
      }
      if (c.Byte() != 0) text += ", custom";
      text += ">";
      break;
    }
    default: return Unknown();
  }
  if (!c.ok()) intact_ = false;
  return text;
}

std::string BytecodeReader::Unknown() {
  known_ = false;
  return "";
}

void BytecodeReader::PrintSdyAttributes() {
  for (uint32_t k = 0; k < out_.attributes_.size(); ++k) {
    Attribute& a = out_.attributes_[k];
    if (a.kind != Attribute::Kind::kSdy) continue;
    const char* name = a.code == kManualAxes                        ? "#sdy<manual_axes"
                       : a.code == kMesh                            ? "#sdy.mesh"
                       : a.code == kTensorSharding                  ? "#sdy.sharding"
                       : a.code == kTensorShardingUnreduced         ? "#sdy.sharding"
                       : a.code == kTensorShardingPerValue          ? "#sdy.sharding_per_value"
                       : a.code == kTensorShardingPerValueUnreduced ? "#sdy.sharding_per_value"
                       : a.code == kOpShardingRule                  ? "#sdy.op_sharding_rule"
                                                                    : nullptr;
    if (name == nullptr) continue;
    known_ = true;
    std::string text = absl::StrCat(name, SdyText(k, 0), a.code == kManualAxes ? ">" : "");
    if (!known_) continue;
    out_.names_.push_back(std::move(text));
    a.text = out_.names_.back();
  }
  // Only now, since they refer to each other.
  for (Attribute& a : out_.attributes_) {
    if (a.kind != Attribute::Kind::kSdy) continue;
    a.kind = a.text.empty() ? Attribute::Kind::kUnknown : Attribute::Kind::kAssembly;
  }
}

}  // namespace shardcall::stablehlo
