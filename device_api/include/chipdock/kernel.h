/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The kernel table: which operators a device computes, and launching them. Optional: without it the
 * host runs operators on the embedded CPU plugin, if the fallback policy allows. Version 1.0.
 *
 * Kernels speak ONNX: domain, operator, and the versions at which its definition changed ("since
 * versions"). The host hands over attributes as tagged structs with the schema's defaults filled
 * in. A fused kernel is an operator of the domain "ai.chipdock" that is an ONNX function: its body
 * is its fallback and its test.
 *
 * How the host picks: version range and dtype rules -> supports -> highest score -> priority ->
 * newest since version; the answer is cached per signature and `chipdock explain` prints why.
 *
 * Duties:
 *   KRN-1  The list and its descriptors stay valid and unchanged until the device is closed.
 *   KRN-2  supports and score have no side effect and give the same answer to the same question.
 *   KRN-3  An instance is immutable after create; launch on it from several threads at once is
 *          legal.
 *   KRN-4  launch reads inputs and attributes, writes every element of every output, and nothing
 *          else. What a tensor in a private layout has beside its elements is zero, in inputs and
 *          in outputs.
 *   KRN-5  launch allocates no device memory; its scratch is the workspace that workspace_size
 *          asked for.
 *   KRN-6  A launch with a NULL stream has ended on return. With a stream it takes effect in its
 *          order; the desc and all it points to except memory may be gone when the call returns.
 *   KRN-7  Inputs flagged in host_inputs have `host` set and are read before launch returns; all
 *          others are device memory, or host memory if the device says CHIPDOCK_DEVICE_READS_HOST.
 *          Outputs flagged in host_outputs are host memory, written before launch returns.
 *   KRN-8  Without CHIPDOCK_KERNEL_ACCEPTS_STRIDES all tensors are dense and row-major (strides
 *          NULL). A tensor is in another layout than 0 only where a layout rule of the kernel
 *          allows it, and in that which its instance was created for.
 *   KRN-9  An output may be the same memory as an input only for a pair listed in `aliases`.
 *   KRN-10 Tensors with a zero in their shape may have no memory; launch accepts them.
 *   KRN-11 With deterministic set, the same inputs give the same bits on the same device.
 *   KRN-12 Where a packed form of an input was made, launch reads that form and not the input.
 *   KRN-13 An output of data-dependent shape is given at its upper bound; launch writes the true
 *          extents, int64[rank], into `extents` in stream order.
 */
#ifndef CHIPDOCK_KERNEL_H_
#define CHIPDOCK_KERNEL_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHIPDOCK_KERNEL_MAJOR 1
#define CHIPDOCK_KERNEL_MINOR 0

/** Most dimensions a tensor may have. */
#define CHIPDOCK_MAX_RANK 32

/** `chipdock_attribute.kind`; says which fields are meant. Names follow ONNX's AttributeType. */
enum {
  CHIPDOCK_ATTRIBUTE_FLOAT = 1,  /**< `number` */
  CHIPDOCK_ATTRIBUTE_INT = 2,    /**< `integer` */
  CHIPDOCK_ATTRIBUTE_STRING = 3, /**< `text`, `count` bytes */
  CHIPDOCK_ATTRIBUTE_TENSOR = 4, /**< `tensor`, in host memory */
  CHIPDOCK_ATTRIBUTE_FLOATS = 6, /**< `numbers`, `count` of them */
  CHIPDOCK_ATTRIBUTE_INTS = 7,   /**< `integers`, `count` of them */
  CHIPDOCK_ATTRIBUTE_STRINGS = 8 /**< `texts`, `count` of them, each closed with 0 */
};

/** A tensor at launch: dtype, shape, and where its elements are. */
typedef struct chipdock_tensor {
  uint32_t struct_size;
  chipdock_dtype dtype;
  int32_t rank;            /**< 0 (scalar) to CHIPDOCK_MAX_RANK. */
  uint32_t layout;         /**< 0 = dense or strided; else an opaque layout of the plugin. */
  const int64_t* shape;    /**< rank extents, each 0 or more. NULL if rank is 0. */
  const int64_t* strides;  /**< rank strides in elements, or NULL for row-major. */
  chipdock_memory* memory; /**< Device memory, or NULL. */
  uint64_t offset;         /**< Bytes from the start of `memory`. */
  void* host;              /**< Host memory if `memory` is NULL. */
} chipdock_tensor;

/** One attribute of a node. */
typedef struct chipdock_attribute {
  uint32_t struct_size;
  int32_t kind; /**< CHIPDOCK_ATTRIBUTE_*. */
  const char* name;
  int64_t integer;
  double number; /**< An ONNX float attribute, widened. */
  uint64_t count;
  const char* text;
  const int64_t* integers;
  const double* numbers;
  const char* const* texts;
  const chipdock_tensor* tensor;
} chipdock_attribute;

/** What is known of an input or output before launch. */
typedef struct chipdock_value {
  uint32_t struct_size;
  chipdock_dtype dtype;
  int32_t rank;           /**< -1 = unknown. */
  uint32_t layout;        /**< As chipdock_tensor.layout. */
  const int64_t* dims;    /**< rank extents, -1 = unknown. */
  const void* constant;   /**< Elements in host memory if the value never changes, else NULL. */
  uint64_t constant_size; /**< Bytes of `constant`. */
} chipdock_value;

/** One operator call of a model. An optional argument that is not given is a NULL pointer. */
typedef struct chipdock_node {
  uint32_t struct_size;
  int32_t since_version; /**< Version at which the operator's definition in force was introduced. */
  const char* domain;    /**< "" is the default ONNX domain. */
  const char* op;
  uint32_t attribute_count;
  uint32_t input_count;
  uint32_t output_count;
  int32_t math_mode; /**< CHIPDOCK_MATH_*. */
  const chipdock_attribute* const* attributes;
  const chipdock_value* const* inputs;
  const chipdock_value* const* outputs;
} chipdock_node;

/** `chipdock_kernel.flags`. */
enum {
  /** May be launched while its stream is being captured. */
  CHIPDOCK_KERNEL_CAPTURABLE = 1 << 0,
  /** launch waits for its stream; may use `allocate_output`. */
  CHIPDOCK_KERNEL_SYNCHRONIZES = 1 << 1,
  CHIPDOCK_KERNEL_ACCEPTS_STRIDES = 1 << 2, /**< Takes strided inputs and outputs. */
  CHIPDOCK_KERNEL_DETERMINISTIC = 1 << 3    /**< Always satisfies KRN-11. */
};

/** Which dtypes one argument may have. */
typedef struct chipdock_dtype_rule {
  uint32_t struct_size;
  /** Input k as k, output k as -1-k. The last rule of a side serves what follows it. */
  int32_t argument;
  uint32_t count;
  uint32_t flags; /**< 0. */
  const chipdock_dtype* dtypes;
} chipdock_dtype_rule;

/** An input that an output may overwrite in place. */
typedef struct chipdock_alias {
  uint32_t struct_size;
  uint32_t input;
  uint32_t output;
} chipdock_alias;

/**
 * Which layouts beside 0 one argument may have. A layout is a number of the plugin's own; the host
 * asks supports and score with it in chipdock_value.layout, inserts "Reorder" nodes, and gives
 * values in it layout_size bytes. Constants, and what the host reads or writes, are in layout 0.
 */
typedef struct chipdock_layout_rule {
  uint32_t struct_size;
  int32_t argument; /**< As chipdock_dtype_rule.argument; the last rule serves the rest too. */
  uint32_t count;   /**< 0 = none: ends the rule before it. */
  uint32_t flags;   /**< 0. */
  const uint32_t* layouts; /**< None of them is 0. */
} chipdock_layout_rule;

/** A kernel on offer: data only, the work is done by the table's slots. [KRN-1] [BASE-11] */
typedef struct chipdock_kernel {
  uint32_t struct_size;
  uint32_t flags;   /**< CHIPDOCK_KERNEL_*. */
  const char* name; /**< For people and traces: "gemm_onednn_f32". */
  const char* domain;
  const char* op;
  int32_t since_version;     /**< Oldest since version it computes. */
  int32_t until_version;     /**< Newest one; 0 = every later one too. */
  int32_t priority;          /**< Breaks ties of score; more is better. */
  uint32_t dtype_rule_count; /**< 0 = supports decides alone. */
  /** Bit k: input k is read by the host [KRN-7]. Added to the operator's own. */
  uint64_t host_inputs;
  uint64_t host_outputs; /**< Bit k: output k is written on the host. */
  uint32_t layout_rule_count;
  uint32_t alias_count;
  uint32_t min_alignment; /**< Bytes every tensor's address needs; 0 = the heap's. */
  const chipdock_dtype_rule* const* dtype_rules;
  const chipdock_layout_rule* const* layout_rules;
  const chipdock_alias* const* aliases;
  const void* state; /**< The plugin's own. */
} chipdock_kernel;

/** Answers of supports. */
enum {
  CHIPDOCK_SUPPORTS_NO = 0,
  CHIPDOCK_SUPPORTS_YES = 1,
  CHIPDOCK_SUPPORTS_NEEDS_SHAPE = 2 /**< Ask again when all dims are known. */
};

/** How exact fp32 matrix work has to be. */
enum {
  CHIPDOCK_MATH_STRICT = 0, /**< fp32 products and sums. */
  CHIPDOCK_MATH_TF32 = 1,   /**< Inputs may be rounded to 10 mantissa bits. */
  CHIPDOCK_MATH_BF16X3 = 2  /**< Three bf16 products a pair. */
};

/** Packing of one constant input. */
typedef struct chipdock_prepack_desc {
  uint32_t struct_size;
  uint32_t input; /**< Which input. */
  const chipdock_tensor* source;
  chipdock_memory* target; /**< At least the size that prepack_size gave. */
  uint64_t target_offset;
  chipdock_stream* stream;
  uint64_t correlation_id;
} chipdock_prepack_desc;

/** What prepack_size answers. */
typedef struct chipdock_prepack_info {
  uint32_t struct_size;
  uint32_t keep_source; /**< 1: launch still reads the original too. */
  uint64_t size;        /**< Bytes of the packed form; 0 = this input is not packed. */
  char layout[64];      /**< Names the form; equal names of equal constants are packed once. */
} chipdock_prepack_info;

/** Gives a SYNCHRONIZES kernel the memory of an output once it knows its shape. */
typedef struct chipdock_output_allocator {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  void* context;
  /** Fills `tensor` (memory, offset, shape) for `output`; returns OK or OUT_OF_MEMORY. */
  chipdock_status(CHIPDOCK_CALL* allocate)(void* context, uint32_t output, int32_t rank,
                                           const int64_t* shape, chipdock_tensor* tensor);
} chipdock_output_allocator;

/** One launch. For workspace_size the same struct is filled with shapes but without memory. */
typedef struct chipdock_launch_desc {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  int32_t math_mode;                     /**< CHIPDOCK_MATH_*. */
  const chipdock_tensor* const* inputs;  /**< NULL entry: optional input not given. */
  const chipdock_tensor* const* outputs; /**< NULL entry: output not wanted. */
  /** NULL, or input_count entries, NULL where not packed. */
  const chipdock_tensor* const* packed;
  const chipdock_tensor* const* extents; /**< NULL, or output_count entries. [KRN-13] */
  chipdock_memory* workspace;
  uint64_t workspace_offset;
  uint64_t workspace_size; /**< Bytes, at least what workspace_size answered for these shapes. */
  chipdock_stream* stream;
  uint64_t correlation_id;
  uint64_t seed; /**< Random operators: seed and offset name the numbers drawn. */
  uint64_t seed_offset;
  int32_t deterministic; /**< 1: KRN-11 holds. */
  uint32_t max_threads;  /**< Host threads the launch may use; 0 = as the device was opened. */
  const chipdock_output_allocator* allocator; /**< NULL unless the kernel SYNCHRONIZES. */
} chipdock_launch_desc;

/**
 * The kernel table, "chipdock.kernel". list, supports, create, destroy and launch come together.
 */
typedef struct chipdock_kernel_api {
  chipdock_table_header header;

  /**
   * Lists all kernels of a device.
   *
   * @param device      From open.
   * @param out_kernels Set to an array of descriptors. Not NULL. [KRN-1]
   * @param out_count   Set to its length. Not NULL.
   * @param error       Filled on failure if not NULL.
   *
   * Ownership: the array belongs to the plugin.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: no kernels; operators fall back to the CPU plugin.
   */
  chipdock_status(CHIPDOCK_CALL* list)(chipdock_device* device,
                                       const chipdock_kernel* const** out_kernels,
                                       uint64_t* out_count, chipdock_error* error);

  /**
   * Says whether a kernel computes a node. Asked only where version and dtype rules fit.
   *
   * @param device     From open.
   * @param kernel     From list.
   * @param node       Attributes, dtypes, and what is known of shapes. Not NULL.
   * @param out_answer Set to CHIPDOCK_SUPPORTS_*. Not NULL. [KRN-2]
   * @param error      Filled on failure if not NULL; with NO it may carry the reason as text.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: as list.
   */
  chipdock_status(CHIPDOCK_CALL* supports)(chipdock_device* device, const chipdock_kernel* kernel,
                                           const chipdock_node* node, int32_t* out_answer,
                                           chipdock_error* error);

  /**
   * Rates a kernel for a node, to pick among several that fit.
   *
   * @param device    From open.
   * @param kernel    From list; supports said YES.
   * @param node      As supports.
   * @param out_score Set to the rating; larger is better, 0 is ordinary. Not NULL. [KRN-2]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: 0 for all.
   */
  chipdock_status(CHIPDOCK_CALL* score)(chipdock_device* device, const chipdock_kernel* kernel,
                                        const chipdock_node* node, double* out_score,
                                        chipdock_error* error);

  /**
   * Makes an instance of a kernel for one node.
   *
   * @param device       From open.
   * @param kernel       From list; supports said YES.
   * @param node         As supports. The instance serves every shape that fits its dims.
   * @param out_instance Set to the instance. Not NULL. [KRN-3] [BASE-8]
   * @param error        Filled on failure if not NULL.
   *
   * Ownership: borrows `node` for this call; returns `*out_instance`, ended by destroy.
   * Threading: any thread.
   * Blocking:  may compile.
   * Errors:    INVALID_ARGUMENT: an attribute has a value the operator forbids. UNSUPPORTED.
   *            OUT_OF_MEMORY.
   * Since:     ABI 1.0, optional: as list.
   */
  chipdock_status(CHIPDOCK_CALL* create)(chipdock_device* device, const chipdock_kernel* kernel,
                                         const chipdock_node* node,
                                         chipdock_kernel_instance** out_instance,
                                         chipdock_error* error);

  /**
   * Ends an instance. No launch of it is in flight.
   *
   * @param instance From create; invalid afterwards.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: takes `instance`.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: as list.
   */
  chipdock_status(CHIPDOCK_CALL* destroy)(chipdock_kernel_instance* instance,
                                          chipdock_error* error);

  /**
   * Says whether and how an instance wants a constant input packed.
   *
   * @param instance From create.
   * @param input    Index of a constant input.
   * @param value    Its dtype and full shape. Not NULL.
   * @param out_info Written up to its struct_size. Not NULL. [BASE-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL, no such input.
   * Since:     ABI 1.0, optional: nothing is packed.
   */
  chipdock_status(CHIPDOCK_CALL* prepack_size)(chipdock_kernel_instance* instance, uint32_t input,
                                               const chipdock_value* value,
                                               chipdock_prepack_info* out_info,
                                               chipdock_error* error);

  /**
   * Packs a constant input. The host owns the packed form and shares it between instances that
   * named the same layout for the same bytes; it may free the original unless keep_source was set.
   * [KRN-12]
   *
   * @param instance From create.
   * @param desc     Source, target, stream. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, source and target until the work has ended.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until done. Else stream-ordered.
   * Errors:    INVALID_ARGUMENT: NULL, no such input.
   * Since:     ABI 1.0, optional: present if prepack_size is.
   */
  chipdock_status(CHIPDOCK_CALL* prepack)(chipdock_kernel_instance* instance,
                                          const chipdock_prepack_desc* desc, chipdock_error* error);

  /**
   * Says how much scratch a launch of these shapes needs.
   *
   * @param instance From create.
   * @param desc     Shapes and options; memory is not looked at. Not NULL.
   * @param out_size Set to bytes; 0 is common. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: shapes that the operator forbids, named.
   * Since:     ABI 1.0, optional: 0 for all.
   */
  chipdock_status(CHIPDOCK_CALL* workspace_size)(chipdock_kernel_instance* instance,
                                                 const chipdock_launch_desc* desc,
                                                 uint64_t* out_size, chipdock_error* error);

  /**
   * Runs an instance. [KRN-3] to [KRN-13]
   *
   * @param instance From create.
   * @param desc     Tensors, workspace, stream, options. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call [KRN-6], device memory until the work has ended.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until done. Else stream-ordered; SYNCHRONIZES kernels wait for the
   *            stream.
   * Errors:    INVALID_ARGUMENT: counts, dtypes or shapes that the operator forbids, named.
   *            OUT_OF_MEMORY. FAILED_PRECONDITION: the stream failed, or is captured and the kernel
   *            is not CAPTURABLE.
   * Since:     ABI 1.0, optional: as list.
   */
  chipdock_status(CHIPDOCK_CALL* launch)(chipdock_kernel_instance* instance,
                                         const chipdock_launch_desc* desc, chipdock_error* error);

  /**
   * Says how many bytes a tensor takes in an opaque layout of this plugin. An operator "Reorder" of
   * the domain "ai.chipdock" turns it into layout 0 and back: one input, one output of its dtype
   * and shape, one of the two in a layout; the host inserts it. Asked only for tensors with
   * elements.
   *
   * @param device   From open.
   * @param value    Layout, dtype and full shape. Not NULL.
   * @param out_size Set to bytes, more than 0. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    UNSUPPORTED: unknown layout. INVALID_ARGUMENT: NULL, unknown dims.
   * Since:     ABI 1.0, optional: required if a kernel has layout rules.
   */
  chipdock_status(CHIPDOCK_CALL* layout_size)(chipdock_device* device, const chipdock_value* value,
                                              uint64_t* out_size, chipdock_error* error);
} chipdock_kernel_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_KERNEL_H_ */
