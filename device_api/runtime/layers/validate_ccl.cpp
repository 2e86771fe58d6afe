// SPDX-License-Identifier: Apache-2.0
// Checks of the ccl table. What ranks agree on among each other is not seen here.
#include "validate.hpp"

namespace chipdock::runtime {
namespace {

using Book = Validator;

Handle of_device(const void* device) {
  Handle entry;
  entry.device = device;
  return entry;
}

void query(Book& book, chipdock_device* device, chipdock_ccl_support* out_support,
           chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  out_struct(book, out_support, "out_support");
}
void unique_id(Book& book, chipdock_device* device, void* id, uint64_t size, uint64_t* out_size,
               chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_size != nullptr, book, "BASE-8", "out_size is NULL");
  want(id != nullptr || size == 0, book, "CCL-10", "id is NULL and size ", size);
}
void init(Book& book, chipdock_device* device, const chipdock_ccl_comm_desc* desc,
          chipdock_ccl_comm** out_comm, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_comm != nullptr, book, "BASE-8", "out_comm is NULL");
  const auto given = in_struct(book, desc, "desc");
  want(given.rank_count >= 1 && given.rank >= 0 && given.rank < given.rank_count, book, "CCL-6",
       "rank ", given.rank, " of ", given.rank_count, " does not exist");
  no_flags(book, given.flags, CHIPDOCK_CCL_DETERMINISTIC | CHIPDOCK_CCL_NONBLOCKING, "flags");
  want(given.store != nullptr, book, "CCL-1", "store is NULL");
  options_array(book, given.option_count, given.options);
}
void joined(Book& book, chipdock_device* device, const chipdock_ccl_comm_desc* desc,
            chipdock_ccl_comm** out_comm, chipdock_error*) {
  Handle entry = of_device(device);
  entry.size = static_cast<uint64_t>(desc->rank_count);
  book.add(Kind::kComm, *out_comm, entry, "comm");
}
void use(Book& book, chipdock_ccl_comm* comm, chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
}

void enqueue(Book& book, chipdock_ccl_comm* comm, const chipdock_ccl_enqueue_desc* desc,
             chipdock_error*) {
  const void* device = book.live(Kind::kComm, comm, "comm").device;
  const auto given = in_struct(book, desc, "desc");
  want(given.op_count > 0 && given.ops != nullptr, book, "CCL-2", "has no operations");
  for (uint32_t i = 0; i < given.op_count; ++i) {
    const auto op = in_struct(book, given.ops[i], "op");
    if (op.kind < CHIPDOCK_CCL_ALL_REDUCE || op.kind > CHIPDOCK_CCL_BARRIER ||
        op.reduction < CHIPDOCK_CCL_SUM || op.reduction > CHIPDOCK_CCL_LOGICAL_OR) {
      raise(CHIPDOCK_UNSUPPORTED, book.slot(), " op ", i, " has kind ", op.kind, " and reduction ",
            op.reduction, ", one of which is not known [BASE-7]");
    }
    no_flags(book, op.flags, 0, "op flags");
    if (op.send != nullptr) book.place(op.send, device, 0, "send");
    if (op.receive != nullptr) book.place(op.receive, device, 0, "receive");
  }
  valid_timeout(book, given.timeout_ns);
  book.stream_or_null(given.stream, device);
}
void failure(Book& book, chipdock_ccl_comm* comm, chipdock_ccl_failure* out_failure,
             chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
  out_struct(book, out_failure, "out_failure");
}
void abort(Book& book, chipdock_ccl_comm* comm, int32_t code, chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
  want(code == CHIPDOCK_ABORTED || code == CHIPDOCK_TIMEOUT || code == CHIPDOCK_PEER_FAILED ||
           code == CHIPDOCK_REVOKED,
       book, "CCL-7", "code ", code, " is not ABORTED, TIMEOUT, PEER_FAILED or REVOKED");
}
void destroy_comm(Book& book, chipdock_ccl_comm* comm, chipdock_error*) {
  book.end(Kind::kComm, comm, "comm");
  book.end_children(comm);
}
void split(Book& book, chipdock_ccl_comm* comm, const chipdock_ccl_split_desc* desc,
           chipdock_ccl_comm** out_comm, chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
  want(out_comm != nullptr, book, "BASE-8", "out_comm is NULL");
  want(in_struct(book, desc, "desc").color >= -1, book, "CCL-6", "color is under -1");
}
void did_split(Book& book, chipdock_ccl_comm* comm, const chipdock_ccl_split_desc* desc,
               chipdock_ccl_comm** out_comm, chipdock_error*) {
  if (desc->color == -1 && *out_comm == nullptr) return;
  const Handle parent = book.live(Kind::kComm, comm, "comm");
  book.add(Kind::kComm, *out_comm, of_device(parent.device), "comm");
}
void shrink(Book& book, chipdock_ccl_comm* comm, const chipdock_ccl_shrink_desc* desc,
            chipdock_ccl_comm** out_comm, chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
  want(out_comm != nullptr, book, "BASE-8", "out_comm is NULL");
  const auto given = in_struct(book, desc, "desc");
  want(given.excluded_count == 0 || given.excluded != nullptr, book, "BASE-6", "excluded is NULL");
}
void did_shrink(Book& book, chipdock_ccl_comm* comm, const chipdock_ccl_shrink_desc*,
                chipdock_ccl_comm** out_comm, chipdock_error*) {
  const Handle parent = book.live(Kind::kComm, comm, "comm");
  book.add(Kind::kComm, *out_comm, of_device(parent.device), "comm");
}
void register_memory(Book& book, chipdock_ccl_comm* comm, const chipdock_place* place,
                     uint64_t size, chipdock_ccl_registration** out_registration, chipdock_error*) {
  const void* device = book.live(Kind::kComm, comm, "comm").device;
  want(size > 0, book, "MEM-3", "size is 0");
  book.place(place, device, size, "place");
  want(out_registration != nullptr, book, "BASE-8", "out_registration is NULL");
}
void registered(Book& book, chipdock_ccl_comm* comm, const chipdock_place*, uint64_t,
                chipdock_ccl_registration** out_registration, chipdock_error*) {
  // Not a child of the device: it ends with its comm.
  Handle entry;
  entry.parent = comm;
  book.add(Kind::kRegistration, *out_registration, entry, "registration");
}
void deregister_memory(Book& book, chipdock_ccl_comm* comm, chipdock_ccl_registration* registration,
                       chipdock_error*) {
  book.live(Kind::kComm, comm, "comm");
  want(book.live(Kind::kRegistration, registration, "registration").parent == comm, book, "CCL-12",
       "registration is another comm's");
  book.end(Kind::kRegistration, registration, "registration");
}

}  // namespace

void add_ccl_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, ccl_query, query);
  CHIPDOCK_BEFORE(checks, ccl_unique_id, unique_id);
  CHIPDOCK_BEFORE(checks, ccl_init, init);
  CHIPDOCK_SUCCESS(checks, ccl_init, joined);
  CHIPDOCK_BEFORE(checks, ccl_poll, use);
  CHIPDOCK_BEFORE(checks, ccl_enqueue, enqueue);
  CHIPDOCK_BEFORE(checks, ccl_error, failure);
  CHIPDOCK_BEFORE(checks, ccl_abort, abort);
  CHIPDOCK_BEFORE(checks, ccl_destroy, destroy_comm);
  CHIPDOCK_BEFORE(checks, ccl_split, split);
  CHIPDOCK_SUCCESS(checks, ccl_split, did_split);
  CHIPDOCK_BEFORE(checks, ccl_shrink, shrink);
  CHIPDOCK_SUCCESS(checks, ccl_shrink, did_shrink);
  CHIPDOCK_BEFORE(checks, ccl_register_memory, register_memory);
  CHIPDOCK_SUCCESS(checks, ccl_register_memory, registered);
  CHIPDOCK_BEFORE(checks, ccl_deregister_memory, deregister_memory);
}

}  // namespace chipdock::runtime
