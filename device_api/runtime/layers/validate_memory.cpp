// SPDX-License-Identifier: Apache-2.0
// Checks of the memory table, and of places and ranges for the tables that have them too.
#include "validate.hpp"

namespace chipdock::runtime {

using Book = Validator;

void Validator::range(const void* device, const void* memory, uint64_t offset, uint64_t size,
                      const char* what) {
  const Handle& entry = live(Kind::kMemory, memory, what, device);
  want(offset <= entry.size && size <= entry.size - offset, *this, "MEM-3", what, " range ", offset,
       "+", size, " passes the allocation's ", entry.size, " bytes");
}

void Validator::place(const chipdock_place* given, const void* device, uint64_t size,
                      const char* what) {
  const auto place = in_struct(*this, given, what);
  no_flags(*this, place.flags, CHIPDOCK_PLACE_PINNED, what);
  const bool both = place.memory != nullptr && place.host != nullptr;
  const bool neither = place.memory == nullptr && place.host == nullptr;
  want(!both, *this, "MEM-3", what, " has memory and host, it has one of them");
  want(!neither || size == 0, *this, "MEM-3", what, " has neither memory nor host");
  if (place.memory != nullptr) {
    const void* owner = device;
    if (place.device != nullptr) {
      live(Kind::kDevice, place.device, "device of a place");
      owner = place.device;
    }
    range(owner, place.memory, place.offset, size, what);
    return;
  }
  want(place.offset == 0, *this, "MEM-3", what, " offset is ", place.offset, ", with host it is 0");
  want(place.device == nullptr, *this, "MEM-3", what, " names a device beside host memory");
  if ((place.flags & CHIPDOCK_PLACE_PINNED) == 0) return;
  // The last allocation that starts at or before the address.
  auto next = book_.upper_bound({Kind::kHostMemory, device, place.host});
  const bool found = next != book_.begin() && [&] {
    const auto& [key, entry] = *--next;
    if (std::get<0>(key) != Kind::kHostMemory || std::get<1>(key) != device || !entry.live)
      return false;
    const auto begin = reinterpret_cast<uintptr_t>(std::get<2>(key));
    const auto at = reinterpret_cast<uintptr_t>(place.host) - begin;
    return at <= entry.size && size <= entry.size - at;
  }();
  want(found, *this, "MEM-4", what,
       " is flagged PINNED and does not lie in memory from host_alloc");
}

namespace {

bool power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

chipdock_alloc_desc check_alloc(Book& book, chipdock_device* device,
                                const chipdock_alloc_desc* desc, chipdock_memory** out_memory) {
  const Handle& entry = book.live(Kind::kDevice, device, "device");
  want(out_memory != nullptr, book, "BASE-8", "out_memory is NULL");
  const auto given = in_struct(book, desc, "desc");
  want(entry.size == 0 || given.heap < entry.size, book, "DEV-6", "heap ", given.heap,
       " does not exist, the device has ", entry.size);
  want(given.size > 0, book, "MEM-1", "size is 0");
  want(given.alignment == 0 || power_of_two(given.alignment), book, "MEM-1", "alignment ",
       given.alignment, " is not a power of two");
  no_flags(book, given.flags, 0, "flags");
  no_flags(book, given.usage,
           CHIPDOCK_USAGE_WEIGHTS | CHIPDOCK_USAGE_WORKSPACE | CHIPDOCK_USAGE_TRANSFER |
               CHIPDOCK_USAGE_SHARED,
           "usage bits");
  return given;
}

void alloc(Book& book, chipdock_device* device, const chipdock_alloc_desc* desc,
           chipdock_memory** out_memory, chipdock_error*) {
  const auto given = check_alloc(book, device, desc, out_memory);
  want(given.stream == nullptr, book, "MEM-10", "stream is given, which is alloc_async's");
}
void alloc_async(Book& book, chipdock_device* device, const chipdock_alloc_desc* desc,
                 chipdock_memory** out_memory, chipdock_error*) {
  const auto given = check_alloc(book, device, desc, out_memory);
  book.live(Kind::kStream, given.stream, "stream", device);
}
void allocated(Book& book, chipdock_device* device, const chipdock_alloc_desc* desc,
               chipdock_memory** out_memory, chipdock_error*) {
  Handle entry;
  entry.device = device;
  entry.size = desc->size;
  book.add(Kind::kMemory, *out_memory, entry, "memory");
}

void free(Book& book, chipdock_device* device, chipdock_memory* memory, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.end(Kind::kMemory, memory, "memory", device);
}
void free_async(Book& book, chipdock_device* device, chipdock_memory* memory,
                chipdock_stream* stream, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kStream, stream, "stream", device);
  book.end(Kind::kMemory, memory, "memory", device);
}

/// [MEM-6]; `source_size` and `target_size` are the bytes from first to last.
void no_overlap(Book& book, const chipdock_place& source, uint64_t source_size,
                const chipdock_place& target, uint64_t target_size) {
  const bool same =
      source.memory != nullptr && source.memory == target.memory && source.device == target.device;
  const bool both_host = source.host != nullptr && target.host != nullptr;
  if (!same && !both_host) return;
  const uint64_t from = same ? source.offset : reinterpret_cast<uintptr_t>(source.host);
  const uint64_t to = same ? target.offset : reinterpret_cast<uintptr_t>(target.host);
  want(from + source_size <= to || to + target_size <= from, book, "MEM-6", "source ", from, "+",
       source_size, " and target ", to, "+", target_size, " overlap");
}

void copy(Book& book, chipdock_device* device, const chipdock_copy_desc* desc, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, 0, "flags");
  book.place(given.source, device, given.size, "source");
  book.place(given.target, device, given.size, "target");
  book.stream_or_null(given.stream, device);
  if (given.size != 0) no_overlap(book, *given.source, given.size, *given.target, given.size);
}

uint64_t rectangle(Book& book, const char* what, uint64_t pitch, uint64_t row_bytes,
                   uint64_t rows) {
  want(pitch >= row_bytes, book, "MEM-3", what, " pitch ", pitch, " is under row_bytes ",
       row_bytes);
  if (rows == 0 || row_bytes == 0) return 0;
  uint64_t size = 0;
  const bool wraps = __builtin_mul_overflow(pitch, rows - 1, &size) ||
                     __builtin_add_overflow(size, row_bytes, &size);
  want(!wraps, book, "MEM-3", what, " of ", rows, " rows with pitch ", pitch, " wraps");
  return size;
}

void copy_2d(Book& book, chipdock_device* device, const chipdock_copy_2d_desc* desc,
             chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, 0, "flags");
  const uint64_t source =
      rectangle(book, "source", given.source_pitch, given.row_bytes, given.rows);
  const uint64_t target =
      rectangle(book, "target", given.target_pitch, given.row_bytes, given.rows);
  book.place(given.source, device, source, "source");
  book.place(given.target, device, target, "target");
  book.stream_or_null(given.stream, device);
}

void fill(Book& book, chipdock_device* device, const chipdock_fill_desc* desc, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  const auto given = in_struct(book, desc, "desc");
  const uint32_t pattern = given.pattern_size;
  want(power_of_two(pattern) && pattern <= 16, book, "MEM-7", "pattern_size is ", pattern,
       ", it is 1, 2, 4, 8 or 16");
  book.place(given.target, device, given.size, "target");
  want(given.size % pattern == 0 && given.target->offset % pattern == 0, book, "MEM-7",
       "pattern of ", pattern, " bytes does not divide offset ", given.target->offset, " and size ",
       given.size);
  book.stream_or_null(given.stream, device);
}

void info(Book& book, chipdock_device* device, chipdock_memory_info* out_info, chipdock_error*) {
  const Handle& entry = book.live(Kind::kDevice, device, "device");
  out_struct(book, out_info, "out_info");
  want(entry.size == 0 || out_info->heap < entry.size, book, "DEV-6", "heap ", out_info->heap,
       " does not exist, the device has ", entry.size);
}
void informed(Book& book, chipdock_device*, chipdock_memory_info* out_info, chipdock_error*) {
  if (!CHIPDOCK_HAS_FIELD(chipdock_memory_info, total_bytes, out_info->struct_size)) return;
  expect(out_info->free_bytes <= out_info->total_bytes, book, "MEM-9", "says ",
         out_info->free_bytes, " of ", out_info->total_bytes, " bytes are free");
}

void trim(Book& book, chipdock_device* device, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
}

void host_alloc(Book& book, chipdock_device* device, uint64_t size, void** out_host,
                chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(size > 0 && out_host != nullptr, book, "MEM-1", "size is 0 or out_host NULL");
}
void host_allocated(Book& book, chipdock_device* device, uint64_t size, void** out_host,
                    chipdock_error*) {
  Handle entry;
  entry.device = device;
  entry.size = size;
  book.add(Kind::kHostMemory, *out_host, entry, "host address");
  const auto address = reinterpret_cast<uintptr_t>(*out_host);
  expect(address % 64 == 0, book, "MEM-1", "returned an address that is not aligned to 64 bytes");
}
void host_free(Book& book, chipdock_device* device, void* host, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.end(Kind::kHostMemory, host, "host", device);
}

void address(Book& book, chipdock_device* device, chipdock_memory* memory, void** out_address,
             chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kMemory, memory, "memory", device);
  want(out_address != nullptr, book, "BASE-8", "out_address is NULL");
}
void addressed(Book& book, chipdock_device*, chipdock_memory*, void** out_address,
               chipdock_error*) {
  expect(*out_address != nullptr, book, "BASE-8", "returned OK and a NULL address");
}

void range(Book& book, chipdock_device* device, chipdock_memory* memory, uint64_t offset,
           uint64_t size, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.range(device, memory, offset, size, "memory");
}

void valid_kind(const Book& book, int32_t kind) {
  if (kind >= CHIPDOCK_EXTERNAL_FD && kind <= CHIPDOCK_EXTERNAL_IPC) return;
  raise(CHIPDOCK_UNSUPPORTED, book.slot(), " kind ", kind, " is not known [BASE-7]");
}
void export_memory(Book& book, chipdock_device* device, chipdock_memory* memory,
                   chipdock_external* out_external, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kMemory, memory, "memory", device);
  out_struct(book, out_external, "out_external");
  valid_kind(book, out_external->kind);
}
void import_memory(Book& book, chipdock_device* device, const chipdock_external* external,
                   chipdock_memory** out_memory, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_memory != nullptr, book, "BASE-8", "out_memory is NULL");
  const auto given = in_struct(book, external, "external");
  valid_kind(book, given.kind);
}
void imported(Book& book, chipdock_device* device, const chipdock_external* external,
              chipdock_memory** out_memory, chipdock_error*) {
  Handle entry;
  entry.device = device;
  entry.size = external->size;
  book.add(Kind::kMemory, *out_memory, entry, "memory");
}

}  // namespace

void add_memory_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, memory_alloc, alloc);
  CHIPDOCK_SUCCESS(checks, memory_alloc, allocated);
  CHIPDOCK_BEFORE(checks, memory_free, free);
  CHIPDOCK_BEFORE(checks, memory_copy, copy);
  CHIPDOCK_BEFORE(checks, memory_alloc_async, alloc_async);
  CHIPDOCK_SUCCESS(checks, memory_alloc_async, allocated);
  CHIPDOCK_BEFORE(checks, memory_free_async, free_async);
  CHIPDOCK_BEFORE(checks, memory_copy_2d, copy_2d);
  CHIPDOCK_BEFORE(checks, memory_fill, fill);
  CHIPDOCK_BEFORE(checks, memory_info, info);
  CHIPDOCK_SUCCESS(checks, memory_info, informed);
  CHIPDOCK_BEFORE(checks, memory_trim, trim);
  CHIPDOCK_BEFORE(checks, memory_host_alloc, host_alloc);
  CHIPDOCK_SUCCESS(checks, memory_host_alloc, host_allocated);
  CHIPDOCK_BEFORE(checks, memory_host_free, host_free);
  CHIPDOCK_BEFORE(checks, memory_address, address);
  CHIPDOCK_SUCCESS(checks, memory_address, addressed);
  CHIPDOCK_BEFORE(checks, memory_flush, range);
  CHIPDOCK_BEFORE(checks, memory_invalidate, range);
  CHIPDOCK_BEFORE(checks, memory_export_memory, export_memory);
  CHIPDOCK_BEFORE(checks, memory_import_memory, import_memory);
  CHIPDOCK_SUCCESS(checks, memory_import_memory, imported);
}

}  // namespace chipdock::runtime
