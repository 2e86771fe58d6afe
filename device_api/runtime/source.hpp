// SPDX-License-Identifier: Apache-2.0
// The source door of the compile table: text compiled for one device, its functions, their launches.
// Ordering on streams, emulated ones included, is the operation's work (operation.hpp).
#ifndef CHIPDOCK_RUNTIME_SOURCE_HPP_
#define CHIPDOCK_RUNTIME_SOURCE_HPP_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "device.hpp"

namespace chipdock::runtime {

/// What to compile.
struct SourceText {
  std::string dialect;
  uint32_t dialect_version = 0;  ///< CHIPDOCK_VERSION; 0 = the plugin's own.
  std::string prelude;
  std::string text;
  Options options;
};

/// One argument of a launch. A buffer may go when the launch is queued: its memory waits for it.
struct FunctionArgument {
  int32_t kind = CHIPDOCK_ARGUMENT_SCALAR;
  std::shared_ptr<Buffer> buffer;  ///< BUFFER; NULL is a null pointer.
  uint64_t offset = 0;             ///< BUFFER: from the start of the buffer.
  uint64_t bits = 0;               ///< SCALAR.
  uint64_t size = 0;               ///< SCALAR, LOCAL: bytes.
};

struct FunctionLaunch {
  std::array<uint64_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t local_bytes = 0;
  std::vector<FunctionArgument> arguments;
};

/// Compiled source. Its functions live as long. [CMP-5]
class Module : public std::enable_shared_from_this<Module> {
 public:
  /// Throws UNSUPPORTED if the plugin has no source door, INVALID_ARGUMENT with the compiler's own
  /// output if the text does not compile.
  static std::shared_ptr<Module> compile(std::shared_ptr<Device> device, const SourceText& source);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  /// Throws INVALID_ARGUMENT if there is none of that name.
  chipdock_function* function(const std::string& name);

 private:
  Module() = default;
  std::shared_ptr<Device> device_;
  chipdock_module* handle_ = nullptr;
};

/// What the compiler takes; throws UNSUPPORTED if there is no source door.
chipdock_compile_caps source_caps(Device& device);
chipdock_function_info function_info(const Module& module, chipdock_function* function);
/// Inline (`stream` NULL: ended on return), or queued. `name` is for errors and traces.
void launch_function(const std::shared_ptr<Module>& module, chipdock_function* function,
                     const std::string& name, const FunctionLaunch& launch,
                     const std::shared_ptr<Stream>& stream);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_SOURCE_HPP_
