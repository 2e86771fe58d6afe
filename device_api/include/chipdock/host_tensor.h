/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tensors for embedders: dtype and shape over memory of a device or of the caller. Row-major, dense.
 *
 * Duties:
 *   HTN-1  A tensor's dtype and shape never change. Its elements are undefined until written.
 *   HTN-2  Memory given at create stays valid and is not moved until `release` was called, which
 *          happens once, on any thread, when the last tensor or run that uses it is gone.
 *   HTN-3  A view shares the memory of the tensor it was made of and keeps it alive. Nothing orders
 *          work on two tensors of one memory but streams and waits.
 *   HTN-4  With a NULL stream a copy has ended on return. With a stream it takes effect in the
 *          stream's order, and host memory named in the call stays valid until it has ended.
 *   HTN-5  A tensor may be destroyed while work queued with it is in flight; its memory is used
 *          again behind that work.
 *   HTN-6  Host addresses are used by the caller at no time when queued work uses the tensor.
 */
#ifndef CHIPDOCK_HOST_TENSOR_H_
#define CHIPDOCK_HOST_TENSOR_H_

#include "chipdock/host_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a new tensor is. */
typedef struct chipdock_host_tensor_desc {
  uint32_t struct_size;
  chipdock_dtype dtype;
  int32_t rank;         /**< 0 (scalar) to CHIPDOCK_MAX_RANK. */
  uint32_t flags;       /**< 0. */
  const int64_t* shape; /**< rank extents, each 0 or more. */
  /** The caller's memory for the elements, aligned to an element; NULL: memory of the device. */
  void* data;
  /** Called when `data` is not used any more [HTN-2]; NULL: the caller keeps track itself. */
  void(CHIPDOCK_CALL* release)(void* context);
  void* context; /**< For `release`. */
} chipdock_host_tensor_desc;

/** A tensor as it is. */
typedef struct chipdock_host_tensor_info {
  uint32_t struct_size;
  chipdock_dtype dtype;
  int32_t rank;
  uint32_t flags;       /**< 0. */
  const int64_t* shape; /**< NULL if rank is 0. [HST-6] */
  uint64_t bytes;       /**< Of all elements; sub-byte ones are packed. */
  /** Address of element 0 if the host may read and write there, else NULL. [HTN-6] */
  void* host;
  const char* device; /**< Name of the device it was made on. */
} chipdock_host_tensor_info;

/**
 * Makes a tensor in memory of a device, or over memory of the caller. [HTN-1] [HTN-2]
 *
 * @param device     From open. Kernels of the device read and write the tensor; over memory of the
 *                   caller they do so in place where the device reads host memory, else by a copy.
 * @param desc       dtype, shape, memory. Not NULL.
 * @param out_tensor Set to the tensor. Not NULL.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows `device` and `desc` for this call, `desc->data` until `release`; returns
 *            `*out_tensor`, ended by destroy.
 * Threading: any thread.
 * Blocking:  may wait for the driver and for memory in use by streams.
 * Errors:    OUT_OF_MEMORY. INVALID_ARGUMENT: NULL, a size, dtype, rank, a negative extent, more
 *            bytes than an address can hold, misaligned `data`. `release` was not called then.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_tensor_create(chipdock_host_device* device, const chipdock_host_tensor_desc* desc,
                            chipdock_host_tensor** out_tensor, chipdock_error* error);

/**
 * Makes another tensor over part of the memory of one. [HTN-3]
 *
 * @param tensor   From create, view, a run or an operator.
 * @param desc     dtype and shape of the view; its data, release and context are NULL.
 * @param offset   Bytes from the first element of `tensor`; a multiple of the element's size. What
 *                 the view shows lies inside `tensor`.
 * @param out_view Set to the view. Not NULL.
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows its arguments for this call; returns `*out_view`, ended by destroy.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size, dtype, shape, or the view leaves the tensor.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_tensor_view(const chipdock_host_tensor* tensor, const chipdock_host_tensor_desc* desc,
                          uint64_t offset, chipdock_host_tensor** out_view, chipdock_error* error);

/**
 * Ends a tensor. [HTN-5]
 *
 * @param tensor Invalid afterwards. NULL does nothing.
 *
 * Ownership: takes `tensor`.
 * Threading: one caller, no other call with the tensor at the same time.
 * Blocking:  never waits for queued work.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_tensor_destroy(chipdock_host_tensor* tensor);

/**
 * Tells dtype, shape and place of a tensor; works after the host was destroyed, too.
 *
 * @param tensor   A live tensor.
 * @param out_info Filled. Not NULL. [BASE-5]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call; the arrays are the tensor's. [HST-6]
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_tensor_describe(
    const chipdock_host_tensor* tensor, chipdock_host_tensor_info* out_info, chipdock_error* error);

/**
 * Copies all elements from host memory into a tensor. [HTN-4]
 *
 * @param tensor A live tensor.
 * @param source Host memory; may be NULL if `size` is 0.
 * @param size   Bytes of the tensor, neither more nor less.
 * @param stream A stream of the tensor's device, or NULL.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows `source` until the copy has ended, the rest for this call.
 * Threading: any thread.
 * Blocking:  with a NULL stream until the copy has ended, else stream-ordered.
 * Errors:    INVALID_ARGUMENT: NULL, another size, a stream of another device. The first cause of a
 *            failed stream or device.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_tensor_write(chipdock_host_tensor* tensor, const void* source, uint64_t size,
                           chipdock_host_stream* stream, chipdock_error* error);

/**
 * Copies all elements of a tensor into host memory. [HTN-4]
 *
 * @param tensor A live tensor.
 * @param target Host memory; may be NULL if `size` is 0.
 * @param size   Bytes of the tensor, neither more nor less.
 * @param stream A stream of the tensor's device, or NULL.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows `target` until the copy has ended, the rest for this call.
 * Threading: any thread.
 * Blocking:  with a NULL stream until the copy has ended, else stream-ordered.
 * Errors:    As write.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_tensor_read(const chipdock_host_tensor* tensor, void* target, uint64_t size,
                          chipdock_host_stream* stream, chipdock_error* error);

/**
 * Copies the elements of one tensor into another, also between devices and plugins. [HTN-4]
 *
 * @param source A live tensor.
 * @param target A tensor of the same dtype and number of elements; shares no byte with `source`.
 * @param stream A stream of either device, or NULL.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  with a NULL stream until the copy has ended, else stream-ordered; between two plugins
 *            it may wait for the stream.
 * Errors:    INVALID_ARGUMENT: NULL, dtypes or sizes differ, the two overlap, a stream of a third
 *            device. The first cause of a failed stream or device.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_tensor_copy(const chipdock_host_tensor* source, chipdock_host_tensor* target,
                          chipdock_host_stream* stream, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_TENSOR_H_ */
