// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/npz.h"

#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/runtime/io/npy.h"
#include "shardcall/partitioner/runtime/io/zip_output.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
namespace {

struct ZipDiscard {
  void operator()(zip_t* z) const { zip_discard(z); }
};
using Zip = std::unique_ptr<zip_t, ZipDiscard>;
struct ZipFileClose {
  void operator()(zip_file_t* f) const { zip_fclose(f); }
};

std::string ZipMessage(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

// The letter of a type in an .npy file.
char NpyKind(ElementType type) {
  if (type == ElementType::kPred) return 'b';
  if (IsSignedInteger(type)) return 'i';
  if (IsUnsignedInteger(type)) return 'u';
  if (IsComplex(type)) return 'c';
  if (type == ElementType::kF16 || type == ElementType::kF32 || type == ElementType::kF64) {
    return 'f';
  }
  return 'u';
}
bool HasNumpyType(ElementType type) {
  return NpyKind(type) != 'u' || (IsUnsignedInteger(type) && ElementTypeBits(type) >= 8)
             ? ElementTypeBits(type) >= 8
             : false;
}
std::string StoredName(ElementType type) {
  NpyArray array;
  array.kind = NpyKind(type);
  array.item_bytes = ElementTypeBytes(type);
  return array.DtypeName();
}

absl::StatusOr<std::map<std::string, NpyArray>> ReadArrays(const std::string& path) {
  int code = 0;
  const Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip == nullptr) {
    const bool there = access(path.c_str(), R_OK) == 0;
    return ToStatus(
        {.code = there ? "E202" : "E201",
         .message = there ? absl::StrCat("not an .npz file: ", ZipMessage(code))
                          : absl::StrCat("cannot open the file: ", ZipMessage(code)),
         .where = path,
         .fix = there ? "Write it with numpy.savez" : "Check the path and its permissions"});
  }
  std::map<std::string, NpyArray> arrays;
  const int64_t count = zip_get_num_entries(zip.get(), 0);
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(zip.get(), i, 0, &stat) != 0 || (stat.valid & ZIP_STAT_NAME) == 0 ||
        (stat.valid & ZIP_STAT_SIZE) == 0) {
      return ToStatus({.code = "E202",
                       .message = "an entry cannot be read",
                       .where = path,
                       .fix = "The file is damaged; write it again"});
    }
    absl::string_view name = stat.name;
    absl::ConsumeSuffix(&name, ".npy");
    const std::string where = absl::StrCat(path, ":", name);
    std::unique_ptr<zip_file_t, ZipFileClose> file(zip_fopen_index(zip.get(), i, 0));
    // The sizes in a corrupt directory may be arbitrary, so grow as bytes arrive.
    std::string bytes;
    constexpr size_t kChunk = 1 << 22;
    while (file != nullptr && bytes.size() < stat.size) {
      const size_t had = bytes.size();
      bytes.resize(std::min<uint64_t>(stat.size, had + kChunk));
      const int64_t n = zip_fread(file.get(), &bytes[had], bytes.size() - had);
      if (n <= 0)
        file = nullptr;
      else
        bytes.resize(had + n);
    }
    if (file == nullptr) {
      return ToStatus({.code = "E202",
                       .message = "an array cannot be unpacked",
                       .where = where,
                       .fix = "The file is damaged; write it again"});
    }
    SHARDCALL_ASSIGN_OR_RETURN(NpyArray array, ParseNpy(bytes, where));
    arrays[std::string(name)] = std::move(array);
  }
  return arrays;
}

// The entries of the string array `dtypes`, by index; empty where there is none.
std::vector<std::string> DtypeNames(const std::map<std::string, NpyArray>& arrays) {
  std::vector<std::string> names;
  const auto found = arrays.find("dtypes");
  if (found == arrays.end() || found->second.dims.size() != 1) return names;
  const NpyArray& a = found->second;
  if ((a.kind != 'U' && a.kind != 'S') || a.item_bytes == 0) return names;
  const int width = a.kind == 'U' ? 4 : 1;
  for (int64_t i = 0; i < a.dims[0]; ++i) {
    std::string name;
    for (int k = 0; k < a.item_bytes; k += width) {
      const char c = a.data[i * a.item_bytes + k];  // little endian, ASCII
      if (c != 0) name.push_back(c);
    }
    names.push_back(name);
  }
  return names;
}

absl::StatusOr<Tensor> ToTensor(const NpyArray& array, const LeafShape& leaf,
                                absl::string_view stated, const std::string& where) {
  const ElementType type = leaf.type;
  const std::string wanted = HasNumpyType(type)
                                 ? StoredName(type)
                                 : absl::StrCat(ElementTypeName(type), " as ", StoredName(type));
  if (!std::equal(array.dims.begin(), array.dims.end(), leaf.dims.begin(), leaf.dims.end())) {
    return ToStatus({.code = "E204",
                     .message = "the array has another shape than the parameter",
                     .where = where,
                     .expected = TypeAndDims(type, leaf.dims),
                     .found = TypeAndDims(type, array.dims),
                     .fix = "Give whole arrays, of the shapes that the program's parameters have"});
  }
  Tensor t(type, leaf.dims);
  const int bytes = ElementTypeBytes(type);
  const bool named_otherwise = !stated.empty() && stated != ElementTypeName(type);
  const bool by_bits = array.kind == NpyKind(type) && array.item_bytes == bytes;
  const bool by_void = array.kind == 'V' && array.item_bytes == bytes && !HasNumpyType(type);
  const bool few_bits = ElementTypeBits(type) < 8 && array.item_bytes == 1 &&
                        (array.kind == 'i' || array.kind == 'u');
  if (IsNarrow(type) && array.kind == 'f' && array.item_bytes == 4 &&
      (!named_otherwise || stated == "f32")) {
    const float* x = reinterpret_cast<const float*>(array.data.data());
    StoreFloats(type, x, t.num_elements(), t.MutableData());
    std::vector<float> back(t.num_elements());
    LoadFloats(type, t.data(), t.num_elements(), back.data());
    for (size_t i = 0; i < back.size(); ++i) {
      if (back[i] != x[i] && !(std::isnan(back[i]) && std::isnan(x[i]))) {
        return ToStatus({.code = "E206",
                         .message = absl::StrCat("element ", i, " = ", x[i], " is not a value of ",
                                                 ElementTypeName(type)),
                         .where = where,
                         .fix = "Round the array to the narrow type first"});
      }
    }
    return t;
  }
  if (named_otherwise || !(by_bits || by_void || few_bits)) {
    return ToStatus({.code = "E205",
                     .message = "the array has another type than the parameter",
                     .where = where,
                     .expected = wanted,
                     .found = named_otherwise ? std::string(stated) : array.DtypeName(),
                     .fix = "Convert the array with numpy's astype"});
  }
  if (t.byte_size() > 0) std::memcpy(t.MutableData(), array.data.data(), t.byte_size());
  NormalizeElements(type, t.MutableData(), t.num_elements());
  return t;
}

absl::Status WriteError(const std::string& path, absl::string_view what) {
  return ToStatus({.code = "E207",
                   .message = absl::StrCat("cannot write the file: ", what),
                   .where = path,
                   .fix = "Check the path and its permissions"});
}

absl::Status AddArray(zip_t* zip, const std::string& path, const std::string& name,
                      const std::string& header, const void* data, int64_t bytes) {
  char* copy = static_cast<char*>(std::malloc(header.size() + bytes));
  if (copy == nullptr) return WriteError(path, "out of memory");
  std::memcpy(copy, header.data(), header.size());
  if (bytes > 0) std::memcpy(copy + header.size(), data, bytes);
  zip_source_t* source = zip_source_buffer(zip, copy, header.size() + bytes, 1);
  if (source == nullptr) {
    std::free(copy);
    return WriteError(path, zip_strerror(zip));
  }
  const int64_t index =
      zip_file_add(zip, absl::StrCat(name, ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return WriteError(path, zip_strerror(zip));
  }
  constexpr uint16_t kFirstDay = 1 << 5 | 1;  // 1980-01-01: independent of the clock
  if (zip_set_file_compression(zip, index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(zip, index, 0, kFirstDay, 0) != 0) {
    return WriteError(path, zip_strerror(zip));
  }
  return absl::OkStatus();
}

// Writes the archive into an open, empty file, which becomes that of `path`.
absl::Status WriteTo(int file, const std::string& path, absl::string_view prefix,
                     absl::Span<const Tensor> tensors) {
  ZipOutput output(file);
  zip_error_t error;
  zip_error_init(&error);
  Zip zip(output.Open(&error));
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (zip == nullptr) return WriteError(path, why);
  bool need_names = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (!IsArrayType(t.type())) continue;
    need_names = need_names || !HasNumpyType(t.type());
    SHARDCALL_RETURN_IF_ERROR(AddArray(zip.get(), path, absl::StrCat(prefix, i),
                                       NpyHeader(NpyKind(t.type()), t.element_bytes(), t.dims()),
                                       t.data(), t.byte_size()));
  }
  if (need_names) {
    constexpr int kWidth = 16;  // characters
    std::string names(tensors.size() * kWidth * 4, '\0');
    for (size_t i = 0; i < tensors.size(); ++i) {
      const absl::string_view name = ElementTypeName(tensors[i].type());
      for (size_t k = 0; k < name.size() && k < kWidth; ++k) {
        names[(i * kWidth + k) * 4] = name[k];
      }
    }
    const int64_t dims[] = {static_cast<int64_t>(tensors.size())};
    SHARDCALL_RETURN_IF_ERROR(AddArray(zip.get(), path, "dtypes", NpyHeader('U', 4 * kWidth, dims),
                                       names.data(), static_cast<int64_t>(names.size())));
  }
  if (tensors.empty()) {  // an archive without entries would not be written
    const int64_t dims[] = {0};
    SHARDCALL_RETURN_IF_ERROR(
        AddArray(zip.get(), path, "dtypes", NpyHeader('U', 4, dims), nullptr, 0));
  }
  if (zip_close(zip.get()) != 0) return WriteError(path, zip_strerror(zip.get()));
  (void)zip.release();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ReadNpz(const std::string& path, absl::string_view prefix,
                                            absl::Span<const LeafShape> leaves) {
  using Arrays = std::map<std::string, NpyArray>;
  SHARDCALL_ASSIGN_OR_RETURN(const Arrays arrays, ReadArrays(path));
  const std::vector<std::string> names = DtypeNames(arrays);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!IsArrayType(leaves[i].type)) {
      tensors.push_back(Tensor::Token());
      continue;
    }
    const std::string name = absl::StrCat(prefix, i);
    const auto found = arrays.find(name);
    if (found == arrays.end()) {
      return ToStatus({.code = "E203",
                       .message = absl::StrCat("the array ", name, " is missing"),
                       .where = path,
                       .expected = absl::StrCat(prefix, "0 to ", prefix, leaves.size() - 1),
                       .fix = "Store one array per parameter, in order, tuples flattened"});
    }
    SHARDCALL_ASSIGN_OR_RETURN(Tensor t,
                               ToTensor(found->second, leaves[i], i < names.size() ? names[i] : "",
                                        absl::StrCat(path, ":", name)));
    tensors.push_back(std::move(t));
  }
  for (const auto& [name, array] : arrays) {
    if (name == "dtypes") continue;
    absl::string_view rest = name;
    uint64_t index = 0;
    const bool numbered = absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &index) &&
                          absl::StrCat(index) == rest;
    if (numbered && index < leaves.size() && IsArrayType(leaves[index].type)) continue;
    return ToStatus({.code = "E203",
                     .message = absl::StrCat("there is no place for the array ", name),
                     .where = path,
                     .expected = leaves.empty()
                                     ? "no arrays"
                                     : absl::StrCat(prefix, "0 to ", prefix, leaves.size() - 1),
                     .found = name,
                     .fix = "Remove it, or give the file of this program"});
  }
  return tensors;
}

absl::Status WriteNpz(const std::string& path, absl::string_view prefix,
                      absl::Span<const Tensor> tensors) {
  const absl::Status status =
      ReplaceFile(path, [&](int file) { return WriteTo(file, path, prefix, tensors); });
  return DiagnosticCode(status) == "E061" ? WriteError(path, std::strerror(errno)) : status;
}

}  // namespace shardcall
