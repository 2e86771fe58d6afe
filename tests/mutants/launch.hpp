// SPDX-License-Identifier: Apache-2.0
// Faults in what kernels compute: the base computes, then a fault changes the result. Works on any
// base, since tensors are read and written by its own copies.
#ifndef CHIPDOCK_TESTS_MUTANTS_LAUNCH_HPP_
#define CHIPDOCK_TESTS_MUTANTS_LAUNCH_HPP_

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "mutant.hpp"

namespace chipdock::mutants {

/// What create was told of the node that an instance computes.
struct Node {
  chipdock_device* device = nullptr;
  std::string domain;
  std::string op;
  std::map<std::string, std::vector<int64_t>> integers;  ///< INT and INTS attributes.

  /// True if the operator is one of "A B C".
  bool is_one_of(const std::string& names) const {
    return domain.empty() && (" " + names + " ").find(" " + op + " ") != std::string::npos;
  }
};

/// A tensor's elements in memory of ours.
struct Tensor {
  bool given = false;
  chipdock_dtype dtype{};
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;

  uint64_t count() const;
  bool is(int code, int bits) const { return given && dtype.code == code && dtype.bits == bits; }
  bool is_f32() const { return is(CHIPDOCK_DTYPE_FLOAT, 32); }
  template <class T>
  T get(uint64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void set(uint64_t i, T value) {
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  /// Puts change(element) in place of every element.
  template <class T, class Change>
  void each(Change change) {
    for (uint64_t i = 0; i < count(); ++i) set<T>(i, change(get<T>(i)));
  }
};

/// A launch that has ended: inputs as they were before it, outputs as it left them.
struct Launch {
  const Node& node;
  const chipdock_launch_desc& desc;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;

  /// True if inputs 0 and 1 have as many elements as output 0, so that i is i in all of them.
  bool is_plain_binary() const;
};

struct LaunchFault {
  bool (*wants)(const Node& node);
  void (*spoil)(Launch& launch);  ///< Changes the outputs; they are written back.
};

/// Lays a fault over create, destroy and launch. `fault` lives for ever.
void fault_launches(Tables& tables, const LaunchFault& fault);

/// Moves bytes between host memory and where a tensor lies. False: the base refused the range.
bool read_bytes(chipdock_device* device, const chipdock_tensor& from, uint64_t offset, void* to,
                uint64_t size);
bool write_bytes(chipdock_device* device, const chipdock_tensor& to, uint64_t offset,
                 const void* from, uint64_t size);

}  // namespace chipdock::mutants

#endif  // CHIPDOCK_TESTS_MUTANTS_LAUNCH_HPP_
