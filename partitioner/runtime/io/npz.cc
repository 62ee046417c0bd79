// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/npz.h"

#include <sys/stat.h>
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

#include "absl/functional/function_ref.h"
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

// Whether it holds the values of a narrow float type as float32.
bool IsWidened(const NpyArray& array, ElementType type, absl::string_view stated) {
  return IsNarrow(type) && array.kind == 'f' && array.item_bytes == 4 &&
         (stated.empty() || stated == ElementTypeName(type) || stated == "f32");
}

// An archive that is open for reading, and where its arrays are.
class Archive {
 public:
  static absl::StatusOr<Archive> Open(const std::string& path);

  const std::map<std::string, int64_t>& entries() const { return entries_; }  // without .npy
  bool Has(const std::string& name) const { return entries_.count(name) > 0; }
  // Reads the header of an array, lets `check` refuse it, and then reads its data.
  absl::StatusOr<NpyArray> Read(const std::string& name,
                                absl::FunctionRef<absl::Status(const NpyArray& head)> check) const;

 private:
  absl::Status Damaged(const std::string& where) const {
    return ToStatus({.code = "E202",
                     .message = "an array cannot be unpacked",
                     .where = where,
                     .fix = "The file is damaged; write it again"});
  }

  std::string path_;
  Zip zip_;
  std::map<std::string, int64_t> entries_;
};

absl::StatusOr<Archive> Archive::Open(const std::string& path) {
  int code = 0;
  Archive archive;
  archive.path_ = path;
  archive.zip_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive.zip_ == nullptr) {
    const bool there = access(path.c_str(), R_OK) == 0;
    return ToStatus(
        {.code = there ? "E202" : "E201",
         .message = there ? absl::StrCat("not an .npz file: ", ZipMessage(code))
                          : absl::StrCat("cannot open the file: ", ZipMessage(code)),
         .where = path,
         .fix = there ? "Write it with numpy.savez" : "Check the path and its permissions"});
  }
  const int64_t count = zip_get_num_entries(archive.zip_.get(), 0);
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive.zip_.get(), i, 0, &stat) != 0 || (stat.valid & ZIP_STAT_NAME) == 0 ||
        (stat.valid & ZIP_STAT_SIZE) == 0) {
      return ToStatus({.code = "E202",
                       .message = "an entry cannot be read",
                       .where = path,
                       .fix = "The file is damaged; write it again"});
    }
    absl::string_view name = stat.name;
    absl::ConsumeSuffix(&name, ".npy");
    archive.entries_[std::string(name)] = i;
  }
  return archive;
}

// The next bytes of an entry, up to `most`. Sizes in a corrupt directory may be arbitrary, so that
// the memory grows as bytes arrive. False if the entry is damaged.
bool ReadUpTo(zip_file_t* file, int64_t most, std::string* bytes) {
  constexpr int64_t kChunk = 1 << 22;
  const int64_t end = static_cast<int64_t>(bytes->size()) + most;
  while (static_cast<int64_t>(bytes->size()) < end) {
    const int64_t had = static_cast<int64_t>(bytes->size());
    bytes->resize(std::min(end, had + kChunk));
    const int64_t n = zip_fread(file, &(*bytes)[had], bytes->size() - had);
    bytes->resize(had + std::max<int64_t>(n, 0));
    if (n <= 0) return n == 0;
  }
  return true;
}

absl::StatusOr<NpyArray> Archive::Read(
    const std::string& name, absl::FunctionRef<absl::Status(const NpyArray& head)> check) const {
  const std::string where = absl::StrCat(path_, ":", name);
  const int64_t index = entries_.at(name);
  zip_stat_t stat;
  zip_stat_init(&stat);
  zip_stat_index(zip_.get(), index, 0, &stat);
  const std::unique_ptr<zip_file_t, ZipFileClose> file(zip_fopen_index(zip_.get(), index, 0));
  std::string head_bytes;
  if (file == nullptr || !ReadUpTo(file.get(), kNpyPrefix, &head_bytes)) return Damaged(where);
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t begin, NpyHeadBytes(head_bytes, where));
  std::string data;
  if (begin < static_cast<int64_t>(head_bytes.size())) {  // a header of no or one byte
    data = head_bytes.substr(begin);
    head_bytes.resize(begin);
  } else if (!ReadUpTo(file.get(), begin - static_cast<int64_t>(head_bytes.size()), &head_bytes)) {
    return Damaged(where);
  }
  SHARDCALL_ASSIGN_OR_RETURN(NpyHead head, ParseNpyHead(head_bytes, where));
  SHARDCALL_RETURN_IF_ERROR(check(head.array));
  SHARDCALL_RETURN_IF_ERROR(CheckNpyData(head, static_cast<int64_t>(stat.size) - begin, where));
  const int64_t missing = head.data_bytes - static_cast<int64_t>(data.size());
  if (!ReadUpTo(file.get(), missing, &data) ||
      static_cast<int64_t>(data.size()) < head.data_bytes) {
    return Damaged(where);
  }
  // Reading to the end checks the sum of the entry, and that it holds no more.
  std::string rest;
  if (!ReadUpTo(file.get(), 1, &rest) || !rest.empty()) return Damaged(where);
  return WithData(std::move(head), std::move(data));
}

// The entries of the string array `dtypes`, by index; empty where there is none.
absl::StatusOr<std::vector<std::string>> DtypeNames(const Archive& archive, size_t num_leaves) {
  std::vector<std::string> names;
  if (!archive.Has("dtypes")) return names;
  bool is_list = false;
  const auto check = [&](const NpyArray& head) {
    is_list =
        head.dims.size() == 1 && (head.kind == 'U' || head.kind == 'S') && head.item_bytes > 0;
    // Names of types are short, and one a leaf.
    constexpr int64_t kWidest = 1024;
    const bool fits = !is_list || (head.item_bytes <= kWidest &&
                                   head.dims[0] <= static_cast<int64_t>(num_leaves) + kWidest);
    return fits ? absl::OkStatus()
                : ToStatus({.code = "E202",
                            .message = "the array dtypes is no list of the types of the arrays",
                            .expected = absl::StrCat("at most ", num_leaves, " short names"),
                            .found = absl::StrCat(head.dims[0], " of ", head.item_bytes, " bytes"),
                            .fix = "Leave it out where numpy has all types"});
  };
  SHARDCALL_ASSIGN_OR_RETURN(const NpyArray a, archive.Read("dtypes", check));
  if (!is_list) return names;
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

// Whether an array of this header is one for the leaf: E204 and E205.
absl::Status CheckHead(const NpyArray& array, const LeafShape& leaf, absl::string_view stated,
                       const std::string& where) {
  const ElementType type = leaf.type;
  if (!std::equal(array.dims.begin(), array.dims.end(), leaf.dims.begin(), leaf.dims.end())) {
    return ToStatus({.code = "E204",
                     .message = "the array has another shape than the parameter",
                     .where = where,
                     .expected = TypeAndDims(type, leaf.dims),
                     .found = TypeAndDims(type, array.dims),
                     .fix = "Give whole arrays, of the shapes that the program's parameters have"});
  }
  const int bytes = ElementTypeBytes(type);
  const bool named_otherwise = !stated.empty() && stated != ElementTypeName(type);
  if (IsWidened(array, type, stated)) return absl::OkStatus();
  const bool by_bits = array.kind == NpyKind(type) && array.item_bytes == bytes;
  const bool by_void = array.kind == 'V' && array.item_bytes == bytes && !HasNumpyType(type);
  const bool few_bits = ElementTypeBits(type) < 8 && array.item_bytes == 1 &&
                        (array.kind == 'i' || array.kind == 'u');
  if (!named_otherwise && (by_bits || by_void || few_bits)) return absl::OkStatus();
  return ToStatus({.code = "E205",
                   .message = "the array has another type than the parameter",
                   .where = where,
                   .expected = HasNumpyType(type)
                                   ? StoredName(type)
                                   : absl::StrCat(ElementTypeName(type), " as ", StoredName(type)),
                   .found = named_otherwise ? std::string(stated) : array.DtypeName(),
                   // Numbers that are converted to the type their bits are stored as are others.
                   .fix = IsNarrow(type) ? "Convert the array with numpy's astype(numpy.float32)"
                                         : "Convert the array with numpy's astype"});
}

// The array, whose header has been checked, as the leaf's type. E206.
absl::StatusOr<Tensor> ToTensor(const NpyArray& array, const LeafShape& leaf,
                                absl::string_view stated, const std::string& where) {
  const ElementType type = leaf.type;
  Tensor t(type, leaf.dims);
  if (IsWidened(array, type, stated)) {
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
  if (t.byte_size() > 0) std::memcpy(t.MutableData(), array.data.data(), t.byte_size());
  NormalizeElements(type, t.MutableData(), t.num_elements());
  for (int64_t i = 0; ElementTypeBits(type) < 8 && i < t.num_elements(); ++i) {
    if (t.data()[i] == array.data[i]) continue;
    const int given = array.kind == 'i' ? static_cast<int8_t>(array.data[i])
                                        : static_cast<int>(static_cast<uint8_t>(array.data[i]));
    return ToStatus({.code = "E206",
                     .message = absl::StrCat("element ", i, " = ", given, " is not a value of ",
                                             ElementTypeName(type)),
                     .where = where,
                     .fix = "Give numbers that the narrow type has"});
  }
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
                                            absl::Span<const LeafShape> leaves, int64_t max_input) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    // A narrow type may be stored as float32, and what was deflated may be a little larger.
    double wanted = 0;
    for (const LeafShape& leaf : leaves) {
      if (!IsArrayType(leaf.type)) continue;
      wanted += static_cast<double>(leaf.num_elements()) *
                std::max(4, ElementTypeBytes(leaf.type)) * 1.01;
    }
    const double limit = wanted + static_cast<double>(max_input);
    SHARDCALL_RETURN_IF_ERROR(
        CheckInputSize(path, info.st_size, limit < 9e18 ? static_cast<int64_t>(limit) : INT64_MAX));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Archive archive, Archive::Open(path));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             DtypeNames(archive, leaves.size()));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!IsArrayType(leaves[i].type)) {
      tensors.push_back(Tensor::Token());
      continue;
    }
    const std::string name = absl::StrCat(prefix, i);
    if (!archive.Has(name)) {
      return ToStatus({.code = "E203",
                       .message = absl::StrCat("the array ", name, " is missing"),
                       .where = path,
                       .expected = absl::StrCat(prefix, "0 to ", prefix, leaves.size() - 1),
                       .fix = "Store one array per parameter, in order, tuples flattened"});
    }
    const std::string stated = i < names.size() ? names[i] : "";
    const std::string where = absl::StrCat(path, ":", name);
    SHARDCALL_ASSIGN_OR_RETURN(const NpyArray array, archive.Read(name, [&](const NpyArray& head) {
      return CheckHead(head, leaves[i], stated, where);
    }));
    SHARDCALL_ASSIGN_OR_RETURN(Tensor t, ToTensor(array, leaves[i], stated, where));
    tensors.push_back(std::move(t));
  }
  for (const auto& [name, index] : archive.entries()) {
    if (name == "dtypes") continue;
    absl::string_view rest = name;
    uint64_t number = 0;
    const bool numbered = absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &number) &&
                          absl::StrCat(number) == rest;
    if (numbered && number < leaves.size() && IsArrayType(leaves[number].type)) continue;
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
