// SPDX-License-Identifier: Apache-2.0
// Attributes of Shardy, whose codes and fields stand in shardy/dialect/sdy/ir/bytecode.td. They
// become the text that MLIR prints for them, which HLO's frontend attributes hold.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_text.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_reader.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
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

// The attributes that stand by themselves, as MLIR names them; of others only the contents are
// printed, within these.
struct Named {
  uint32_t code;
  const char *before, *after;
};
constexpr Named kNamed[] = {
    {kManualAxes, "#sdy<manual_axes", ">"},
    {kMesh, "#sdy.mesh", ""},
    {kTensorSharding, "#sdy.sharding", ""},
    {kTensorShardingUnreduced, "#sdy.sharding", ""},
    {kTensorShardingPerValue, "#sdy.sharding_per_value", ""},
    {kTensorShardingPerValueUnreduced, "#sdy.sharding_per_value", ""},
    {kOpShardingRule, "#sdy.op_sharding_rule", ""},
};

std::string Braced(const std::vector<std::string>& items) {
  return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
}

}  // namespace

// Prints one attribute after the other. Equal parts are shared in the file, so a small one may
// stand for a long text, which is limited.
class SdyPrinter {
 public:
  SdyPrinter(const std::vector<Attribute>& attributes,
             const std::vector<absl::string_view>& strings, size_t max_text)
      : attributes_(attributes), strings_(strings), left_(max_text) {}

  // Empty if a part of it is unknown, or not of the kind that belongs there.
  std::string Print(const Attribute& a) {
    for (const Named& named : kNamed) {
      if (a.code != named.code) continue;
      known_ = true;
      const std::string text = absl::StrCat(named.before, Contents(a, 0), named.after);
      return known_ ? text : "";
    }
    return "";
  }

 private:
  static constexpr int kMaxDepth = 8;

  std::string Unknown() {
    known_ = false;
    return "";
  }

  // The attribute at the cursor, which has one of two codes.
  std::string Part(BytecodeCursor& c, int depth, uint32_t code, uint32_t or_code) {
    return PartAt(c.VarInt(), depth, code, or_code);
  }
  std::string PartAt(uint64_t index, int depth, uint32_t code, uint32_t or_code) {
    if (!known_ || index >= attributes_.size()) return Unknown();
    const Attribute& a = attributes_[index];
    if (a.kind != Attribute::Kind::kSdy || (a.code != code && a.code != or_code)) return Unknown();
    return Contents(a, depth + 1);
  }
  std::vector<std::string> List(BytecodeCursor& c, int depth, uint32_t code) {
    return List(c, depth, code, code);
  }
  std::vector<std::string> List(BytecodeCursor& c, int depth, uint32_t code, uint32_t or_code) {
    std::vector<std::string> out(c.Count());
    for (std::string& text : out) text = Part(c, depth, code, or_code);
    return out;
  }
  static std::vector<int64_t> Numbers(BytecodeCursor& c) {
    std::vector<int64_t> out(c.Count());
    for (int64_t& v : out) v = c.SignedVarInt();
    return out;
  }
  std::string QuotedString(BytecodeCursor& c) {
    const uint64_t k = c.VarInt();
    return k < strings_.size() ? QuotedText(strings_[k]) : Unknown();
  }

  // Without the name before it.
  std::string Contents(const Attribute& a, int depth) {
    BytecodeCursor c(a.data);
    c.VarInt();  // the code
    std::string text = depth > kMaxDepth ? Unknown() : ContentsOf(a.code, c, depth);
    if (!c.ok() || !c.empty() || text.size() > left_) return Unknown();
    left_ -= text.size();
    return text;
  }
  std::string ContentsOf(uint32_t code, BytecodeCursor& c, int depth) {
    switch (code) {
      case kManualAxes: return ManualAxes(c);
      case kMeshAxis: {
        std::string name = QuotedString(c);
        return absl::StrCat(name, "=", c.SignedVarInt());
      }
      case kMesh: return Mesh(c, depth);
      case kSubAxisInfo: {
        const int64_t before = c.SignedVarInt();
        return absl::StrCat("(", before, ")", c.SignedVarInt());
      }
      case kAxisRef: {
        std::string text = QuotedString(c);
        const uint64_t sub = c.VarInt();
        if ((sub & 1) == 0) return text;
        return absl::StrCat(text, ":", PartAt(sub >> 1, depth, kSubAxisInfo, kSubAxisInfo));
      }
      case kDimensionSharding: {
        std::vector<std::string> axes = List(c, depth, kAxisRef);
        if (c.Byte() == 0) axes.push_back("?");
        const uint64_t priority = c.VarInt();
        return absl::StrCat(Braced(axes), (priority & 1) ? absl::StrCat("p", priority >> 1) : "");
      }
      case kTensorSharding:
      case kTensorShardingUnreduced:
        return TensorSharding(c, depth, code == kTensorShardingUnreduced);
      case kTensorShardingPerValue:
      case kTensorShardingPerValueUnreduced:
        return absl::StrCat(
            "<[", absl::StrJoin(List(c, depth, kTensorSharding, kTensorShardingUnreduced), ", "),
            "]>");
      case kDimMapping: return Factors(Numbers(c), "");
      case kTensorMapping:
        return absl::StrCat("[", absl::StrJoin(List(c, depth, kDimMapping), ", "), "]");
      case kOpShardingRule: return OpShardingRule(c, depth);
      default: return Unknown();
    }
  }

  std::string ManualAxes(BytecodeCursor& c) {
    std::vector<std::string> axes(c.Count());
    for (std::string& axis : axes) {
      const uint64_t k = c.VarInt();
      const bool named = k < attributes_.size() && attributes_[k].kind == Attribute::Kind::kString;
      axis = named ? QuotedText(attributes_[k].text) : Unknown();
    }
    return Braced(axes);
  }

  std::string Mesh(BytecodeCursor& c, int depth) {
    std::string text = absl::StrCat("<[", absl::StrJoin(List(c, depth, kMeshAxis), ", "), "]");
    const std::vector<int64_t> devices = Numbers(c);
    if (!devices.empty()) {
      absl::StrAppend(&text, ", device_ids=[", absl::StrJoin(devices, ", "), "]");
    }
    return text + ">";
  }

  std::string TensorSharding(BytecodeCursor& c, int depth, bool unreduced) {
    const uint64_t mesh = c.VarInt();
    if (mesh >= attributes_.size()) return Unknown();
    const Attribute& m = attributes_[mesh];
    const bool symbol = m.kind == Attribute::Kind::kSymbol &&
                        attributes_[m.items[0]].kind == Attribute::Kind::kString;
    std::string text = symbol ? absl::StrCat("<@", SymbolName(attributes_[m.items[0]].text))
                              : absl::StrCat("<mesh", PartAt(mesh, depth, kMesh, kMesh));
    absl::StrAppend(&text, ", [", absl::StrJoin(List(c, depth, kDimensionSharding), ", "), "]");
    const std::vector<std::string> replicated = List(c, depth, kAxisRef);
    if (!replicated.empty()) absl::StrAppend(&text, ", replicated=", Braced(replicated));
    if (unreduced) absl::StrAppend(&text, ", unreduced=", Braced(List(c, depth, kAxisRef)));
    return text + ">";
  }

  // Factors of one dimension stand side by side, major to minor.
  std::string Factors(const std::vector<int64_t>& factors, absl::string_view between) {
    std::string out;
    for (size_t k = 0; k < factors.size(); ++k) {
      if (factors[k] < 0) return Unknown();
      absl::StrAppend(&out, k > 0 ? between : "", SdyFactorName(factors[k]));
    }
    return out;
  }

  std::string OpShardingRule(BytecodeCursor& c, int depth) {
    const std::vector<int64_t> sizes = Numbers(c);
    const std::vector<std::string> operands = List(c, depth, kTensorMapping);
    const std::vector<std::string> results = List(c, depth, kTensorMapping);
    std::string text = absl::StrCat("<(", absl::StrJoin(operands, ", "), ")->(",
                                    absl::StrJoin(results, ", "), ") {");
    for (size_t k = 0; k < sizes.size(); ++k) {
      absl::StrAppend(&text, k > 0 ? ", " : "", SdyFactorName(static_cast<int64_t>(k)), "=",
                      sizes[k]);
    }
    text += "}";
    for (const char* kind :
         {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
      const std::vector<int64_t> factors = Numbers(c);
      if (!factors.empty()) absl::StrAppend(&text, " ", kind, "={", Factors(factors, ", "), "}");
    }
    return absl::StrCat(text, c.Byte() != 0 ? ", custom" : "", ">");
  }

  const std::vector<Attribute>& attributes_;
  const std::vector<absl::string_view>& strings_;
  size_t left_;  // of the text that may be printed
  bool known_ = true;
};

void BytecodeReader::PrintSdyAttributes() {
  constexpr size_t kTextPerByte = 1024, kLeast = size_t{1} << 16, kMost = size_t{1} << 26;
  SdyPrinter printer(out_.attributes_, strings_,
                     std::clamp(kTextPerByte * sections_[codes::kAttrTypes].size(), kLeast, kMost));
  for (Attribute& a : out_.attributes_) {
    if (a.kind != Attribute::Kind::kSdy) continue;
    out_.names_.push_back(printer.Print(a));
    a.text = out_.names_.back();
  }
  // Only now, since they refer to each other.
  for (Attribute& a : out_.attributes_) {
    if (a.kind != Attribute::Kind::kSdy) continue;
    a.kind = a.text.empty() ? Attribute::Kind::kUnknown : Attribute::Kind::kAssembly;
  }
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
