// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/element_type.h"

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/made_at_first_use.h"

namespace shardcall {
namespace {

enum Class : uint8_t { kOther, kBool, kSigned, kUnsigned, kFloating, kComplexClass };

struct Info {
  const char* name;
  uint8_t bits;
  Class cls;
};

constexpr Info kInfo[kNumElementTypes] = {
    {"invalid", 0, kOther},       {"pred", 8, kBool},           {"s8", 8, kSigned},
    {"s16", 16, kSigned},         {"s32", 32, kSigned},         {"s64", 64, kSigned},
    {"u8", 8, kUnsigned},         {"u16", 16, kUnsigned},       {"u32", 32, kUnsigned},
    {"u64", 64, kUnsigned},       {"f16", 16, kFloating},       {"f32", 32, kFloating},
    {"f64", 64, kFloating},       {"tuple", 0, kOther},         {"opaque", 0, kOther},
    {"c64", 64, kComplexClass},   {"bf16", 16, kFloating},      {"token", 0, kOther},
    {"c128", 128, kComplexClass}, {"f8e5m2", 8, kFloating},     {"f8e4m3fn", 8, kFloating},
    {"s4", 4, kSigned},           {"u4", 4, kUnsigned},         {"f8e4m3b11fnuz", 8, kFloating},
    {"f8e5m2fnuz", 8, kFloating}, {"f8e4m3fnuz", 8, kFloating}, {"s2", 2, kSigned},
    {"u2", 2, kUnsigned},         {"f8e4m3", 8, kFloating},     {"f8e3m4", 8, kFloating},
    {"s1", 1, kSigned},           {"u1", 1, kUnsigned},         {"f4e2m1fn", 4, kFloating},
    {"f8e8m0fnu", 8, kFloating},  {"buffer", 0, kOther},        {"f6e3m2fn", 6, kFloating},
    {"f6e2m3fn", 6, kFloating},
};

const Info& Get(ElementType type) {
  const int i = static_cast<int>(type);
  return kInfo[i < kNumElementTypes ? i : 0];
}

}  // namespace

absl::string_view ElementTypeName(ElementType type) { return Get(type).name; }

ElementType ElementTypeFromName(absl::string_view name) {
  const auto& by_name = MadeAtFirstUse([] {
    auto* map = new absl::flat_hash_map<absl::string_view, ElementType>;
    for (int i = 1; i < kNumElementTypes; ++i) (*map)[kInfo[i].name] = static_cast<ElementType>(i);
    return map;
  });
  auto it = by_name.find(name);
  return it == by_name.end() ? ElementType::kInvalid : it->second;
}

int ElementTypeBits(ElementType type) { return Get(type).bits; }
int ElementTypeBytes(ElementType type) { return (Get(type).bits + 7) / 8; }
bool IsFloat(ElementType type) { return Get(type).cls == kFloating; }
bool IsComplex(ElementType type) { return Get(type).cls == kComplexClass; }
bool IsSignedInteger(ElementType type) { return Get(type).cls == kSigned; }
bool IsUnsignedInteger(ElementType type) { return Get(type).cls == kUnsigned; }

}  // namespace shardcall
