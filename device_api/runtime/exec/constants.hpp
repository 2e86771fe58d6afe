// SPDX-License-Identifier: Apache-2.0
// Weights on devices, shared between loads: equal bytes (and equal packed forms) on one device are
// kept once, for as long as some plan uses them.
#ifndef CHIPDOCK_RUNTIME_EXEC_CONSTANTS_HPP_
#define CHIPDOCK_RUNTIME_EXEC_CONSTANTS_HPP_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "exec/graph_ir.hpp"
#include "exec/tensor_ref.hpp"

namespace chipdock::runtime {

/// 128 bits that name the content of a constant.
using ContentHash = std::array<uint64_t, 2>;
ContentHash hash_bytes(const void* data, uint64_t size);

/// A constant with its hash, computed once at load.
struct HashedConstant {
  IrConstant constant;
  ContentHash hash{};
};
HashedConstant hash_constant(IrConstant constant);

/// The shared store of one process. Entries die with their last user.
class WeightStore {
 public:
  static WeightStore& instance();

  /// The constant in memory of `device`. `make` fills a fresh buffer the first time.
  std::shared_ptr<Buffer> find_or_make(Device& device, const HashedConstant& constant,
                                       const std::string& layout, uint64_t size,
                                       const std::function<void(Buffer&)>& make);

 private:
  using Key = std::tuple<chipdock_device*, uint64_t, uint64_t, uint64_t, std::string>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<Buffer>> entries_;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_CONSTANTS_HPP_
