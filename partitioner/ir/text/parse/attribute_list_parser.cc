// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/attribute_list_parser.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

std::vector<absl::string_view> NamesOf(const AttrSet& set) {
  std::vector<absl::string_view> out;
  for (int i = 0; i < kNumAttrs; ++i) {
    if (set.Has(static_cast<Attr>(i))) out.push_back(AttrText(static_cast<Attr>(i)));
  }
  return out;
}

// An async start in its short form has the attributes of the wrapped op.
Opcode OwnerOfAttributes(const Scratch& s) {
  const bool sugar = s.opcode == Opcode::kAsyncStart && s.wrapped < kNumOpcodes;
  return sugar ? static_cast<Opcode>(s.wrapped) : s.opcode;
}

}  // namespace

AttributeListParser::Progress AttributeListParser::Parse(CompId comp, Scratch* s) {
  const Opcode opcode = OwnerOfAttributes(*s);
  OpcodeAttrs of_sugar;
  const OpcodeAttrs* attrs = &AttrsOf(opcode);
  if (opcode != s->opcode) {
    of_sugar = *attrs;
    of_sugar.allowed.Add(Attr::kAsyncExecutionThread);
    of_sugar.allowed.Add(Attr::kOutputToOperandAliasing);
    attrs = &of_sugar;
  }
  while (lex_.TryChar(',')) {
    absl::string_view name;
    lex_.Skip();
    const char* at = lex_.at();
    if (!lex_.Identifier("an attribute", &name)) return Progress::kError;
    Attr attr;
    if (!AttrFromText(name, &attr) || !attrs->allowed.Has(attr)) {
      lex_.Fail(at, "E005", "Unknown attribute",
                absl::StrCat("an attribute of ", OpcodeText(opcode)), lex_.TokenAt(at),
                DidYouMean(name, NamesOf(attrs->allowed)));
      return Progress::kError;
    }
    if (s->Has(attr)) {
      lex_.Fail(at, "E007", "An attribute stands twice", "", lex_.TokenAt(at),
                "remove one of the two");
      return Progress::kError;
    }
    if (!lex_.Expect('=')) return Progress::kError;
    s->seen.Add(attr);
    const Progress progress = ParseValue(comp, s, attr);
    if (progress != Progress::kDone) return progress;
  }
  return CheckRequired(s, *attrs) ? Progress::kDone : Progress::kError;
}

bool AttributeListParser::CheckRequired(Scratch* s, const OpcodeAttrs& attrs) {
  // Tests both words at once; the names are only needed for an error.
  AttrSet missing;
  missing.words[0] = attrs.required.words[0] & ~s->seen.words[0];
  missing.words[1] = attrs.required.words[1] & ~s->seen.words[1];
  if ((missing.words[0] | missing.words[1]) == 0) return true;
  return lex_.Fail(
      s->opcode_at, "E006", "An attribute is missing",
      absl::StrCat(NamesOf(missing).front(), "= on ", OpcodeText(OwnerOfAttributes(*s))));
}

// A computation's name, or its instructions in braces; for kComputations a list of these. In a list
// the cursor is before an item.
AttributeListParser::Progress AttributeListParser::ParseComputationValue(Scratch* s, Attr attr) {
  const bool list = FormOf(attr) == AttrForm::kComputations;
  do {
    lex_.Skip();
    const char* at = lex_.at();
    if (*at == '{') {
      s->pending = attr;
      return Progress::kInline;
    }
    absl::string_view name;
    CompId id;
    if (!lex_.Name("a computation's name", &name) || !definitions_.FindComputation(name, at, &id)) {
      return Progress::kError;
    }
    if (!list) {
      (*s)[attr].value = id.value;
      return Progress::kDone;
    }
    s->comps.push_back(id);
  } while (lex_.TryChar(','));
  return lex_.Expect('}') ? Progress::kDone : Progress::kError;
}

AttributeListParser::Progress AttributeListParser::Resume(CompId comp, Scratch* s, CompId value) {
  const Attr attr = s->pending;
  if (FormOf(attr) == AttrForm::kComputation) {
    (*s)[attr].value = value.value;
  } else {
    s->comps.push_back(value);
    if (lex_.TryChar(',')) {
      const Progress progress = ParseComputationValue(s, attr);
      if (progress != Progress::kDone) return progress;
    } else if (!lex_.Expect('}')) {
      return Progress::kError;
    }
  }
  return Parse(comp, s);
}

AttributeListParser::Progress AttributeListParser::ParseValue(CompId comp, Scratch* s, Attr attr) {
  Slot& slot = (*s)[attr];
  lex_.Skip();
  slot.at = lex_.at();
  const AttrForm form = FormOf(attr);
  if (form == AttrForm::kComputation) return ParseComputationValue(s, attr);
  if (form == AttrForm::kComputations) {
    s->comps.clear();
    if (!lex_.Expect('{')) return Progress::kError;
    return lex_.TryChar('}') ? Progress::kDone : ParseComputationValue(s, attr);
  }
  return ParsePlainValue(comp, s, attr) ? Progress::kDone : Progress::kError;
}

bool AttributeListParser::ParseBools(std::vector<char>* out) {
  out->clear();
  if (!lex_.Expect('{')) return false;
  if (lex_.TryChar('}')) return true;
  do {
    bool value;
    if (!lex_.Bool(&value)) return false;
    out->push_back(value);
  } while (lex_.TryChar(','));
  return lex_.Expect('}');
}

bool AttributeListParser::ParseShapes(std::vector<const Shape*>* out) {
  out->clear();
  if (!lex_.Expect('{')) return false;
  if (lex_.TryChar('}')) return true;
  do {
    const Shape* shape;
    if (!shapes_.Parse(&shape)) return false;
    out->push_back(shape);
  } while (lex_.TryChar(','));
  return lex_.Expect('}');
}

bool AttributeListParser::ParseInstructions(CompId comp, std::vector<InstrId>* out) {
  if (!lex_.Expect('{')) return false;
  do {
    absl::string_view name;
    lex_.Skip();
    const char* at = lex_.at();
    InstrId id;
    if (!lex_.Name("an instruction's name", &name) || !definitions_.Find(comp, name, at, &id))
      return false;
    out->push_back(id);
  } while (lex_.TryChar(','));
  return lex_.Expect('}');
}

bool AttributeListParser::ParsePlainValue(CompId comp, Scratch* s, Attr attr) {
  Slot& slot = (*s)[attr];
  switch (FormOf(attr)) {
    case AttrForm::kInt: return lex_.Integer(&slot.value);
    case AttrForm::kBool: {
      bool value = false;
      const bool ok = lex_.Bool(&value);
      slot.value = value;
      return ok;
    }
    case AttrForm::kFloat: return lex_.Number(&slot.number);
    case AttrForm::kWord:
      return lex_.Identifier(attr == Attr::kApiVersion
                                 ? "API_VERSION_TYPED_FFI, or the name of another version"
                                 : "a word",
                             &slot.text);
    case AttrForm::kString: return slots_.ParseString(&slot);
    case AttrForm::kInts:
      slot.begin = static_cast<uint32_t>(s->ints.size());
      if (!lex_.IntList(&s->ints)) return false;
      slot.count = static_cast<uint32_t>(s->ints.size()) - slot.begin;
      return true;
    case AttrForm::kIntsOrLists: return slots_.ParseIntsOrLists(s, &slot);
    case AttrForm::kBools: return ParseBools(&s->bools);
    case AttrForm::kSliceRanges: return slots_.ParseSliceRanges(s, &slot);
    case AttrForm::kPadding: return slots_.ParsePadding(s, &slot);
    case AttrForm::kWindow: return slots_.ParseWindow(s, &slot);
    case AttrForm::kDimLabels: return slots_.ParseDimLabels(&slot);
    case AttrForm::kPrecision: return slots_.ParsePrecision(&slot);
    case AttrForm::kComputation:
    case AttrForm::kComputations: return false;  // handled in ParseValue
    case AttrForm::kAliasing: return slots_.ParseAliasing(&slot);
    case AttrForm::kShape: return shapes_.Parse(&s->outfeed_shape);
    case AttrForm::kShapes: return ParseShapes(&s->shapes);
    case AttrForm::kLiteral: return literals_.ParseWithShape(&s->literal);
    case AttrForm::kReplicaGroups: return slots_.ParseReplicaGroups(s, &slot);
    case AttrForm::kStatistics: return canonical_.ParseStatistics(&slot.text);
    case AttrForm::kAccuracy: return canonical_.ParseResultAccuracy(&slot.text);
    case AttrForm::kSparsity: return canonical_.ParseSparsity(&slot.text);
    case AttrForm::kDomain: return canonical_.ParseDomain(&slot.text);
    case AttrForm::kOrigin: return canonical_.ParseOrigin(&slot.text);
    case AttrForm::kSharding: return common_.ParseSharding(&s->proto.sharding);
    case AttrForm::kFrontend: return common_.ParseFrontend(&s->proto.frontend);
    case AttrForm::kMetadata: return common_.ParseMetadata(&s->proto.metadata);
    case AttrForm::kBackendConfig: return common_.ParseBackendConfig(&s->proto.backend_config);
    case AttrForm::kInstructions: return ParseInstructions(comp, &s->controls);
  }
  return false;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
