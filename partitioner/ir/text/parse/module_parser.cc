// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/module_parser.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/header_parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
// An instruction takes one line of, usually, at least this many characters. So a text of empty
// lines does not reserve much memory.
size_t ModuleParser::GuessInstructions() const {
  constexpr size_t kShortLine = 48;
  const size_t lines = std::count(lex_.at(), lex_.end(), '\n');
  return 1 + std::min<size_t>(lines, (lex_.end() - lex_.at()) / kShortLine);
}

bool ModuleParser::Run() {
  if (!lex_.CheckEncoding()) return false;
  const size_t instructions = GuessInstructions();
  module_.Reserve(instructions, 2 * instructions);
  definitions_.Reserve(instructions);
  lex_.TryText("\xEF\xBB\xBF");  // the byte order mark that some editors begin a file with
  lex_.Skip();
  if (lex_.TryWord("HloModule")) {
    HeaderParser header(&lex_, &module_, &shapes_, &common_, &canonical_);
    if (!header.Parse()) return false;
  } else {
    // Without a header: a module starts with ENTRY or `name {`.
    const char* start = lex_.at();
    bool is_module = lex_.TryWord("ENTRY");
    if (!is_module && (lex_.Peek() == '%' || !lex_.TryIdentifier().empty())) {
      if (lex_.Peek() == '%') {
        lex_.TryChar('%');
        lex_.TryIdentifier();
      }
      is_module = lex_.Peek() == '{';
    }
    if (lex_.failed()) return false;
    lex_.set_at(start);
    if (!is_module && !lex_.AtEnd()) return ParseSingleInstruction();
  }
  do {
    if (!ParseComputation()) return false;
  } while (!lex_.AtEnd());
  if (lex_.failed()) return false;
  if (!has_entry_) module_.set_entry(CompId(module_.num_computations() - 1));
  ModuleHeader& h = module_.header;
  if (h.name.empty()) h.name = absl::StrCat("module_", module_.comp(module_.entry()).name);
  return true;
}

bool ModuleParser::ParseComputation() {
  lex_.Skip();
  const char* at = lex_.at();
  const bool is_entry = lex_.TryWord("ENTRY");
  if (is_entry && has_entry_) {
    return lex_.Fail(at, "E017", "A second ENTRY computation", "one ENTRY");
  }
  absl::string_view name;
  lex_.Skip();
  const char* name_at = lex_.at();
  if (!lex_.Name("a computation", &name)) return false;
  if (definitions_.HasComputation(name)) {
    return lex_.Fail(name_at, "E009", "A computation is defined twice", "", lex_.TokenAt(name_at),
                     "give each computation a name of its own");
  }
  const Shape* result = nullptr;
  lex_.Skip();
  const char* signature_at = lex_.at();
  if (*signature_at == '(' && !ParseSignature(&result)) return false;
  const CompId id = module_.AddComputation(name);
  if (!ParseInstructions(id, /*braces=*/true)) return false;
  const Shape* root = module_.instr(module_.comp(id).root).shape;
  if (result != nullptr && result->bare() != root->bare()) {
    return lex_.Fail(signature_at, "E018", "The signature's result is not the root's shape",
                     root->ToString(false), result->ToString(false));
  }
  if (lex_.TryChar(',')) {
    if (!lex_.TryWord("execution_thread") || !lex_.Expect('=')) {
      return lex_.FailExpected("execution_thread=");
    }
    absl::string_view thread;
    std::string storage;
    if (!lex_.String(&thread, &storage)) return false;
    if (thread != "main") module_.mutable_comp(id).execution_thread = std::string(thread);
  }
  definitions_.AddComputation(name, id);
  if (is_entry) {
    has_entry_ = true;
    module_.set_entry(id);
  }
  return true;
}

// `(name: shape, ..) -> shape`. The parameters are skipped, since the body repeats them.
bool ModuleParser::ParseSignature(const Shape** result) {
  if (!lex_.Expect('(')) return false;
  if (!lex_.TryChar(')')) {
    do {
      absl::string_view name;
      const Shape* shape;
      if (!lex_.Name("a parameter's name", &name)) return false;
      lex_.TryChar(':');
      if (!shapes_.Parse(&shape)) return false;
    } while (lex_.TryChar(','));
    if (!lex_.Expect(')')) return false;
  }
  return lex_.ExpectText("->") && shapes_.Parse(result);
}

bool ModuleParser::BeginBody() {
  if (!lex_.Expect('{')) return false;
  return lex_.Peek() != '}' || lex_.FailExpected("an instruction");
}

bool ModuleParser::EndBody(CompId comp) {
  const char* at = lex_.at();
  if (!lex_.Expect('}')) return false;
  Computation& c = module_.mutable_comp(comp);
  if (!c.root.valid()) c.root = c.instructions.back();
  return CheckParameters(comp, at);
}

bool ModuleParser::ParseInstructions(CompId comp, bool braces) {
  if (braces && !BeginBody()) return false;
  while (true) {
    Progress progress = BeginInstruction(comp, scratch_.get())
                            ? attributes_.Parse(comp, scratch_.get())
                            : Progress::kError;
    // Continues the instruction until it is complete or opens a computation.
    while (progress == Progress::kDone) {
      if (!EndInstruction(comp, scratch_.get())) return false;
      if (!braces && waiting_.empty()) return true;
      if (lex_.Peek() != '}') break;
      if (!EndBody(comp)) return false;
      if (waiting_.empty()) return true;
      const CompId value = comp;
      comp = waiting_.back().first;
      scratch_ = std::move(waiting_.back().second);
      waiting_.pop_back();
      progress = attributes_.Resume(comp, scratch_.get(), value);
    }
    if (progress == Progress::kError) return false;
    if (progress == Progress::kDone) continue;
    if (waiting_.size() >= kMaxNesting) {
      return lex_.Fail(lex_.at(), "E014", "Computations are nested too deeply",
                       absl::StrCat("at most ", kMaxNesting, " levels"));
    }
    waiting_.emplace_back(comp, std::move(scratch_));
    scratch_ = std::make_unique<Scratch>();
    comp = module_.AddComputation("");
    if (!BeginBody()) return false;
  }
}

bool ModuleParser::CheckParameters(CompId comp, const char* at) {
  const Computation& c = module_.comp(comp);
  for (size_t k = 0; k < c.parameters.size(); ++k) {
    if (c.parameters[k].valid()) continue;
    return lex_.Fail(at, "E013", "A parameter number is missing",
                     absl::StrCat("parameter(", k, ") of ", c.parameters.size()));
  }
  return true;
}

bool ModuleParser::ParseSingleInstruction() {
  single_ = true;
  operands_.set_single();
  const CompId comp = module_.AddComputation("_");
  module_.header.name = "_";
  module_.header.is_scheduled = true;
  if (!ParseInstructions(comp, /*braces=*/false)) return false;
  if (!lex_.AtEnd()) return lex_.FailExpected("the end of the text");
  if (lex_.failed()) return false;
  Computation& c = module_.mutable_comp(comp);
  c.root = c.instructions.back();
  module_.set_entry(comp);
  return CheckParameters(comp, lex_.at());
}

// [ROOT] name = [shape] opcode(operands)
bool ModuleParser::BeginInstruction(CompId comp, Scratch* s) {
  s->Reset();
  lex_.Skip();
  const char* root_at = lex_.at();
  s->is_root = *root_at == 'R' && lex_.TryWord("ROOT");
  if (s->is_root && module_.comp(comp).root.valid()) {
    return lex_.Fail(root_at, "E009", "A second ROOT in this computation", "one ROOT");
  }
  return ParseNameAndShape(comp, s) && operands_.ParseOpcode(s) &&
         operands_.ParseParenthesized(comp, s);
}

bool ModuleParser::EndInstruction(CompId comp, Scratch* s) {
  InstrId id;
  if (!maker_.Make(comp, s, &id)) return false;
  if (s->is_root) module_.SetRoot(comp, id);
  return true;
}

bool ModuleParser::ParseNameAndShape(CompId comp, Scratch* s) {
  lex_.Skip();
  s->start = lex_.at();
  absl::string_view name;
  if (single_) {  // `name =` may be missing
    const char* start = lex_.at();
    bool named;
    if (*start == '%') {
      named = lex_.Name("an instruction", &name);
    } else {  // may be a type
      name = lex_.TryIdentifier();
      named = !name.empty();
    }
    named = named && lex_.Peek() == '=';
    if (!named) {
      lex_.set_at(start);
      return shapes_.Parse(&s->proto.shape);
    }
  } else if (!lex_.Name("an instruction or '}'", &name)) {
    return false;
  }
  if (definitions_.Has(comp, name)) {
    return lex_.Fail(s->start, "E009", "An instruction is defined twice", "",
                     lex_.TokenAt(s->start), "give each instruction a name of its own");
  }
  if (IsReservedName(name)) {
    return lex_.Fail(s->start, "E009", "An instruction has a reserved name",
                     "a name that is no type and does not start with '__'", lex_.TokenAt(s->start),
                     "rename the instruction");
  }
  s->proto.name = name;
  if (!lex_.Expect('=')) return false;
  lex_.Skip();
  // A shape starts with '(' or with a type and '['; otherwise it was left out.
  const char* p = lex_.at();
  while (Is(*p, kIdent)) ++p;
  const bool has_shape = *p == '[' || p == lex_.at() || (p - lex_.at() == 1 && *lex_.at() == 'b');
  return !has_shape || shapes_.Parse(&s->proto.shape);
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
