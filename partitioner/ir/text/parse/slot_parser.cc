// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/slot_parser.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

std::string MeshGroupsText(const HloSharding& sharding) {
  std::string text;
  for (const NamedAxisRef& r : sharding.named.dims[0].axes) {
    absl::StrAppend(&text, text.empty() ? "'" : ",'", r.name, "'");
    if (r.size > 0) absl::StrAppend(&text, ":(", r.pre_size, ")", r.size);
  }
  // The mesh as a sharding prints it, up to its dimensions.
  const std::string printed = sharding.Print();
  const absl::string_view before = absl::string_view(printed).substr(0, printed.rfind(", [{"));
  return absl::StrCat(before.substr(1), " {", text, "}");
}

bool SlotParser::ParseString(Slot* slot) { return KeptString(&slot->text); }

// `{1,2}` or `{{0,1},{2,3}}`; the slot's value is the number of inner lists.
bool SlotParser::ParseIntsOrLists(Scratch* s, Slot* slot) {
  slot->begin = static_cast<uint32_t>(s->ints.size());
  slot->value = 0;
  if (!lex_.Expect('{')) return false;
  if (lex_.Peek() == '{') {
    do {
      const auto begin = static_cast<uint32_t>(s->ints.size());
      if (!lex_.IntList(&s->ints)) return false;
      const auto count = static_cast<uint32_t>(s->ints.size()) - begin;
      if (slot != &(*s)[Attr::kReplicaGroups]) {
        // Pairs and sizes: all lists have equal length, so it is enough to count them.
        const bool pairs = slot == &(*s)[Attr::kSourceTargetPairs];
        if (slot->value++ > 0 ? count != s->last_count : pairs && count != 2) {
          return lex_.Fail(slot->at, "E019", "The lists differ in length",
                           pairs ? "pairs {source,target}" : "equally long lists");
        }
        s->last_count = count;
      } else {
        s->lists.push_back({begin, count});
      }
    } while (lex_.TryChar(','));
  } else if (slot == &(*s)[Attr::kSourceTargetPairs] && lex_.Peek() != '}') {
    return lex_.FailExpected("pairs like {{0,1},{1,0}}");
  } else if (lex_.Peek() != '}') {
    do {
      int64_t value;
      if (!lex_.Integer(&value)) return false;
      s->ints.push_back(value);
    } while (lex_.TryChar(','));
  }
  slot->count = static_cast<uint32_t>(s->ints.size()) - slot->begin;
  return lex_.Expect('}');
}

// `{[0:2], [0:8:2]}`: starts, limits and strides, concatenated.
bool SlotParser::ParseSliceRanges(Scratch* s, Slot* slot) {
  absl::InlinedVector<int64_t, 8> limits, strides;
  slot->begin = static_cast<uint32_t>(s->ints.size());
  if (!lex_.Expect('{')) return false;
  if (lex_.Peek() != '}') {
    do {
      int64_t start, limit, stride = 1;
      if (!lex_.Expect('[') || !lex_.Integer(&start) || !lex_.Expect(':') ||
          !lex_.Integer(&limit) || (lex_.TryChar(':') && !lex_.Integer(&stride)) ||
          !lex_.Expect(']')) {
        return false;
      }
      s->ints.push_back(start);
      limits.push_back(limit);
      strides.push_back(stride);
    } while (lex_.TryChar(','));
  }
  s->ints.insert(s->ints.end(), limits.begin(), limits.end());
  s->ints.insert(s->ints.end(), strides.begin(), strides.end());
  slot->count = static_cast<uint32_t>(s->ints.size()) - slot->begin;
  return lex_.Expect('}');
}

// `0_0x-1_2_1`: low, high and interior padding, concatenated. The padding of a scalar is empty: the
// instruction or the line goes on or ends there.
bool SlotParser::ParsePadding(Scratch* s, Slot* slot) {
  absl::InlinedVector<int64_t, 8> high, interior;
  slot->begin = static_cast<uint32_t>(s->ints.size());
  slot->count = 0;
  const char next = lex_.Peek();
  const char* behind = lex_.at();  // the equals sign
  while (Is(behind[-1], kBlank)) --behind;
  if (lex_.AtEnd() || next == ',' || next == '}' ||
      std::find(behind, lex_.at(), '\n') != lex_.at()) {
    return true;
  }
  while (true) {
    int64_t value, inner = 0;
    if (!lex_.Integer(&value)) return false;
    s->ints.push_back(value);
    if (!lex_.Expect('_') || !lex_.Integer(&value)) return false;
    high.push_back(value);
    if (*lex_.at() == '_') {
      lex_.Expect('_');
      if (!lex_.NonNegative(&inner)) return false;
    }
    interior.push_back(inner);
    if (*lex_.at() != 'x') break;
    lex_.set_at(lex_.at() + 1);
  }
  s->ints.insert(s->ints.end(), high.begin(), high.end());
  s->ints.insert(s->ints.end(), interior.begin(), interior.end());
  slot->count = static_cast<uint32_t>(s->ints.size()) - slot->begin;
  return true;
}

// `{size=3x3 pad=1_1x0_0}`: seven parts of equal length, in the order of Window's fields. `size`
// gives the rank, so all fields are found first and read afterwards.
bool SlotParser::ParseWindow(Scratch* s, Slot* slot) {
  static constexpr absl::string_view kFields[] = {"size",       "stride",     "pad",
                                                  "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  const char* at[6] = {};
  if (!lex_.Expect('{')) return false;
  while (lex_.Peek() != '}') {
    absl::string_view name;
    const char* start = lex_.at();
    if (!lex_.Identifier("a window field or '}'", &name)) return false;
    const auto* field = std::find(std::begin(kFields), std::end(kFields), name);
    if (field == std::end(kFields)) {
      return lex_.Fail(start, "E005", "Unknown window field", "a field like size or pad",
                       lex_.TokenAt(start), DidYouMean(name, kFields));
    }
    if (at[field - kFields] != nullptr) {
      return lex_.Fail(start, "E007", "A window field stands twice", "", lex_.TokenAt(start));
    }
    if (!lex_.Expect('=')) return false;
    lex_.Skip();
    at[field - kFields] = lex_.at();
    while (Is(*lex_.at(), kIdent)) lex_.set_at(lex_.at() + 1);  // to be read below
  }
  lex_.Expect('}');
  slot->begin = static_cast<uint32_t>(s->ints.size());
  slot->count = 0;
  if (at[0] == nullptr) {
    for (const char* p : at) {
      if (p != nullptr) return lex_.Fail(p, "E006", "A window needs its size", "size=");
    }
    return true;
  }
  int64_t rank = 1;
  for (const char* p = at[0]; Is(*p, kIdent); ++p) rank += *p == 'x';
  s->ints.resize(slot->begin + 7 * rank, 0);
  const char* end = lex_.at();
  const int64_t defaults[7] = {1, 1, 0, 0, 1, 1, 0};
  for (int f = 0; f < 7; ++f) {
    std::fill_n(s->ints.begin() + slot->begin + f * rank, rank, defaults[f]);
  }
  // The part in which each field begins; pad fills two.
  const int part[6] = {0, 1, 2, 4, 5, 6};
  for (int f = 0; f < 6; ++f) {
    if (at[f] == nullptr) continue;
    lex_.set_at(at[f]);
    if (!ParseWindowField(s, kFields[f], rank, slot->begin + part[f] * rank)) return false;
  }
  lex_.set_at(end);
  slot->count = static_cast<uint32_t>(7 * rank);
  return true;
}

bool SlotParser::ParseWindowField(Scratch* s, absl::string_view field, int64_t rank, size_t begin) {
  const char* start = lex_.at();
  for (int64_t d = 0; d < rank; ++d) {
    if (d > 0 && *lex_.at() != 'x') {
      return lex_.Fail(start, "E019", "A window field has too few dimensions",
                       absl::StrCat(rank, " as in size"), absl::StrCat(d));
    }
    if (d > 0) lex_.set_at(lex_.at() + 1);
    int64_t value;
    if (!lex_.Integer(&value)) return false;
    s->ints[begin + d] = value;
    if (field == "pad") {
      if (!lex_.Expect('_') || !lex_.Integer(&value)) return false;
      s->ints[begin + rank + d] = value;
    } else if (value < 0) {
      return lex_.Fail(start, "E003", "An integer is out of range", "0 to 2^63-1",
                       lex_.TokenAt(start));
    }
  }
  if (Is(*lex_.at(), kIdent)) {
    return lex_.Fail(start, "E019", "A window field has too many dimensions",
                     absl::StrCat(rank, " as in size"));
  }
  return true;
}

// One word without blanks: `b01f_01io->b01f`.
bool SlotParser::ParseDimLabels(Slot* slot) {
  const char* start = lex_.at();
  const char* p = start;
  while (Is(*p, kIdent) || *p == '?' || *p == '>') ++p;
  const absl::string_view text(start, p - start);
  DimLabels labels;
  if (!shardcall::ParseDimLabels(text, &labels)) {
    return lex_.Fail(start, "E019", "Invalid dimension labels",
                     "input_kernel->output as in b01f_01io->b01f", lex_.TokenAt(start));
  }
  lex_.set_at(p);
  slot->text = text;
  return true;
}

// Kept as text without blanks; empty if all are default.
bool SlotParser::ParsePrecision(Slot* slot) {
  if (!lex_.Expect('{')) return false;
  std::string text = "{";
  bool all_default = true;
  if (lex_.Peek() != '}') {
    do {
      absl::string_view word;
      const char* at = lex_.at();
      if (!lex_.Identifier("a precision", &word)) return false;
      const std::string lower = absl::AsciiStrToLower(word);
      if (lower != "default" && lower != "high" && lower != "highest") {
        return lex_.Fail(at, "E019", "Unknown precision", "default, high or highest",
                         absl::StrCat("'", word, "'"));
      }
      all_default = all_default && lower == "default";
      absl::StrAppend(&text, text.size() > 1 ? "," : "", lower);
    } while (lex_.TryChar(','));
  }
  text.push_back('}');
  slot->text = all_default ? absl::string_view() : context_.Intern(text);
  return lex_.Expect('}');
}

// `{{0}: (1, {}), {1}: (2, {0})}`, kept as text in exactly this form.
bool SlotParser::ParseAliasing(Slot* slot) {
  std::string text = "{";
  const auto index = [&] {
    std::vector<int64_t> ints;
    if (!lex_.IntList(&ints)) return false;
    text.push_back('{');
    for (size_t i = 0; i < ints.size(); ++i) absl::StrAppend(&text, i > 0 ? "," : "", ints[i]);
    text.push_back('}');
    return true;
  };
  if (!lex_.Expect('{')) return false;
  if (lex_.Peek() != '}') {
    do {
      if (text.size() > 1) text += ", ";
      int64_t operand;
      if (!index() || !lex_.Expect(':') || !lex_.Expect('(') || !lex_.NonNegative(&operand)) {
        return false;
      }
      absl::StrAppend(&text, ": (", operand, ", ");
      if (!lex_.Expect(',') || !index() || !lex_.Expect(')')) return false;
      text.push_back(')');
    } while (lex_.TryChar(','));
  }
  text.push_back('}');
  slot->text = text.size() == 2 ? absl::string_view() : context_.Intern(text);
  return lex_.Expect('}');
}

bool SlotParser::ParseReplicaGroups(Scratch* s, Slot* slot) {
  ReplicaGroups& g = s->groups;
  g = ReplicaGroups();
  s->lists.clear();
  const char c = lex_.Peek();
  if (c == '{') {
    if (!ParseIntsOrLists(s, slot)) return false;
    if (slot->count > 0 && s->lists.empty()) {
      return lex_.Fail(slot->at, "E019", "Replica groups are lists of lists", "{{0,1},{2,3}}");
    }
    g.form = s->lists.empty() ? ReplicaGroups::Form::kAll : ReplicaGroups::Form::kLists;
    return true;
  }
  if (c == '[') return ParseIotaGroups(s);
  return ParseMeshGroups(s);
}

// `[groups,size]<=[dims]T(perm)`, simplified: dims of size 1 are dropped, and dims that stay
// adjacent are merged.
bool SlotParser::ParseIotaGroups(Scratch* s) {
  ReplicaGroups& g = s->groups;
  const char* start = lex_.at();
  absl::InlinedVector<int64_t, 8> dims, perm;
  const auto list = [&](char close, absl::InlinedVector<int64_t, 8>* out) {
    do {
      int64_t value;
      if (!lex_.NonNegative(&value)) return false;
      out->push_back(value);
    } while (lex_.TryChar(','));
    return lex_.Expect(close);
  };
  if (!lex_.Expect('[') || !lex_.NonNegative(&g.num_groups) || !lex_.Expect(',') ||
      !lex_.NonNegative(&g.group_size) || !lex_.Expect(']') || !lex_.ExpectText("<=") ||
      !lex_.Expect('[') || !list(']', &dims)) {
    return false;
  }
  if (lex_.TryChar('T')) {
    if (!lex_.Expect('(') || !list(')', &perm)) return false;
  } else if (dims.size() > 1) {
    return lex_.FailExpected("'T(...)' after several dimensions");
  } else {
    perm.push_back(0);
  }
  int64_t devices = 0;
  if (__builtin_mul_overflow(g.num_groups, g.group_size, &devices) ||
      !IsIota(dims, perm, devices)) {
    return lex_.Fail(start, "E019", "Invalid iota replica groups",
                     "[groups,size]<=[dims]T(permutation) with equal products");
  }
  const IotaForm form = SimplifiedIota(dims, perm);
  // Two lists: the reshape's dims, then the permutation.
  s->lists.clear();
  for (const auto* list : {&form.dims, &form.perm}) {
    const auto begin = static_cast<uint32_t>(s->ints.size());
    s->ints.insert(s->ints.end(), list->begin(), list->end());
    s->lists.push_back({begin, static_cast<uint32_t>(list->size())});
  }
  g.form = ReplicaGroups::Form::kIota;
  return true;
}

// `mesh['a'=2,'b'=4] {'b'}` or `mesh[..], device_ids=(..) {..}`: parsed as a sharding with one
// dimension, over the axes of the groups.
bool SlotParser::ParseMeshGroups(Scratch* s) {
  const char* start = lex_.at();
  absl::string_view axes;
  if (!lex_.TryText("mesh")) {
    return lex_.FailExpected("replica groups like {{0,1}}, [2,4]<=[8] or mesh['a'=2] {'a'}");
  }
  absl::string_view part;
  if (!lex_.Balanced(&part)) return false;
  if (lex_.TryChar(',')) {
    if (!lex_.TryWord("device_ids") || !lex_.Expect('=') || !lex_.Balanced(&part)) {
      return lex_.FailExpected("device_ids=(...)");
    }
  }
  const absl::string_view mesh(start, lex_.at() - start);
  if (lex_.Peek() != '{' || !lex_.Balanced(&axes)) return lex_.FailExpected("mesh axes in {}");
  absl::StatusOr<HloSharding> sharding =
      ParseHloSharding(absl::StrCat("{", mesh, ", [", axes, "]}"));
  if (!sharding.ok() || sharding->named.dims.size() != 1 || sharding->named.dims[0].open) {
    const absl::string_view why = sharding.ok() ? "" : sharding.status().message();
    return lex_.Fail(start, "E019",
                     absl::StrCat("Invalid mesh groups (", why.substr(0, why.find('\n')), ")"),
                     "axes of the mesh, as in mesh['a'=2,'b'=4] {'b'}");
  }
  const std::vector<NamedAxisRef>& refs = sharding->named.dims[0].axes;
  if (refs.empty()) {
    return lex_.Fail(start, "E019", "Invalid mesh groups", "at least one axis", lex_.TokenAt(start),
                     "give the groups as {{0},{1}} or leave the collective out");
  }
  s->groups.form = ReplicaGroups::Form::kMesh;
  s->groups.mesh_text = context_.Intern(MeshGroupsText(*sharding));
  return true;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
