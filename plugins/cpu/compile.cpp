// SPDX-License-Identifier: Apache-2.0
// The source door of the compile table; launches are function.cpp's. README.md says what the C
// signature of a function is. The graph door is not there.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler.hpp"
#include "device.hpp"
#include "function.hpp"

struct chipdock_module {
  chipdock_module(chipdock_device& device_, void* library_) : device(device_), library(library_) {
    device.others.fetch_add(1);
  }
  ~chipdock_module() {
    dlclose(library);
    device.others.fetch_sub(1);
  }
  chipdock_module(const chipdock_module&) = delete;
  chipdock_module& operator=(const chipdock_module&) = delete;

  chipdock_device& device;
  void* const library;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<chipdock_function>> functions;  // Guarded by mutex.
};

namespace chipdock::plugin::cpu {
namespace {

constexpr const char* kNoCompiler =
    "this machine has no C or C++ compiler in PATH (cc, gcc, clang, c++, g++, clang++); install "
    "one or "
    "set CC and CXX";

// The version is that of the language: C11, C++17.
constexpr chipdock_dialect kC = {sizeof(chipdock_dialect), CHIPDOCK_VERSION(11, 0), "c"};
constexpr chipdock_dialect kCxx = {sizeof(chipdock_dialect), CHIPDOCK_VERSION(17, 0), "c++"};
constexpr const chipdock_dialect* kBoth[] = {&kC, &kCxx};

chipdock_status caps(chipdock_device* device, chipdock_compile_caps* out_caps,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    const bool c = !find_compiler(Language::kC).empty();
    const bool cxx = !find_compiler(Language::kCxx).empty();
    if (!c && !cxx) kit::fail(CHIPDOCK_UNSUPPORTED, kNoCompiler);
    chipdock_compile_caps value{};
    value.flags = CHIPDOCK_COMPILE_SOURCE;
    value.warp_size = 1;
    value.max_block_threads = kMaxBlock;
    std::fill(std::begin(value.max_block), std::end(value.max_block), kMaxBlock);
    std::fill(std::begin(value.max_grid), std::end(value.max_grid), kMaxGrid);
    value.max_local_bytes = kMaxLocal;
    value.max_argument_bytes = kMaxArguments * sizeof(void*);
    value.dialects = c ? kBoth : kBoth + 1;
    value.dialect_count = (c ? 1u : 0u) + (cxx ? 1u : 0u);
    kit::write_struct(out_caps, value, "out_caps");
  });
}

std::vector<std::string> read_flags(const chipdock_source_desc& desc, Language language, Isa isa) {
  std::vector<std::string> flags = {language == Language::kCxx ? "-std=c++17" : "-std=c11"};
  if (isa == Isa::kAvx2) flags.emplace_back("-march=haswell");
  if (isa >= Isa::kAvx512) flags.emplace_back("-march=skylake-avx512");
  std::string level = "2";
  kit::require(desc.option_count == 0 || desc.options != nullptr, "options is NULL");
  for (uint32_t i = 0; i < desc.option_count; ++i) {
    const auto option =
        kit::read_struct(desc.options[i], CHIPDOCK_CPU_FIRST(chipdock_option, value), "option");
    kit::require(option.key != nullptr && option.value != nullptr, "option ", i,
                 " has a NULL key or value");
    const std::string key = option.key;
    const std::string value = option.value;
    if (key.compare(0, 7, "define:") == 0 && key.size() > 7) {
      flags.push_back("-D" + key.substr(7) + "=" + value);
    } else if (key == "optimize") {
      kit::require(value.size() == 1 && value[0] >= '0' && value[0] <= '3', "optimize=", value,
                   " is not 0 to 3");
      level = value;
    } else {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "option ", key,
                " is unknown; use define:NAME or optimize");
    }
  }
  flags.push_back("-O" + level);
  return flags;
}

Language read_dialect(const chipdock_source_desc& desc) {
  kit::require(desc.dialect != nullptr, "dialect is NULL");
  for (const chipdock_dialect* dialect : kBoth) {
    if (std::strcmp(desc.dialect, dialect->name) != 0) continue;
    const uint32_t version = desc.dialect_version;
    const bool taken =
        CHIPDOCK_VERSION_MAJOR(version) == CHIPDOCK_VERSION_MAJOR(dialect->version) &&
        version <= dialect->version;
    if (version != 0 && !taken) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "dialect ", desc.dialect, " ",
                CHIPDOCK_VERSION_MAJOR(version), ".", CHIPDOCK_VERSION_MINOR(version),
                "; this plugin takes ", CHIPDOCK_VERSION_MAJOR(dialect->version), ".0");
    }
    return dialect == &kC ? Language::kC : Language::kCxx;
  }
  kit::fail(CHIPDOCK_UNSUPPORTED, "dialect ", desc.dialect, " is unknown; use c or c++");
}

/// The line of a log that says most: the first with "error" in it, else the first.
std::string first_complaint(const std::string& log) {
  const size_t found = log.find("error");
  size_t begin = found == std::string::npos ? 0 : log.rfind('\n', found);
  begin = begin == std::string::npos ? 0 : begin + (log[begin] == '\n' ? 1 : 0);
  return log.empty() ? "no output" : log.substr(begin, log.find('\n', begin) - begin);
}

chipdock_status compile_source(chipdock_device* device, const chipdock_source_desc* given,
                               chipdock_module** out_module, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_module*& out = deref(out_module, "out_module");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_source_desc, correlation_id), "source desc");
    check_flags(desc.flags, 0, "source desc");
    kit::require(desc.text != nullptr, "text is NULL");
    const Language language = read_dialect(desc);
    const auto flags = read_flags(desc, language, device->settings.isa);
    const std::string compiler = find_compiler(language);
    if (compiler.empty())
      kit::fail(CHIPDOCK_UNSUPPORTED, "dialect ", desc.dialect, ": ", kNoCompiler);
    std::string text = desc.prelude != nullptr ? std::string(desc.prelude) + "\n" : "";
    text.append(desc.text, desc.text_size);
    const Compiled compiled = compile_text(language, compiler, text, flags);
    if (desc.log != nullptr && desc.log_size > 0) {
      const size_t size = std::min<size_t>(compiled.log.size(), desc.log_size - 1);
      std::memcpy(desc.log, compiled.log.data(), size);
      desc.log[size] = '\0';
    }
    kit::require(compiled.library != nullptr, compiler,
                 " refused the text: ", first_complaint(compiled.log));
    out = new chipdock_module(*device, compiled.library);
  });
}

chipdock_status get_function(chipdock_module* module, const char* name,
                             chipdock_function** out_function, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(module, "module");
    kit::require(name != nullptr, "name is NULL");
    chipdock_function*& out = deref(out_function, "out_function");
    const std::lock_guard<std::mutex> lock(module->mutex);
    auto& function = module->functions[name];
    if (function == nullptr) {
      void* symbol = dlsym(module->library, name);
      if (symbol == nullptr) module->functions.erase(name);
      kit::require(symbol != nullptr, "the module has no function ", name,
                   "; in C++ it has to be extern \"C\"");
      function = std::make_unique<chipdock_function>(
          chipdock_function{module->device, name, reinterpret_cast<Entry>(symbol)});
    }
    out = function.get();
  });
}

chipdock_status function_info(chipdock_function* function, chipdock_function_info* out_info,
                              chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(function, "function");
    chipdock_function_info value{};
    value.max_block_threads = kMaxBlock;
    value.block_multiple = 1;
    kit::write_struct(out_info, value, "out_info");
  });
}

chipdock_status destroy_module(chipdock_module* module, chipdock_error* error) {
  return kit::guard(error, [&] { delete &deref(module, "module"); });
}

}  // namespace

const chipdock_compile_api kCompileApi = {CHIPDOCK_TABLE(COMPILE, compile),
                                          caps,
                                          compile_source,
                                          get_function,
                                          function_info,
                                          launch_function,
                                          destroy_module,
                                          nullptr,  // The graph door, to the end of the table.
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr};

}  // namespace chipdock::plugin::cpu
