// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/load/loaded_object.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace {

// The number of dynamic symbols, which only the hash table determines.
size_t CountSymbols(const ElfW(Word) * hash, const uint32_t* gnu) {
  if (hash != nullptr) return hash[1];
  if (gnu == nullptr) return 0;
  const uint32_t buckets = gnu[0], first = gnu[1], bloom = gnu[2];
  const uint32_t* bucket = gnu + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t b = 0; b < buckets; ++b) last = std::max(last, bucket[b]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

const link_map* ObjectAround(const void* address) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE  // glibc from 2.35 on
  dl_find_object object;
  if (_dl_find_object(const_cast<void*>(address), &object) == 0) return object.dlfo_link_map;
#else
  (void)address;
#endif
  return nullptr;
}

void ForEachExport(const link_map& object,
                   absl::FunctionRef<void(const char* name, void* address)> visit) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Word)* hash = nullptr;
  const uint32_t* gnu = nullptr;
  for (const ElfW(Dyn)* d = object.l_ld; d->d_tag != DT_NULL; ++d) {
    const auto address = d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    if (d->d_tag == DT_HASH) hash = reinterpret_cast<const ElfW(Word)*>(address);
    if (d->d_tag == DT_GNU_HASH) gnu = reinterpret_cast<const uint32_t*>(address);
  }
  // glibc adds the load address to these pointers, musl does not.
  if (symbols == nullptr || names == nullptr ||
      reinterpret_cast<ElfW(Addr)>(symbols) < object.l_addr) {
    return;
  }
  const size_t count = CountSymbols(hash, gnu);
  for (size_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name == 0) continue;
    visit(names + symbols[i].st_name, reinterpret_cast<void*>(object.l_addr + symbols[i].st_value));
  }
}

void* HandleAround(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* const handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL);
  if (handle != nullptr) dlclose(handle);
  return handle;
}

bool ObjectHolds(const void* address, absl::string_view bytes) {
  struct Search {
    const char* address;
    absl::string_view bytes;
    bool found;
  } search = {static_cast<const char*>(address), bytes, false};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        const auto loaded = [&](const ElfW(Phdr) & segment) {
          const auto* const begin =
              reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
          return segment.p_type == PT_LOAD ? absl::string_view(begin, segment.p_memsz)
                                           : absl::string_view();
        };
        const absl::Span<const ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phnum);
        const bool around = std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
          const absl::string_view memory = loaded(segment);
          return s.address >= memory.data() && s.address < memory.data() + memory.size();
        });
        if (!around) return 0;
        s.found = std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
          return (segment.p_flags & PF_R) != 0 && absl::StrContains(loaded(segment), s.bytes);
        });
        return 1;
      },
      &search);
  return search.found;
}

bool InOneObject(const void* a, const void* b) {
  Dl_info around_a, around_b;
  return dladdr(a, &around_a) != 0 && dladdr(b, &around_b) != 0 &&
         around_a.dli_fbase == around_b.dli_fbase;
}

}  // namespace internal
}  // namespace shardcall
