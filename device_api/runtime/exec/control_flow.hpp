// SPDX-License-Identifier: Apache-2.0
// What If, Loop and Scan share: the options of a body's run, interrupts, and rows of tensors.
#ifndef CHIPDOCK_RUNTIME_EXEC_CONTROL_FLOW_HPP_
#define CHIPDOCK_RUNTIME_EXEC_CONTROL_FLOW_HPP_

#include <chrono>
#include <vector>

#include "exec/host_object.hpp"
#include "exec/plan.hpp"

namespace chipdock::runtime {

inline RunOptions body_options(const RunOptions& options) {
  RunOptions out = options;
  out.bound_outputs = nullptr;
  return out;
}

/// Lets an interrupt through from time to time; bodies alone would not, for each of their runs is
/// short.
class InterruptTimer {
 public:
  explicit InterruptTimer(const RunOptions& options) : options_(options) {}
  void trip() {
    if (options_.interrupt == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    (*options_.interrupt)();
    next_ = now + kInterval;
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  const RunOptions& options_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kInterval;
};

/// Without a trip the state is what came in: inputs, weights or scratch memory, which are not the
/// caller's.
void own_state(std::vector<TensorRef>& state, Device& device);

/// Elements [index, index + 1) along axis 0, without that axis; the memory is shared.
TensorRef take_row(const TensorRef& tensor, int64_t index);

/// Rows of equal shape one behind the other along a new axis 0. `output` of `body` says what they
/// are if there is none.
TensorRef stack_rows(Device& device, const std::vector<TensorRef>& rows, const Plan& body,
                     size_t output, const IrNode& node);

std::vector<TensorRef> run_scan(const Plan& plan, const Step& step,
                                const std::vector<const TensorRef*>& inputs,
                                const RunOptions& options);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_CONTROL_FLOW_HPP_
