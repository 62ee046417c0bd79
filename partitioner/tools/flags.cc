// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/tools/flags.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status Usage(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

const FlagSpec* Find(absl::Span<const FlagSpec> specs, absl::string_view name) {
  for (const FlagSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

absl::StatusOr<int64_t> BytesOf(absl::string_view name, const std::string& value) {
  const absl::optional<double> bytes = ParseBytes(value);
  if (bytes.has_value() && *bytes < 9e18) return static_cast<int64_t>(*bytes);
  return Usage(absl::StrCat("--", name, "=", value, ": not a size such as 4GiB"));
}

}  // namespace

absl::StatusOr<Flags> Flags::Parse(absl::Span<const std::string> args,
                                   absl::Span<const FlagSpec> specs) {
  Flags flags;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg.size() < 2 || arg[0] != '-') {
      flags.positional_.push_back(arg);
      continue;
    }
    const bool is_long = absl::StartsWith(arg, "--");
    std::string name = arg.substr(is_long ? 2 : 1), value;
    const size_t eq = name.find('=');
    const bool has_value = eq != std::string::npos;
    if (has_value) {
      value = name.substr(eq + 1);
      name.resize(eq);
    }
    const FlagSpec* spec = Find(specs, name);
    if (spec == nullptr || is_long != (spec->name.size() > 1)) {
      std::string all;
      for (const FlagSpec& s : specs) {
        absl::StrAppend(&all, all.empty() ? "" : " ", s.name.size() > 1 ? "--" : "-", s.name);
      }
      return Usage(absl::StrCat("unknown flag ", arg, "; known: ", all));
    }
    if (spec->value.empty()) {
      if (has_value) return Usage(absl::StrCat(arg, ": this flag takes no value"));
    } else if (!has_value) {
      if (is_long || i + 1 >= args.size()) {
        return Usage(absl::StrCat(arg, ": write ", arg, is_long ? "=" : " ", spec->value));
      }
      value = args[++i];
    }
    int64_t integer;
    double number;
    if (spec->kind == FlagSpec::Kind::kInteger && !absl::SimpleAtoi(value, &integer)) {
      return Usage(absl::StrCat("--", name, "=", value, ": not an integer"));
    }
    if (spec->kind == FlagSpec::Kind::kNumber && !absl::SimpleAtod(value, &number)) {
      return Usage(absl::StrCat("--", name, "=", value, ": not a number"));
    }
    if (spec->kind == FlagSpec::Kind::kBytes) {
      SHARDCALL_RETURN_IF_ERROR(BytesOf(name, value).status());
    }
    flags.values_[name].push_back(value);
  }
  return flags;
}

std::string Flags::Get(absl::string_view name, absl::string_view fallback) const {
  auto it = values_.find(name);
  return it == values_.end() ? std::string(fallback) : it->second.back();
}

const std::vector<std::string>& Flags::All(absl::string_view name) const {
  static const std::vector<std::string>* const kNone = new std::vector<std::string>;
  auto it = values_.find(name);
  return it == values_.end() ? *kNone : it->second;
}

absl::StatusOr<int64_t> Flags::Int(absl::string_view name, int64_t fallback) const {
  if (!Has(name)) return fallback;
  int64_t value = 0;
  if (!absl::SimpleAtoi(Get(name), &value)) {
    return Usage(absl::StrCat("--", name, "=", Get(name), ": not an integer"));
  }
  return value;
}

absl::StatusOr<double> Flags::Double(absl::string_view name, double fallback) const {
  if (!Has(name)) return fallback;
  double value = 0;
  if (!absl::SimpleAtod(Get(name), &value)) {
    return Usage(absl::StrCat("--", name, "=", Get(name), ": not a number"));
  }
  return value;
}

absl::StatusOr<int64_t> Flags::Bytes(absl::string_view name, int64_t fallback) const {
  return Has(name) ? BytesOf(name, Get(name)) : fallback;
}

}  // namespace internal
}  // namespace shardcall
