/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The compile table: two doors to a vendor's compiler. Source takes kernel text (what a fusing
 * compiler writes) and gives functions to launch; Graph takes parts of a model (what an NPU wants)
 * and gives executables. Version 0.1: slots and structs may still change; define CHIPDOCK_UNSTABLE
 * to see them.
 *
 * Duties:
 *   CMP-1  caps is the same for every device of one architecture and stays valid until close.
 *   CMP-2  The text compiled is prelude, line end, text. The compiler reads no file that the text
 *          does not name, adds no option of its own that changes results, and keeps the
 *          floating-point rules strict.
 *   CMP-3  A failed compile gives the compiler's own output in `log` and leaves nothing behind.
 *   CMP-4  Dims of dynamic shapes are int64 scalars in the order the text declares them; pointers
 *          are buffers. Counts and sizes of arguments are checked where the driver can tell.
 *   CMP-5  Functions live as long as their module; launch_function is re-entrant and copies its
 *          arguments.
 *   CMP-6  claim has no side effect and gives the same answer to the same model. Nodes of one group
 *          can be compiled as one model: no path between two of them leaves the group.
 *   CMP-7  compile keeps nothing of the model after it returned, except weights on the device,
 *          which the host keeps until the executable is destroyed. Weights on the host are copied
 *          or packed.
 *   CMP-8  An executable takes every size inside the bounds it was compiled for; others are
 *          INVALID_ARGUMENT naming dim, value and bounds.
 *   CMP-9  execute is re-entrant: all that a run changes is in its outputs and its workspace. It
 *          allocates no device memory. NULL stream: ended on return; else [KRN-6] holds.
 *   CMP-10 An input may be the memory of an output only where io_info says so.
 *   CMP-11 A blob names chip, compiler and plugin; load refuses another's with MISMATCH and never
 *          trusts lengths in it. A blob that check_compat passes, loads.
 *   CMP-12 cancel ends a run early or lets it end; either way its stream goes on in order, with
 *          ABORTED.
 *   CMP-13 caps and the slots of a door come together: compile_source, get_function, function_info,
 *          launch_function and destroy_module; claim, compile, io_info, workspace_size, execute,
 *          destroy. serialize, load and check_compat come together.
 */
#ifndef CHIPDOCK_COMPILE_H_
#define CHIPDOCK_COMPILE_H_

#include "chipdock/base.h"
#include "chipdock/kernel.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CHIPDOCK_UNSTABLE)

#define CHIPDOCK_COMPILE_MAJOR 0
#define CHIPDOCK_COMPILE_MINOR 1

typedef struct chipdock_module chipdock_module; /**< Compiled source. */
/** One entry of a module; its owner is that. */
typedef struct chipdock_function chipdock_function;
/** A compiled part of a model. Immutable. */
typedef struct chipdock_executable chipdock_executable;

/** A language that compile_source takes. */
typedef struct chipdock_dialect {
  uint32_t struct_size;
  /** CHIPDOCK_VERSION of the newest one it takes; older ones of the major are taken. */
  uint32_t version;
  const char* name; /**< "opencl-c", "cuda-c", "hip-c", "spirv", or "com.acme.asm". */
} chipdock_dialect;

/** `chipdock_compile_caps.flags`. */
enum {
  CHIPDOCK_COMPILE_SOURCE = 1 << 0,    /**< The source door is there. */
  CHIPDOCK_COMPILE_GRAPH = 1 << 1,     /**< The graph door is there. */
  CHIPDOCK_COMPILE_BOUNDED = 1 << 2,   /**< Models may have bounded dims. */
  CHIPDOCK_COMPILE_SYMBOLIC = 1 << 3,  /**< Models may have symbolic dims. */
  CHIPDOCK_COMPILE_WANTS_ONNX = 1 << 4 /**< Fill `chipdock_model.onnx`. */
};

/** What the compiler takes and the limits of functions. 0 in a number means unknown. */
typedef struct chipdock_compile_caps {
  uint32_t struct_size;
  uint32_t flags;     /**< CHIPDOCK_COMPILE_*. */
  uint32_t warp_size; /**< Threads that run in step; 1 if none do. */
  uint32_t max_block_threads;
  uint32_t max_block[3];
  uint32_t dialect_count;
  uint64_t max_grid[3];
  uint64_t max_local_bytes; /**< Of one block, static and dynamic together. */
  uint64_t max_argument_bytes;
  const chipdock_dialect* const* dialects;
} chipdock_compile_caps;

/** Source to compile. */
typedef struct chipdock_source_desc {
  uint32_t struct_size;
  uint32_t dialect_version; /**< CHIPDOCK_VERSION. */
  const char* dialect;      /**< A name from caps. */
  const char* prelude;      /**< Text before `text`, closed with 0, or NULL. [CMP-2] */
  const char* text;         /**< Text, or bytes of a binary dialect. */
  uint64_t text_size;       /**< Bytes of `text`, without a closing 0. */
  uint32_t option_count;
  uint32_t flags; /**< 0. */
  /** "define:NAME", "optimize"; unknown ones INVALID_ARGUMENT. */
  const chipdock_option* const* options;
  /** Receives the compiler's output closed with 0, cut to fit; NULL = not wanted. */
  char* log;
  uint64_t log_size; /**< Bytes of `log`. */
  uint64_t correlation_id;
} chipdock_source_desc;

/** What became of a function. 0 means unknown. */
typedef struct chipdock_function_info {
  uint32_t struct_size;
  uint32_t registers;         /**< Of one thread. */
  uint32_t max_block_threads; /**< Largest block it can run with. */
  uint32_t block_multiple;    /**< Good block sizes are multiples of it. */
  uint64_t local_bytes;       /**< Static local memory of one block. */
  uint64_t spill_bytes;       /**< Spilled registers of one thread. */
  uint32_t argument_count;
  uint32_t flags; /**< 0. */
} chipdock_function_info;

/** `chipdock_argument.kind`. */
enum {
  CHIPDOCK_ARGUMENT_BUFFER = 1, /**< `memory` and `offset`: a pointer in the text. */
  CHIPDOCK_ARGUMENT_SCALAR = 2, /**< Low `size` bytes of `bits`, 1, 2, 4 or 8; dims are int64. */
  CHIPDOCK_ARGUMENT_LOCAL = 3   /**< `size` bytes of local memory: a local pointer in the text. */
};

/** One argument of a function. */
typedef struct chipdock_argument {
  uint32_t struct_size;
  int32_t kind;            /**< CHIPDOCK_ARGUMENT_*. */
  chipdock_memory* memory; /**< BUFFER; NULL is a null pointer. */
  uint64_t offset;         /**< BUFFER: bytes, a multiple of the heap's sub_allocation_alignment. */
  uint64_t bits;           /**< SCALAR. */
  uint64_t size;           /**< SCALAR, LOCAL: bytes. */
} chipdock_argument;

/** One launch of a function. */
typedef struct chipdock_function_launch_desc {
  uint32_t struct_size;
  uint32_t argument_count;
  uint64_t grid[3];                          /**< Blocks, each 1 or more. */
  uint32_t block[3];                         /**< Threads of a block, each 1 or more. */
  uint32_t local_bytes;                      /**< Dynamic local memory that no argument names. */
  const chipdock_argument* const* arguments; /**< [CMP-4] */
  chipdock_stream* stream;                   /**< NULL: ended on return. */
  uint64_t correlation_id;
} chipdock_function_launch_desc;

/** `chipdock_dim.kind`. */
enum {
  CHIPDOCK_DIM_STATIC = 0,  /**< `max` is the extent. */
  CHIPDOCK_DIM_BOUNDED = 1, /**< `min` to `max`. */
  CHIPDOCK_DIM_SYMBOLIC = 2 /**< 0 or more. */
};

/** One dim of a value of a model. */
typedef struct chipdock_dim {
  uint32_t struct_size;
  int32_t kind; /**< CHIPDOCK_DIM_*. */
  int64_t min;
  int64_t max;
  const char* symbol; /**< Dims with equal names are equal at run time; NULL = no name. */
} chipdock_dim;

/** A named value of a model. */
typedef struct chipdock_model_value {
  uint32_t struct_size;
  uint32_t flags;              /**< CHIPDOCK_MODEL_VALUE_*. */
  const char* name;            /**< Unique in the model. */
  const chipdock_value* value; /**< dtype, rank, dims (-1 where not static), small constants. */
  /** rank entries, or NULL if all dims are static or rank is -1. */
  const chipdock_dim* const* dims;
} chipdock_model_value;

/** `chipdock_model_value.flags`. */
enum {
  CHIPDOCK_MODEL_VALUE_WEIGHT = 1 << 0 /**< Its elements come as a named tensor at compile. */
};

/** A node of a model. It has no subgraphs: the host runs control flow. */
typedef struct chipdock_model_node {
  uint32_t struct_size;
  uint32_t flags;            /**< 0. */
  const char* name;          /**< For messages and traces. */
  const chipdock_node* node; /**< Operator and attributes; its values are those of the indices. */
  const uint32_t* inputs;    /**< input_count indices into values; UINT32_MAX = not given. */
  const uint32_t* outputs;   /**< output_count indices into values; UINT32_MAX = not wanted. */
} chipdock_model_node;

/** A model or part of one, without weights, nodes in an order they can run in. */
typedef struct chipdock_model {
  uint32_t struct_size;
  uint32_t value_count;
  uint32_t node_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t flags; /**< 0. */
  const chipdock_model_value* const* values;
  const chipdock_model_node* const* nodes;
  const uint32_t* inputs;  /**< Indices into values. */
  const uint32_t* outputs; /**< Indices into values. */
  const void* onnx;        /**< The same as a serialized ModelProto if caps want it, else NULL. */
  uint64_t onnx_size;      /**< Bytes of `onnx`. */
} chipdock_model;

/** A tensor by name. */
typedef struct chipdock_named_tensor {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  const char* name;
  const chipdock_tensor* tensor; /**< In host memory (often a mapped file) or on the device. */
} chipdock_named_tensor;

/** What to compile. */
typedef struct chipdock_compile_desc {
  uint32_t struct_size;
  uint32_t weight_count;
  const chipdock_model* model;
  const chipdock_named_tensor* const* weights; /**< One for each WEIGHT value. [CMP-7] */
  uint32_t option_count;
  int32_t math_mode;                     /**< CHIPDOCK_MATH_*. */
  const chipdock_option* const* options; /**< Unknown keys are INVALID_ARGUMENT and named. */
  char* log;                             /**< As chipdock_source_desc.log. */
  uint64_t log_size;                     /**< Bytes of `log`. */
  uint64_t correlation_id;
  void* context; /**< First argument of `progress`. */
  /**
   * NULL, or called now and then with 0 to 1000; an answer that is not 0 ends the compile with
   * ABORTED.
   */
  int32_t(CHIPDOCK_CALL* progress)(void* context, int32_t per_mille);
} chipdock_compile_desc;

/** One input or output of an executable. */
typedef struct chipdock_io_info {
  uint32_t struct_size;
  int32_t argument; /**< In: input k as k, output k as -1-k. */
  const char* name; /**< Of the model's value; the executable's until destroy. */
  /** dtype, rank, dims (-1 where dynamic); layout 0 without a kernel table. */
  const chipdock_value* value;
  uint64_t max_bytes; /**< Most bytes it takes inside the bounds; 0 = unbounded. */
  uint32_t alignment; /**< Bytes its address needs; 0 = the heap's. */
  /** Output: 1 + the input whose memory it may share; 0 = none. [CMP-10] */
  int32_t alias_input;
} chipdock_io_info;

/** One run. For workspace_size the same struct is filled with shapes but without memory. */
typedef struct chipdock_execute_desc {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t alias_count;
  const chipdock_tensor* const* inputs;
  const chipdock_tensor* const* outputs; /**< At their upper bound where a shape depends on data. */
  const chipdock_tensor* const* extents; /**< As chipdock_launch_desc.extents. [KRN-13] */
  const chipdock_alias* const* aliases;  /**< Pairs that share memory in this run. [CMP-10] */
  chipdock_memory* workspace;
  uint64_t workspace_offset;
  uint64_t workspace_size;
  chipdock_stream* stream; /**< NULL: ended on return. */
  uint64_t correlation_id;
} chipdock_execute_desc;

/** The compile table, "chipdock.compile". */
typedef struct chipdock_compile_api {
  chipdock_table_header header;

  /**
   * Says which doors, dialects and limits there are.
   *
   * @param device   From open.
   * @param out_caps Written up to its struct_size. Not NULL. [BASE-5] [CMP-1]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: strings and arrays belong to the plugin.
   * Threading: any thread.
   * Blocking:  may load the compiler.
   * Errors:    UNAVAILABLE: the compiler's library is absent, named. INVALID_ARGUMENT: NULL, short
   *            output.
   * Since:     compile 0.1, optional: UNSUPPORTED. [CMP-13]
   */
  chipdock_status(CHIPDOCK_CALL* caps)(chipdock_device* device, chipdock_compile_caps* out_caps,
                                       chipdock_error* error);

  /**
   * Compiles source for this device.
   *
   * @param device     From open.
   * @param desc       Dialect, text, options. Not NULL. [CMP-2] [CMP-3]
   * @param out_module Set to the module. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL; the first line of the compiler's complaint.
   *
   * Ownership: borrows `desc` for this call; returns `*out_module`, ended by destroy_module.
   * Threading: any thread.
   * Blocking:  may compile for seconds.
   * Errors:    INVALID_ARGUMENT: text does not compile, unknown option. UNSUPPORTED: dialect or
   *            version. OUT_OF_MEMORY.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* compile_source)(chipdock_device* device,
                                                 const chipdock_source_desc* desc,
                                                 chipdock_module** out_module,
                                                 chipdock_error* error);

  /**
   * Finds a function of a module.
   *
   * @param module       From compile_source.
   * @param name         As in the text, not mangled, closed with 0. Not NULL.
   * @param out_function Set to the function. Not NULL. [BASE-8] [CMP-5]
   * @param error        Filled on failure if not NULL.
   *
   * Ownership: the function belongs to the module; the same pointer comes back each time.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL, no such function.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* get_function)(chipdock_module* module, const char* name,
                                               chipdock_function** out_function,
                                               chipdock_error* error);

  /**
   * Says what became of a function, for choosing block sizes.
   *
   * @param function From get_function.
   * @param out_info Written up to its struct_size. Not NULL. [BASE-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL or short output.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* function_info)(chipdock_function* function,
                                                chipdock_function_info* out_info,
                                                chipdock_error* error);

  /**
   * Launches a function.
   *
   * @param function From get_function.
   * @param desc     Grid, block, arguments, stream. Not NULL. [CMP-4] [CMP-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, buffers until the work has ended.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until done. Else stream-ordered. Capturable.
   * Errors:    INVALID_ARGUMENT: grid, block, local bytes or arguments outside the limits, named.
   *            UNSUPPORTED: argument kind. FAILED_PRECONDITION: the stream failed.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* launch_function)(chipdock_function* function,
                                                  const chipdock_function_launch_desc* desc,
                                                  chipdock_error* error);

  /**
   * Ends a module and its functions. No launch of them is in flight.
   *
   * @param module From compile_source; invalid afterwards, also on failure.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `module`.
   * Threading: any thread; no other call on the module at the same time.
   * Blocking:  may wait for the driver.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* destroy_module)(chipdock_module* module, chipdock_error* error);

  /**
   * Says which nodes of a model this compiler takes, and which go together.
   *
   * @param device     From open.
   * @param model      Not NULL. Large weights have no elements here.
   * @param out_groups node_count entries, each set to a group, 0 or more, or -1. Not NULL. [CMP-6]
   * @param error      Filled on failure if not NULL; may carry the reason for a -1 as text.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may take seconds.
   * Errors:    INVALID_ARGUMENT: NULL, index out of range.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* claim)(chipdock_device* device, const chipdock_model* model,
                                        int32_t* out_groups, chipdock_error* error);

  /**
   * Compiles a model, or the part of one that a group of claim was.
   *
   * @param device         From open.
   * @param desc           Model, weights, options. Not NULL. [CMP-3] [CMP-7]
   * @param out_executable Set to the executable. Not NULL. [BASE-8] [CMP-8]
   * @param error          Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_executable`, ended by destroy.
   * Threading: any thread.
   * Blocking:  may compile for minutes.
   * Errors:    UNSUPPORTED: a node or kind of dim, named. INVALID_ARGUMENT: a weight is missing.
   *            OUT_OF_MEMORY. ABORTED: progress asked for it.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* compile)(chipdock_device* device,
                                          const chipdock_compile_desc* desc,
                                          chipdock_executable** out_executable,
                                          chipdock_error* error);

  /**
   * Describes an input or output.
   *
   * @param executable From compile or load.
   * @param out_info   `argument` in, the rest out. Not NULL. [BASE-5] [CMP-10]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: pointers in it belong to the executable.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL, short output, no such argument (which is how to count them).
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* io_info)(chipdock_executable* executable,
                                          chipdock_io_info* out_info, chipdock_error* error);

  /**
   * Says how much scratch a run of these shapes needs.
   *
   * @param executable From compile or load.
   * @param desc       Shapes; memory is not looked at. Not NULL.
   * @param out_size   Set to bytes. Not NULL.
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: shapes outside the bounds, named. [CMP-8]
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* workspace_size)(chipdock_executable* executable,
                                                 const chipdock_execute_desc* desc,
                                                 uint64_t* out_size, chipdock_error* error);

  /**
   * Runs an executable.
   *
   * @param executable From compile or load.
   * @param desc       Tensors, workspace, stream. Not NULL. [CMP-8] [CMP-9] [CMP-10]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, memory until the work has ended.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until done. Else stream-ordered.
   * Errors:    INVALID_ARGUMENT: counts, dtypes, shapes, workspace. FAILED_PRECONDITION: the stream
   *            failed.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* execute)(chipdock_executable* executable,
                                          const chipdock_execute_desc* desc, chipdock_error* error);

  /**
   * Asks a run to end early.
   *
   * @param executable     From compile or load.
   * @param correlation_id Of the run; 0 = every run of it now queued. [CMP-12]
   * @param error          Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread, beside anything but destroy.
   * Blocking:  never for long.
   * Errors:    INVALID_ARGUMENT: NULL. A run that has ended is OK.
   * Since:     compile 0.1, optional: the host waits for the end.
   */
  chipdock_status(CHIPDOCK_CALL* cancel)(chipdock_executable* executable, uint64_t correlation_id,
                                         chipdock_error* error);

  /**
   * Writes an executable as bytes, weights included or named, for a later process.
   *
   * @param executable From compile or load.
   * @param blob       Receives the bytes, or NULL to ask for the size.
   * @param size       Bytes of `blob`; 0 if it is NULL.
   * @param out_size   Set to the bytes needed. Not NULL. [CMP-11]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL, blob too small (out_size is set).
   * Since:     compile 0.1, optional: UNSUPPORTED; the host compiles again.
   */
  chipdock_status(CHIPDOCK_CALL* serialize)(chipdock_executable* executable, void* blob,
                                            uint64_t size, uint64_t* out_size,
                                            chipdock_error* error);

  /**
   * Makes an executable from bytes of serialize.
   *
   * @param device         From open.
   * @param blob           The bytes; they may be damaged or hostile. Not NULL. [CMP-11]
   * @param size           Bytes of `blob`.
   * @param out_executable Set to the executable. Not NULL. [BASE-8]
   * @param error          Filled on failure if not NULL.
   *
   * Ownership: borrows `blob` for this call; returns `*out_executable`, ended by destroy.
   * Threading: any thread.
   * Blocking:  may copy to the device.
   * Errors:    MISMATCH: another chip, compiler or plugin, or damaged. OUT_OF_MEMORY.
   * Since:     compile 0.1, optional: as serialize.
   */
  chipdock_status(CHIPDOCK_CALL* load)(chipdock_device* device, const void* blob, uint64_t size,
                                       chipdock_executable** out_executable, chipdock_error* error);

  /**
   * Says whether load would take these bytes on this device, without doing it.
   *
   * @param device From open.
   * @param blob   The bytes. Not NULL. [CMP-11]
   * @param size   Bytes of `blob`.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    MISMATCH: what differs, both sides named. INVALID_ARGUMENT: NULL.
   * Since:     compile 0.1, optional: as serialize.
   */
  chipdock_status(CHIPDOCK_CALL* check_compat)(chipdock_device* device, const void* blob,
                                               uint64_t size, chipdock_error* error);

  /**
   * Ends an executable. No run of it is in flight.
   *
   * @param executable From compile or load; invalid afterwards, also on failure.
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: takes `executable`.
   * Threading: any thread; no other call on it at the same time.
   * Blocking:  may wait for the driver.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     compile 0.1, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* destroy)(chipdock_executable* executable, chipdock_error* error);
} chipdock_compile_api;

#endif /* CHIPDOCK_UNSTABLE */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_COMPILE_H_ */
