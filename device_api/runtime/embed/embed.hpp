// SPDX-License-Identifier: Apache-2.0
// What the files behind host*.h share: the handles, the guard that turns exceptions into statuses,
// and the reading of structs and enums that an embedder hands in.
#ifndef CHIPDOCK_RUNTIME_EMBED_EMBED_HPP_
#define CHIPDOCK_RUNTIME_EMBED_EMBED_HPP_

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chipdock/host.h"
#include "exec/plan.hpp"
#include "exec/tensor_ref.hpp"
#include "loader.hpp"
#include "stream.hpp"

struct chipdock_host_runtime {
  std::string layers;
  int64_t timeout_ns = -1;  ///< As run_limited takes it: -1 = the environment's.
  std::mutex mutex;         ///< Over `plugins`, whose elements never move or change. [HST-6]
  std::deque<chipdock::runtime::LoadReport> plugins;
};

namespace chipdock::embed {

/// Plans of single operators that a device has run, newest first.
struct OpCache {
  using Entry = std::pair<std::string, std::shared_ptr<runtime::Plan>>;
  std::mutex mutex;
  std::list<Entry> entries;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key;
};

}  // namespace chipdock::embed

struct chipdock_host_device {
  std::shared_ptr<chipdock::runtime::Device> device;
  chipdock::embed::OpCache ops;
};

struct chipdock_host_tensor {
  chipdock::runtime::TensorRef tensor;
  std::shared_ptr<chipdock::runtime::Device> device;
};

struct chipdock_host_stream {
  std::shared_ptr<chipdock::runtime::Stream> stream;
};

struct chipdock_host_event {
  std::shared_ptr<chipdock::runtime::Event> event;
};

struct chipdock_host_graph {
  std::shared_ptr<chipdock::runtime::IrGraph> graph;
  std::vector<bool> sourced;  ///< By value: has its source. [HGR-1]
  bool inputs_set = false;
  bool frozen = false;  ///< [HGR-5]
};

struct chipdock_host_plan {
  std::shared_ptr<chipdock::runtime::Plan> plan;
};

namespace chipdock::embed {

/// Fills the record of an embedder; what it is too small for is left out.
void fill_error(chipdock_error* error, chipdock_status code, const char* text,
                const runtime::Error* cause) noexcept;

/// Runs `body`; no exception leaves the library. [HST-2]
template <class Body>
chipdock_status guard(chipdock_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return CHIPDOCK_OK;
  } catch (const runtime::Error& failure) {
    fill_error(error, failure.code(), failure.what(), &failure);
    return failure.code();
  } catch (const kit::Failure& failure) {
    fill_error(error, failure.code(), failure.what(), nullptr);
    return failure.code();
  } catch (const std::bad_alloc&) {
    fill_error(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory is exhausted", nullptr);
    return CHIPDOCK_OUT_OF_MEMORY;
  } catch (const std::exception& other) {
    const std::string text = std::string("INTERNAL: ") + other.what();
    fill_error(error, CHIPDOCK_INTERNAL, text.c_str(), nullptr);
    return CHIPDOCK_INTERNAL;
  } catch (...) {
    fill_error(error, CHIPDOCK_INTERNAL, "INTERNAL: an unknown exception was thrown", nullptr);
    return CHIPDOCK_INTERNAL;
  }
}

/// Throws INVALID_ARGUMENT unless `condition`.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) runtime::raise(CHIPDOCK_INVALID_ARGUMENT, parts...);
}

/// A pointer that may not be NULL.
template <class T>
T& need(T* pointer, const char* what) {
  require(pointer != nullptr, what, " is NULL");
  return *pointer;
}

/// A struct that came in, at this library's size. All structs are as first published. [HST-1]
template <class T>
T take(const T* given, const char* what) {
  const chipdock_status status = chipdock_check_struct(given, sizeof(T), sizeof(T));
  if (status == CHIPDOCK_UNSUPPORTED) {
    runtime::raise(CHIPDOCK_UNSUPPORTED, what,
                   " carries data in fields that this library does not know; update chipdock");
  }
  require(given != nullptr, what, " is NULL");
  require(status == CHIPDOCK_OK, what, " has struct_size ", given->struct_size, ", at least ",
          sizeof(T), " bytes are needed");
  T out{};
  std::memcpy(&out, given, sizeof(T));
  return out;
}

/// Refuses flag bits that this library has no name for. [BASE-10]
inline void only_flags(uint32_t given, uint32_t known, const char* what) {
  if ((given & ~known) != 0) {
    runtime::raise(CHIPDOCK_UNSUPPORTED, what, " has the unknown flags ", given & ~known);
  }
}

/// A list that may be NULL if it is empty.
template <class T>
void need_list(const T* list, uint64_t count, const char* what) {
  require(list != nullptr || count == 0, what, " is NULL, its count is ", count);
}

inline std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

/// Memory of the embedder: calls its `release` with the last owner, on whatever thread that is, once
/// armed. Not before, so that a call that fails has not released anything. [HTN-2]
class Borrowed {
 public:
  Borrowed(void(CHIPDOCK_CALL* release)(void*), void* context)
      : release_(release), context_(context) {}
  ~Borrowed() {
    if (armed_ && release_ != nullptr) release_(context_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  void arm() { armed_ = true; }

 private:
  void(CHIPDOCK_CALL* release_)(void*);
  void* context_;
  bool armed_ = false;
};

/// Throws unless it is a DLPack triple that tensors can have.
void check_dtype(chipdock_dtype dtype, const char* what);
/// Extents; -1 only with `unknown_allowed`.
runtime::Dims read_dims(int32_t rank, const int64_t* dims, bool unknown_allowed, const char* what);
/// Copies one attribute of the ABI's form.
void add_attribute(runtime::Attributes& attributes, const chipdock_attribute* given);
/// Attributes of a node or operator.
void add_attributes(runtime::Attributes& attributes, const chipdock_attribute* const* given,
                    uint32_t count);

/// The options behind `fallback` and `host` of descs, with HPL-3 checked.
runtime::Fallback read_fallback(int32_t fallback);
std::shared_ptr<runtime::Device> host_device(const chipdock_host_device& device,
                                             const chipdock_host_device* host);
/// Runs and hands the outputs over, all or none. [HPL-4] [HST-2]
void run_plan(runtime::Plan& plan, const std::vector<runtime::TensorRef>& inputs,
              const chipdock_host_stream* stream, uint64_t seed, uint32_t output_count,
              chipdock_host_tensor** outputs);

/// The libraries that a path names: itself, or what the manifests in it say. Throws UNAVAILABLE.
std::vector<std::string> libraries_of(const std::string& path);

}  // namespace chipdock::embed

#endif  // CHIPDOCK_RUNTIME_EMBED_EMBED_HPP_
