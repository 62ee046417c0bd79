// SPDX-License-Identifier: Apache-2.0
// Values of the attributes that belong to an op.
#include "absl/strings/str_cat.h"
#include "partitioner/ir/parser_internal.h"

namespace shardcall::hlo_text {
namespace {

std::vector<absl::string_view> NamesOf(const AttrSet& set) {
  std::vector<absl::string_view> out;
  for (int i = 0; i < kNumAttrs; ++i) {
    if (set.Has(static_cast<Attr>(i))) out.push_back(AttrText(static_cast<Attr>(i)));
  }
  return out;
}

}  // namespace

bool Parser::ParseAttributes(CompId comp, Scratch* s, const OpcodeAttrs& attrs, Opcode opcode) {
  while (lex_.TryChar(',')) {
    absl::string_view name;
    lex_.Skip();
    const char* at = lex_.at();
    if (!lex_.Identifier("an attribute", &name)) return false;
    Attr attr;
    if (!AttrFromText(name, &attr) || !attrs.allowed.Has(attr)) {
      return lex_.Fail(at, "E005", "Unknown attribute",
                       absl::StrCat("an attribute of ", OpcodeText(opcode)), lex_.TokenAt(at),
                       DidYouMean(name, NamesOf(attrs.allowed)));
    }
    if (s->Has(attr)) {
      return lex_.Fail(at, "E007", "An attribute stands twice", "", lex_.TokenAt(at),
                       "remove one of the two");
    }
    if (!lex_.Expect('=')) return false;
    s->seen.Add(attr);
    if (!ParseValue(comp, s, attr)) return false;
  }
  // Both words at once; the names only on error.
  const uint64_t missing0 = attrs.required.words[0] & ~s->seen.words[0];
  const uint64_t missing1 = attrs.required.words[1] & ~s->seen.words[1];
  if ((missing0 | missing1) == 0) return true;
  AttrSet missing;
  missing.words[0] = missing0;
  missing.words[1] = missing1;
  return lex_.Fail(s->opcode_at, "E006", "An attribute is missing",
                   absl::StrCat(NamesOf(missing).front(), "= on ", OpcodeText(opcode)));
}

bool Parser::ParseValue(CompId comp, Scratch* s, Attr attr) {
  Slot& slot = (*s)[attr];
  lex_.Skip();
  slot.at = lex_.at();
  switch (FormOf(attr)) {
    case AttrForm::kInt: return lex_.Integer(&slot.value);
    case AttrForm::kBool: {
      bool value = false;
      const bool ok = lex_.Bool(&value);
      slot.value = value;
      return ok;
    }
    case AttrForm::kFloat: return lex_.Number(&slot.number);
    case AttrForm::kWord: return lex_.Identifier("a word", &slot.text);
    case AttrForm::kString: return KeepString(&slot);
    case AttrForm::kInts:
      slot.begin = static_cast<uint32_t>(s->ints.size());
      if (!lex_.IntList(&s->ints)) return false;
      slot.count = static_cast<uint32_t>(s->ints.size()) - slot.begin;
      return true;
    case AttrForm::kIntsOrLists: return ParseIntsOrLists(s, &slot);
    case AttrForm::kBools: {
      if (!lex_.Expect('{')) return false;
      s->bools.clear();
      if (lex_.TryChar('}')) return true;
      do {
        bool value;
        if (!lex_.Bool(&value)) return false;
        s->bools.push_back(value);
      } while (lex_.TryChar(','));
      return lex_.Expect('}');
    }
    case AttrForm::kSliceRanges: return ParseSliceRanges(s, &slot);
    case AttrForm::kPadding: return ParsePadding(s, &slot);
    case AttrForm::kWindow: return ParseWindow(s, &slot);
    case AttrForm::kDimLabels: return ParseDimLabels(&slot);
    case AttrForm::kPrecision: return ParsePrecision(&slot);
    case AttrForm::kComputation: {
      CompId id;
      if (!ParseComputationRef(&id)) return false;
      slot.value = id.value;
      return true;
    }
    case AttrForm::kComputations: {
      s->comps.clear();
      if (!lex_.Expect('{')) return false;
      if (lex_.TryChar('}')) return true;
      do {
        CompId id;
        if (!ParseComputationRef(&id)) return false;
        s->comps.push_back(id);
      } while (lex_.TryChar(','));
      return lex_.Expect('}');
    }
    case AttrForm::kAliasing: return ParseAliasing(&slot);
    case AttrForm::kShape: return ParseShape(&s->outfeed_shape);
    case AttrForm::kShapes: {
      s->shapes.clear();
      if (!lex_.Expect('{')) return false;
      if (lex_.TryChar('}')) return true;
      do {
        const Shape* shape;
        if (!ParseShape(&shape)) return false;
        s->shapes.push_back(shape);
      } while (lex_.TryChar(','));
      return lex_.Expect('}');
    }
    case AttrForm::kLiteral: return ParseLiteralWithShape(&s->literal);
    case AttrForm::kReplicaGroups: return ParseReplicaGroups(s, &slot);
    case AttrForm::kRawText: return lex_.Balanced(&slot.text);
    case AttrForm::kSharding: return ParseSharding(&s->proto.sharding);
    case AttrForm::kFrontend: return ParseFrontend(&s->proto.frontend);
    case AttrForm::kMetadata: return ParseMetadata(&s->proto.metadata);
    case AttrForm::kBackendConfig: return ParseBackendConfig(&s->proto.backend_config);
    case AttrForm::kInstructions: {
      if (!lex_.Expect('{')) return false;
      do {
        absl::string_view name;
        lex_.Skip();
        const char* at = lex_.at();
        InstrId id;
        if (!lex_.Name("an instruction's name", &name) || !LookUp(comp, name, at, &id)) {
          return false;
        }
        s->controls.push_back(id);
      } while (lex_.TryChar(','));
      return lex_.Expect('}');
    }
  }
  return false;
}

bool Parser::KeepString(Slot* slot) {
  if (!lex_.String(&slot->text, &string_storage_)) return false;
  if (slot->text.data() == string_storage_.data()) slot->text = context_.Intern(slot->text);
  return true;
}

// `{1,2}` or `{{0,1},{2,3}}`; the slot's value counts the inner lists.
bool Parser::ParseIntsOrLists(Scratch* s, Slot* slot) {
  slot->begin = static_cast<uint32_t>(s->ints.size());
  slot->value = 0;
  if (!lex_.Expect('{')) return false;
  if (lex_.Peek() == '{') {
    do {
      const auto begin = static_cast<uint32_t>(s->ints.size());
      if (!lex_.IntList(&s->ints)) return false;
      const auto count = static_cast<uint32_t>(s->ints.size()) - begin;
      if (slot != &(*s)[Attr::kReplicaGroups]) {
        // Pairs and sizes: all lists are equally long, so their number says all.
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

// A computation's name, or its instructions in braces.
bool Parser::ParseComputationRef(CompId* out) {
  lex_.Skip();
  const char* at = lex_.at();
  if (*at != '{') {
    absl::string_view name;
    return lex_.Name("a computation's name", &name) && LookUpComputation(name, at, out);
  }
  if (++nesting_ > kMaxNesting) {
    return lex_.Fail(at, "E014", "Computations are nested too deeply",
                     absl::StrCat("at most ", kMaxNesting, " levels"));
  }
  std::unique_ptr<Scratch> outer = std::move(scratch_);
  scratch_ = std::make_unique<Scratch>();
  *out = module_.AddComputation("");
  const bool ok = ParseComputationBody(*out);
  scratch_ = std::move(outer);
  --nesting_;
  return ok;
}

}  // namespace shardcall::hlo_text
