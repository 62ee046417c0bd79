// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/npy.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

absl::Status Bad(absl::string_view name, absl::string_view message) {
  return ToStatus({.code = "E202",
                   .message = absl::StrCat("not a readable .npy array: ", message),
                   .where = std::string(name),
                   .fix = "Write it with numpy.savez, as an array of numbers"});
}

// The text after 'key': in a dictionary literal, up to the `,` or `}` that ends it outside of
// brackets and quotes.
absl::string_view Field(absl::string_view header, absl::string_view key) {
  for (const char* quote : {"'", "\""}) {
    size_t at = header.find(absl::StrCat(quote, key, quote));
    if (at == header.npos) continue;
    at = header.find(':', at);
    if (at == header.npos) return {};
    size_t end = ++at;
    int depth = 0;
    char inside = 0;
    for (; end < header.size(); ++end) {
      const char c = header[end];
      if (inside != 0) {
        if (c == inside) inside = 0;
      } else if (c == '\'' || c == '"') {
        inside = c;
      } else if (c == '(' || c == '[') {
        ++depth;
      } else if (c == ')' || c == ']') {
        --depth;
      } else if ((c == ',' || c == '}') && depth == 0) {
        break;
      }
    }
    return absl::StripAsciiWhitespace(header.substr(at, end - at));
  }
  return {};
}

// Reverses the bytes of each word of `width`.
void SwapBytes(std::string* data, int width) {
  for (size_t i = 0; i + width <= data->size(); i += width) {
    std::reverse(data->begin() + i, data->begin() + i + width);
  }
}

}  // namespace

std::string NpyArray::DtypeName() const {
  switch (kind) {
    case 'b': return "bool";
    case 'i': return absl::StrCat("int", item_bytes * 8);
    case 'u': return absl::StrCat("uint", item_bytes * 8);
    case 'f': return absl::StrCat("float", item_bytes * 8);
    case 'c': return absl::StrCat("complex", item_bytes * 8);
    case 'U': return "str";
    case 'S': return "bytes";
    default: return absl::StrCat("void", item_bytes * 8);
  }
}

absl::StatusOr<int64_t> NpyHeadBytes(absl::string_view prefix, absl::string_view name) {
  constexpr int64_t kLargest = 1 << 20;
  if (prefix.size() < 10 || prefix.substr(0, 6) != kMagic) return Bad(name, "no magic string");
  const int version = static_cast<unsigned char>(prefix[6]);
  if (version < 1 || version > 3) return Bad(name, absl::StrCat("version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (prefix.size() < 8 + length_bytes) return Bad(name, "the header is cut off");
  int64_t length = 0;
  for (size_t k = 0; k < length_bytes; ++k) {
    length |= static_cast<int64_t>(static_cast<unsigned char>(prefix[8 + k])) << (8 * k);
  }
  if (length > kLargest) return Bad(name, absl::StrCat("a header of ", length, " bytes"));
  return static_cast<int64_t>(8 + length_bytes) + length;
}

absl::StatusOr<NpyHead> ParseNpyHead(absl::string_view bytes, absl::string_view name) {
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t head_bytes,
                             NpyHeadBytes(bytes.substr(0, kNpyPrefix), name));
  if (static_cast<int64_t>(bytes.size()) < head_bytes) return Bad(name, "the header is cut off");
  const absl::string_view header = bytes.substr(0, head_bytes);
  absl::string_view descr = Field(header, "descr");
  absl::string_view shape = Field(header, "shape");
  const absl::string_view order = Field(header, "fortran_order");
  if (descr.size() < 5 || descr.front() != descr.back() ||
      (descr.front() != '\'' && descr.front() != '"')) {
    return Bad(name, absl::StrCat("dtype ", descr, " is not a plain one"));
  }
  descr = descr.substr(1, descr.size() - 2);
  NpyHead head;
  NpyArray& array = head.array;
  const char byte_order = descr[0];
  array.kind = descr[1];
  int64_t size = 0;
  if (absl::string_view("<>|=").find(byte_order) == absl::string_view::npos ||
      absl::string_view("biufcVUS").find(array.kind) == absl::string_view::npos ||
      !absl::SimpleAtoi(descr.substr(2), &size) || size < 0 || size > 1 << 20) {
    return Bad(name, absl::StrCat("dtype ", descr, " is not a plain one"));
  }
  array.item_bytes = static_cast<int>(array.kind == 'U' ? 4 * size : size);
  if (order != "True" && order != "False") return Bad(name, "no fortran_order");
  if (!absl::ConsumePrefix(&shape, "(") || !absl::ConsumeSuffix(&shape, ")")) {
    return Bad(name, "no shape");
  }
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(shape, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0 ||
        (dim > 0 && elements > (int64_t{1} << 46) / dim)) {
      return Bad(name, absl::StrCat("dimension ", part));
    }
    elements *= dim;
    array.dims.push_back(dim);
  }
  head.data_bytes = elements * array.item_bytes;
  head.swapped = byte_order == '>' && array.item_bytes > 1;
  head.fortran = order == "True" && array.dims.size() > 1 && elements > 0;
  return head;
}

NpyArray WithData(NpyHead head, std::string data) {
  NpyArray array = std::move(head.array);
  array.data = std::move(data);
  if (head.swapped) {
    SwapBytes(&array.data, array.kind == 'c'   ? array.item_bytes / 2
                           : array.kind == 'U' ? 4
                                               : array.item_bytes);
  }
  if (head.fortran) {
    const int width = array.item_bytes;
    std::string c_order(array.data.size(), '\0');
    int64_t at = 0;
    for (IndexCounter i(array.dims); !i.done(); i.Next(), ++at) {
      int64_t from = 0;
      for (size_t k = array.dims.size(); k-- > 0;) from = from * array.dims[k] + i.index()[k];
      std::memcpy(&c_order[at * width], &array.data[from * width], width);
    }
    array.data = std::move(c_order);
  }
  return array;
}

absl::Status CheckNpyData(const NpyHead& head, int64_t bytes, absl::string_view name) {
  if (bytes == head.data_bytes) return absl::OkStatus();
  return Bad(name,
             absl::StrCat("it holds ", bytes, " bytes where its shape needs ", head.data_bytes));
}

absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, absl::string_view name) {
  SHARDCALL_ASSIGN_OR_RETURN(NpyHead head, ParseNpyHead(bytes, name));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t begin, NpyHeadBytes(bytes.substr(0, kNpyPrefix), name));
  const absl::string_view data = bytes.substr(begin);
  SHARDCALL_RETURN_IF_ERROR(CheckNpyData(head, static_cast<int64_t>(data.size()), name));
  return WithData(std::move(head), std::string(data));
}

std::string NpyHeader(char kind, int item_bytes, absl::Span<const int64_t> dims) {
  std::string text = absl::StrCat("{'descr': '", kind == 'b' || item_bytes == 1 ? "|" : "<",
                                  std::string(1, kind), kind == 'U' ? item_bytes / 4 : item_bytes,
                                  "', 'fortran_order': False, 'shape': (");
  for (size_t k = 0; k < dims.size(); ++k) {
    absl::StrAppend(&text, k == 0 ? "" : " ", dims[k], ",");
  }
  if (dims.size() > 1) text.pop_back();
  absl::StrAppend(&text, "), }");
  const size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.append(total - 10 - text.size() - 1, ' ');
  text.push_back('\n');
  std::string header(kMagic);
  header.push_back(1);
  header.push_back(0);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

}  // namespace internal
}  // namespace shardcall
