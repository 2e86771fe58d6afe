// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>

#include "operation.hpp"
#include "stream.hpp"

namespace chipdock::runtime {
namespace {

constexpr size_t kLogBytes = 16 << 10;

/// The door's table. UNSUPPORTED names the device, since many have none.
const chipdock_compile_api& door(const Device& device) {
  const chipdock_compile_api& api = device.tables().compile;
  if (api.caps == nullptr || api.compile_source == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, device.name(), " compiles no source: plugin ",
          device.plugin()->name(), " has no compile_source");
  }
  return api;
}

std::string dialects_of(const chipdock_compile_caps& caps) {
  std::string text;
  for (uint32_t i = 0; i < caps.dialect_count; ++i) {
    text += (i == 0 ? "" : ", ") + std::string(caps.dialects[i]->name);
  }
  return text;
}

/// One launch as data. Like every operation it owns no memory: buffers know the stream they are used
/// on.
class FunctionOperation final : public Operation {
 public:
  FunctionOperation(std::shared_ptr<Module> module, chipdock_function* function, std::string name,
                    const FunctionLaunch& launch)
      : module_(std::move(module)), function_(function), name_(std::move(name)) {
    std::copy(launch.grid.begin(), launch.grid.end(), desc_.grid);
    std::copy(launch.block.begin(), launch.block.end(), desc_.block);
    desc_.local_bytes = launch.local_bytes;
    for (const FunctionArgument& from : launch.arguments) {
      chipdock_argument to = {sizeof(to), from.kind, nullptr, 0, from.bits, from.size};
      if (from.buffer != nullptr) {
        to.memory = from.buffer->memory();
        to.offset = from.buffer->offset() + from.offset;
      }
      arguments_.push_back(to);
    }
  }
  const char* name() const override { return name_.c_str(); }
  const char* category() const override { return "kernel"; }
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<FunctionOperation>(*this);
  }

  void issue(Issue& issue) override {
    chipdock_function_launch_desc desc = desc_;
    std::vector<const chipdock_argument*> pointers;
    for (const chipdock_argument& argument : arguments_) pointers.push_back(&argument);
    desc.struct_size = sizeof(desc);
    desc.argument_count = static_cast<uint32_t>(pointers.size());
    desc.arguments = pointers.data();
    desc.stream = issue.stream;
    desc.correlation_id = issue.correlation_id;
    ErrorRecord error;
    const chipdock_compile_api& api = issue.device.tables().compile;
    issue.device.check_call(api.launch_function(function_, &desc, &error), error,
                            ("compile.launch_function of " + name_).c_str());
    if (issue.stream != nullptr) issue.keep.push_back(module_);
  }

 private:
  std::shared_ptr<Module> module_;
  chipdock_function* function_;
  std::string name_;
  chipdock_function_launch_desc desc_{};
  std::vector<chipdock_argument> arguments_;
};

}  // namespace

chipdock_compile_caps source_caps(Device& device) {
  device.check_alive();
  const chipdock_compile_api& api = door(device);
  chipdock_compile_caps caps{};
  caps.struct_size = sizeof(caps);
  ErrorRecord error;
  device.check_call(api.caps(device.handle(), &caps, &error), error, "compile.caps");
  if ((caps.flags & CHIPDOCK_COMPILE_SOURCE) == 0) {
    raise(CHIPDOCK_UNSUPPORTED, device.name(), " compiles no source: plugin ",
          device.plugin()->name(), " has the graph door only");
  }
  return caps;
}

std::shared_ptr<Module> Module::compile(std::shared_ptr<Device> device, const SourceText& source) {
  const chipdock_compile_caps caps = source_caps(*device);
  const bool known =
      std::any_of(caps.dialects, caps.dialects + caps.dialect_count,
                  [&](const chipdock_dialect* dialect) { return source.dialect == dialect->name; });
  if (!known) {
    raise(CHIPDOCK_UNSUPPORTED, device->name(), " does not compile '", source.dialect,
          "'; it takes ", dialects_of(caps));
  }
  std::vector<chipdock_option> options;
  std::vector<const chipdock_option*> pointers;
  for (const auto& [key, value] : source.options) {
    options.push_back({sizeof(chipdock_option), 0, key.c_str(), value.c_str()});
  }
  for (const chipdock_option& option : options) pointers.push_back(&option);
  std::vector<char> log(kLogBytes, '\0');
  chipdock_source_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.dialect_version = source.dialect_version;
  desc.dialect = source.dialect.c_str();
  desc.prelude = source.prelude.empty() ? nullptr : source.prelude.c_str();
  desc.text = source.text.data();
  desc.text_size = source.text.size();
  desc.option_count = static_cast<uint32_t>(pointers.size());
  desc.options = pointers.data();
  desc.log = log.data();
  desc.log_size = log.size();
  desc.correlation_id = device->next_correlation_id();
  std::shared_ptr<Module> module(new Module());
  module->device_ = std::move(device);
  Device& owner = *module->device_;
  ErrorRecord error;
  const chipdock_status status =
      door(owner).compile_source(owner.handle(), &desc, &module->handle_, &error);
  log.back() = '\0';
  try {
    owner.check_call(status, error, "compile.compile_source");
  } catch (const Error& failure) {
    module->handle_ = nullptr;
    if (log[0] == '\0' || std::string(failure.what()).find(log.data()) != std::string::npos) throw;
    throw Error(failure.code(), std::string(failure.what()) + "\n" + log.data(),
                failure.vendor_code(), failure.scope(), failure.correlation_id());
  }
  if (module->handle_ == nullptr) {
    raise(CHIPDOCK_INTERNAL, owner.name(), " compile_source returned OK and no module [BASE-8]");
  }
  return module;
}

Module::~Module() {
  if (handle_ == nullptr || !device_->callable()) return;
  ErrorRecord error;
  device_->tables().compile.destroy_module(handle_, &error);
}

chipdock_function* Module::function(const std::string& name) {
  device_->check_alive();
  chipdock_function* function = nullptr;
  ErrorRecord error;
  const chipdock_compile_api& api = device_->tables().compile;
  device_->check_call(api.get_function(handle_, name.c_str(), &function, &error), error,
                      "compile.get_function");
  if (function == nullptr) {
    raise(CHIPDOCK_INTERNAL, device_->name(), " get_function returned OK and no function [BASE-8]");
  }
  return function;
}

chipdock_function_info function_info(const Module& module, chipdock_function* function) {
  Device& device = *module.device();
  device.check_alive();
  chipdock_function_info info{};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  device.check_call(device.tables().compile.function_info(function, &info, &error), error,
                    "compile.function_info");
  return info;
}

void launch_function(const std::shared_ptr<Module>& module, chipdock_function* function,
                     const std::string& name, const FunctionLaunch& launch,
                     const std::shared_ptr<Stream>& stream) {
  Device& device = *module->device();
  device.check_alive();
  if (stream != nullptr && stream->device().get() != &device) {
    raise(CHIPDOCK_INVALID_ARGUMENT, name, " was compiled for ", device.name(),
          ", the stream is one of ", stream->device()->name());
  }
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Buffer* buffer = launch.arguments[i].buffer.get();
    if (buffer == nullptr) continue;
    if (buffer->memory() == nullptr || buffer->device().get() != &device) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "argument ", i, " of ", name, " is not in memory of ",
            device.name(), "; copy it there first");
    }
  }
  FunctionOperation operation(module, function, name, launch);
  for (const FunctionArgument& argument : launch.arguments) {
    if (argument.buffer != nullptr) argument.buffer->used_on(stream);
  }
  device.submit(operation, stream.get());
}

}  // namespace chipdock::runtime
