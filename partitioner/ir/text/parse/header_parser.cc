// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/header_parser.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool HeaderParser::Parse() {
  absl::string_view name;
  if (!lex_.Name("the module's name", &name)) return false;
  header_.name = std::string(name);
  absl::flat_hash_set<absl::string_view> seen;
  while (lex_.TryChar(',')) {
    lex_.Skip();
    const char* at = lex_.at();
    if (!lex_.Identifier("a module attribute", &name)) return false;
    if (!seen.insert(name).second) {
      return lex_.Fail(at, "E007", "An attribute stands twice", "", lex_.TokenAt(at),
                       "remove one of the two");
    }
    if (!lex_.Expect('=')) return false;
    if (!ParseAttribute(name, at)) return false;
  }
  return ParseStackTables();
}

bool HeaderParser::ParseAttribute(absl::string_view name, const char* at) {
  ModuleHeader& h = header_;
  if (name == "is_scheduled") return lex_.Bool(&h.is_scheduled);
  if (name == "input_output_alias") return ParseAliases();
  if (name == "buffer_donor") return ParseDonors();
  if (name == "alias_passthrough_params") return lex_.Bool(&h.alias_passthrough_params);
  if (name == "entry_computation_layout") return ParseEntryLayout();
  if (name == "allow_spmd_sharding_propagation_to_parameters") {
    return ParseBoolOrList(&h.propagate_to_parameters);
  }
  if (name == "allow_spmd_sharding_propagation_to_output") {
    return ParseBoolOrList(&h.propagate_to_output);
  }
  if (name == "replica_count" || name == "num_partitions") {
    const bool replicas = name == "replica_count";
    lex_.Skip();
    const char* value_at = lex_.at();
    int64_t* count = replicas ? &h.replica_count : &h.num_partitions;
    if (!lex_.NonNegative(count)) return false;
    if (*count < 1) {
      return lex_.Fail(value_at, "E003", "An integer is out of range", "at least 1",
                       lex_.TokenAt(value_at));
    }
    if (!replicas) h.has_num_partitions = true;
    return true;
  }
  if (name == "frontend_attributes") return common_.ParseFrontend(&h.frontend);
  if (name == "origin_recovery_table")
    return canonical_.ParseRecoveryTable(&h.origin_recovery_table);
  if (name == "debug_attributes") {
    absl::string_view text;
    if (!lex_.Balanced(&text)) return false;
    h.debug_attributes = std::string(text);
    return true;
  }
  static constexpr absl::string_view kNames[] = {"is_scheduled",
                                                 "input_output_alias",
                                                 "buffer_donor",
                                                 "alias_passthrough_params",
                                                 "entry_computation_layout",
                                                 "allow_spmd_sharding_propagation_to_parameters",
                                                 "allow_spmd_sharding_propagation_to_output",
                                                 "replica_count",
                                                 "num_partitions",
                                                 "frontend_attributes",
                                                 "origin_recovery_table",
                                                 "debug_attributes"};
  return lex_.Fail(at, "E005", "Unknown module attribute", "an attribute like num_partitions",
                   lex_.TokenAt(at), DidYouMean(name, kNames));
}

// `{}` or `{1,0}`
bool HeaderParser::ParseIndex(std::vector<int64_t>* out) {
  lex_.Skip();
  const char* at = lex_.at();
  if (!lex_.IntList(out)) return false;
  const bool ok = std::all_of(out->begin(), out->end(), [](int64_t i) { return i >= 0; });
  return ok || lex_.Fail(at, "E003", "An index is negative", "0 or more");
}

// `{ {0}: (1, {}, may-alias), .. }`
bool HeaderParser::ParseAliases() {
  if (!lex_.Expect('{')) return false;
  if (lex_.TryChar('}')) return true;
  do {
    AliasEntry e;
    if (!ParseIndex(&e.output_index) || !lex_.Expect(':') || !lex_.Expect('(') ||
        !lex_.NonNegative(&e.parameter) || !lex_.Expect(',') || !ParseIndex(&e.parameter_index)) {
      return false;
    }
    if (lex_.TryChar(',')) {
      e.must_alias = lex_.TryWord("must-alias");
      if (!e.must_alias && !lex_.TryWord("may-alias")) {
        return lex_.FailExpected("may-alias or must-alias");
      }
    }
    if (!lex_.Expect(')')) return false;
    header_.aliases.push_back(std::move(e));
  } while (lex_.TryChar(','));
  return lex_.Expect('}');
}

// `{ (0, {}), .. }`, kept sorted
bool HeaderParser::ParseDonors() {
  if (!lex_.Expect('{')) return false;
  auto& donors = header_.donors;
  if (lex_.TryChar('}')) return true;
  do {
    DonorEntry e;
    if (!lex_.Expect('(') || !lex_.NonNegative(&e.parameter) || !lex_.Expect(',') ||
        !ParseIndex(&e.parameter_index) || !lex_.Expect(')')) {
      return false;
    }
    donors.push_back(std::move(e));
  } while (lex_.TryChar(','));
  std::sort(donors.begin(), donors.end(), [](const DonorEntry& a, const DonorEntry& b) {
    return std::tie(a.parameter, a.parameter_index) < std::tie(b.parameter, b.parameter_index);
  });
  return lex_.Expect('}');
}

// `true` or `{true,false}`
bool HeaderParser::ParseBoolOrList(std::vector<bool>* out) {
  out->clear();
  const bool list = lex_.TryChar('{');
  do {
    bool value;
    if (!lex_.Bool(&value)) return false;
    out->push_back(value);
  } while (list && lex_.TryChar(','));
  return !list || lex_.Expect('}');
}

// `{(shape, ..)->shape}`
bool HeaderParser::ParseEntryLayout() {
  ModuleHeader& h = header_;
  if (!lex_.Expect('{') || !lex_.Expect('(')) return false;
  if (!lex_.TryChar(')')) {
    do {
      const Shape* shape;
      if (!shapes_.Parse(&shape)) return false;
      h.entry_parameter_layouts.push_back(shape);
    } while (lex_.TryChar(','));
    if (!lex_.Expect(')')) return false;
  }
  return lex_.ExpectText("->") && shapes_.Parse(&h.entry_result_layout) && lex_.Expect('}');
}

// Skips the number at the start of a table's row: rows are numbered by position.
bool HeaderParser::ParseTableNumber(bool* more) {
  *more = Is(lex_.Peek(), kDigit);
  if (!*more) return true;
  int64_t number;
  return lex_.NonNegative(&number);
}

// `{k=v k=v}` with every key once.
bool HeaderParser::ParseTableFields(absl::Span<const absl::string_view> keys, int32_t* values) {
  if (!lex_.Expect('{')) return false;
  uint32_t seen = 0;
  while (lex_.Peek() != '}') {
    absl::string_view key;
    const char* at = lex_.at();
    if (!lex_.Identifier("a field", &key) || !lex_.Expect('=')) return false;
    const size_t k = std::find(keys.begin(), keys.end(), key) - keys.begin();
    if (k == keys.size()) {
      return lex_.Fail(at, "E005", "Unknown field", absl::StrCat("a field like ", keys[0]),
                       lex_.TokenAt(at));
    }
    int64_t value;
    lex_.Skip();
    const char* value_at = lex_.at();
    if (!lex_.Integer(&value)) return false;
    if (value < 0 || value > INT32_MAX) {
      return lex_.Fail(value_at, "E003", "An integer is out of range", "0 to 2^31-1",
                       lex_.TokenAt(value_at));
    }
    values[k] = static_cast<int32_t>(value);
    seen |= 1u << k;
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    if (!(seen >> k & 1)) return lex_.FailExpected(absl::StrCat(keys[k], "="));
  }
  return lex_.Expect('}');
}

bool HeaderParser::ParseStackTables() {
  if (!lex_.TryWord("FileNames")) return true;
  StackTables& t = header_.stack;
  bool more = true;
  const auto strings = [&](std::vector<absl::string_view>* out) {
    while (ParseTableNumber(&more) && more) {
      absl::string_view text;
      if (!KeptString(&text)) return false;
      out->push_back(text);
    }
    return !lex_.failed();
  };
  if (!strings(&t.files)) return false;
  if (!lex_.TryWord("FunctionNames")) return lex_.FailExpected("a row or FunctionNames");
  if (!strings(&t.functions)) return false;
  if (!lex_.TryWord("FileLocations")) return lex_.FailExpected("a row or FileLocations");
  static constexpr absl::string_view kLocation[] = {
      "file_name_id", "function_name_id", "line", "end_line", "column", "end_column"};
  while (ParseTableNumber(&more) && more) {
    int32_t v[6];
    if (!ParseTableFields(kLocation, v)) return false;
    t.locations.push_back({v[0], v[1], v[2], v[3], v[4], v[5]});
  }
  if (lex_.failed()) return false;
  if (!lex_.TryWord("StackFrames")) return lex_.FailExpected("a row or StackFrames");
  static constexpr absl::string_view kFrame[] = {"file_location_id", "parent_frame_id"};
  while (ParseTableNumber(&more) && more) {
    int32_t v[2];
    if (!ParseTableFields(kFrame, v)) return false;
    t.frames.push_back({v[0], v[1] > 0 ? v[1] - 1 : 0});  // in text 1 means no parent
  }
  return !lex_.failed();
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
