// SPDX-License-Identifier: Apache-2.0
// One piece of work as data: how it is issued to a plugin, kept for a queue thread or a graph, and
// changed in a graph. On the caller's stack an operation borrows; keep() makes a copy that owns all
// but memory. [KRN-6] The emulations of fill, 2-D copy and copies between plugins are in
// transfer.cpp.
#ifndef CHIPDOCK_RUNTIME_OPERATION_HPP_
#define CHIPDOCK_RUNTIME_OPERATION_HPP_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "graph.hpp"

namespace chipdock::runtime {

/// How an operation reaches the plugin.
struct Issue {
  Device& device;
  chipdock_stream* stream;  ///< NULL: ended on return.
  uint64_t correlation_id;
  /// Of an emulated stream: true once the work should end early (abort). May be empty.
  std::function<bool()> cancelled;
  /// State that host functions are called with.
  chipdock_status state = CHIPDOCK_OK;
  /// Host memory that must live until the issued work has ended; in a capture, while the graph
  /// lives.
  std::vector<std::shared_ptr<void>> keep;
  bool captured = false;  ///< The plugin records: what is issued may run any number of times.
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual const char* name() const = 0;
  virtual const char* category() const = 0;  ///< As ProfileRecord.category.
  virtual uint64_t bytes() const { return 0; }
  /// Makes the plugin's calls. Throws Error.
  virtual void issue(Issue& issue) = 0;
  virtual std::shared_ptr<Operation> keep() const = 0;
  /// Called with the cause instead of being dropped when the stream has failed.
  virtual bool always() const { return false; }
  /// The caller needs the result on return: an emulated stream is waited for, a capture refuses.
  virtual bool synchronizes() const { return false; }
  virtual bool capturable() const { return !synchronizes(); }
  /// The plugin can record it; else a capture of the plugin becomes one of the host.
  virtual bool recordable(const Device&) const { return true; }
  /// Makes one change of a graph update. Throws INVALID_ARGUMENT or UNSUPPORTED and changes nothing
  /// then.
  virtual void change(const GraphChange& change);
};

class CopyOperation : public Operation {
 public:
  CopyOperation(const Place& source, const Place& target, uint64_t size)
      : source_(source), target_(target), size_(size) {}
  const char* name() const override { return "copy"; }
  const char* category() const override { return "copy"; }
  uint64_t bytes() const override { return size_; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<CopyOperation>(*this);
  }
  void change(const GraphChange& change) override;

 private:
  Place source_, target_;
  uint64_t size_;
};

class Copy2dOperation : public Operation {
 public:
  Copy2dOperation(const Place& source, uint64_t source_pitch, const Place& target,
                  uint64_t target_pitch, uint64_t row_bytes, uint64_t rows)
      : source_(source),
        target_(target),
        source_pitch_(source_pitch),
        target_pitch_(target_pitch),
        row_bytes_(row_bytes),
        rows_(rows) {}
  const char* name() const override { return "copy_2d"; }
  const char* category() const override { return "copy"; }
  uint64_t bytes() const override { return row_bytes_ * rows_; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<Copy2dOperation>(*this);
  }
  void change(const GraphChange& change) override;

 private:
  Place source_, target_;
  uint64_t source_pitch_, target_pitch_, row_bytes_, rows_;
};

class FillOperation : public Operation {
 public:
  /// Throws INVALID_ARGUMENT for a pattern size that the ABI does not have.
  FillOperation(const Place& target, uint64_t size, const void* pattern, uint32_t pattern_size);
  const char* name() const override { return "fill"; }
  const char* category() const override { return "fill"; }
  uint64_t bytes() const override { return size_; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<FillOperation>(*this);
  }
  void change(const GraphChange& change) override;

 private:
  Place target_;
  uint64_t size_;
  std::array<uint8_t, 16> pattern_{};
  uint32_t pattern_size_;
};

/// Borrows the desc; keep() gives a LaunchCopy (operation.cpp).
class LaunchOperation : public Operation {
 public:
  LaunchOperation(chipdock_kernel_instance* instance, chipdock_launch_desc& desc, const char* what)
      : instance_(instance), desc_(&desc), what_(what) {}
  const char* name() const override { return what_; }
  const char* category() const override { return "kernel"; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override;
  bool synchronizes() const override;

 protected:
  chipdock_kernel_instance* instance_;
  chipdock_launch_desc* desc_;
  const char* what_;
};

class HostFunctionOperation : public Operation {
 public:
  explicit HostFunctionOperation(std::function<void(chipdock_status)> function)
      : function_(std::make_shared<std::function<void(chipdock_status)>>(std::move(function))) {}
  const char* name() const override { return "host function"; }
  const char* category() const override { return "host"; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<HostFunctionOperation>(*this);
  }
  bool always() const override { return true; }
  bool recordable(const Device& device) const override {
    return device.tables().stream.host_function != nullptr;
  }

 private:
  std::shared_ptr<std::function<void(chipdock_status)>> function_;
};

class ValueOperation : public Operation {
 public:
  ValueOperation(int32_t operation, const Place& where, uint64_t value)
      : operation_(operation), where_(where), value_(value) {}
  const char* name() const override;
  const char* category() const override { return "wait"; }
  void issue(Issue& issue) override;
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<ValueOperation>(*this);
  }
  void change(const GraphChange& change) override;

 private:
  int32_t operation_;
  Place where_;
  uint64_t value_;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_OPERATION_HPP_
