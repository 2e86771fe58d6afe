// SPDX-License-Identifier: Apache-2.0
// The source door of the CPU plugin, with the compiler of this machine and without one.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

// The signature that plugins/cpu/README.md describes.
constexpr const char* kPrelude = R"(
#include <stdint.h>
typedef struct {
  uint64_t grid[3], block[3], index[3];
  void* local;
  uint64_t local_bytes;
} Block;
#define EXTENT 4
)";
constexpr const char* kScale = R"(
void scale(void* const* a, const Block* b) {
  const float* x = a[0];
  float* y = a[1];
  const int64_t n = *(const int64_t*)a[2];
  const float factor = *(const float*)a[3];
  float* scratch = a[4];
  const int64_t begin = (int64_t)(b->index[0] + b->grid[0] * b->index[1]) * EXTENT;
  for (int64_t i = begin; i < begin + EXTENT && i < n; ++i) {
    scratch[i - begin] = x[i] * factor;
    y[i] = scratch[i - begin];
  }
}
)";

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_;
};

int entries(const std::string& folder) {
  int count = 0;
  DIR* opened = opendir(folder.c_str());
  while (const dirent* entry = readdir(opened)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(opened);
  return count;
}

bool has_dialect(Device& cpu, const char* name) {
  auto caps = sized<chipdock_compile_caps>();
  if (cpu.compile->caps(cpu.handle, &caps, &cpu.error) != CHIPDOCK_OK) return false;
  for (uint32_t i = 0; i < caps.dialect_count; ++i) {
    if (std::strcmp(caps.dialects[i]->name, name) == 0) return true;
  }
  return false;
}

chipdock_status build(Device& cpu, const char* dialect, const char* text, chipdock_module** out,
                      const Options& options = {}, std::vector<char>* log = nullptr) {
  const OptionList list(options);
  auto desc = sized<chipdock_source_desc>();
  desc.dialect = dialect;
  desc.prelude = kPrelude;
  desc.text = text;
  desc.text_size = std::strlen(text);
  desc.option_count = list.size();
  desc.options = list.data();
  if (log != nullptr) {
    desc.log = log->data();
    desc.log_size = log->size();
  }
  return cpu.compile->compile_source(cpu.handle, &desc, out, &cpu.error);
}

chipdock_argument buffer(chipdock_memory* block) {
  auto argument = sized<chipdock_argument>();
  argument.kind = CHIPDOCK_ARGUMENT_BUFFER;
  argument.memory = block;
  return argument;
}

template <class T>
chipdock_argument scalar(T value) {
  auto argument = sized<chipdock_argument>();
  argument.kind = CHIPDOCK_ARGUMENT_SCALAR;
  argument.size = sizeof(T);
  std::memcpy(&argument.bits, &value, sizeof(T));
  return argument;
}

struct Launch {
  explicit Launch(std::vector<chipdock_argument> given) : arguments(std::move(given)) {
    for (const auto& argument : arguments) pointers.push_back(&argument);
    for (auto& extent : desc.grid) extent = 1;
    for (auto& extent : desc.block) extent = 1;
    desc.argument_count = static_cast<uint32_t>(pointers.size());
    desc.arguments = pointers.data();
  }
  std::vector<chipdock_argument> arguments;
  std::vector<const chipdock_argument*> pointers;
  chipdock_function_launch_desc desc = sized<chipdock_function_launch_desc>();
};

TEST(a_function_runs_over_its_grid_inline_queued_and_replayed) {
  Device cpu(Options{{"threads", "2"}});
  if (!has_dialect(cpu, "c")) return;  // Covered by the test without a compiler.
  chipdock_module* module = nullptr;
  CHECK_EQ(build(cpu, "c", kScale, &module), CHIPDOCK_OK);
  chipdock_function* function = nullptr;
  CHECK_EQ(cpu.compile->get_function(module, "scale", &function, &cpu.error), CHIPDOCK_OK);
  chipdock_memory* x = cpu.upload(std::vector<float>(30, 2.0f));
  chipdock_memory* y = cpu.upload(std::vector<float>(32, 0.0f));
  auto local = sized<chipdock_argument>();
  local.kind = CHIPDOCK_ARGUMENT_LOCAL;
  local.size = 16;
  Launch launch({buffer(x), buffer(y), scalar(int64_t{30}), scalar(1.5f), local});
  launch.desc.grid[0] = 4;
  launch.desc.grid[1] = 2;
  launch.desc.correlation_id = 8;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error), CHIPDOCK_OK);
  auto got = cpu.download<float>(y, 32);
  CHECK(got[0] == 3.0f && got[29] == 3.0f && got[30] == 0.0f);

  chipdock_stream* queue = cpu.make_stream();
  const auto capture = sized<chipdock_capture_desc>();
  CHECK_EQ(cpu.graph->begin_capture(queue, &capture, &cpu.error), CHIPDOCK_OK);
  launch.desc.stream = queue;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error), CHIPDOCK_OK);
  chipdock_graph* graph = nullptr;
  chipdock_graph_exec* exec = nullptr;
  CHECK_EQ(cpu.graph->end_capture(queue, &graph, &cpu.error), CHIPDOCK_OK);
  const auto instantiate = sized<chipdock_instantiate_desc>();
  CHECK_EQ(cpu.graph->instantiate(graph, &instantiate, &exec, &cpu.error), CHIPDOCK_OK);
  auto change = sized<chipdock_graph_change>();
  change.kind = CHIPDOCK_GRAPH_CHANGE_SCALAR;
  change.target = 8;
  change.argument = 3;
  change.scalar_size = 4;
  const float factor = 5.0f;
  std::memcpy(&change.value, &factor, 4);
  const chipdock_graph_change* changes[] = {&change};
  auto update = sized<chipdock_graph_update_desc>();
  update.change_count = 1;
  update.changes = changes;
  CHECK_EQ(cpu.graph->update(exec, &update, &cpu.error), CHIPDOCK_OK);
  auto replay = sized<chipdock_graph_launch_desc>();
  replay.stream = queue;
  CHECK_EQ(cpu.graph->launch(exec, &replay, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.download<float>(y, 32)[29], 10.0f);
  CHECK_EQ(cpu.graph->destroy_exec(exec, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.graph->destroy_graph(graph, &cpu.error), CHIPDOCK_OK);

  launch.desc.stream = nullptr;
  launch.desc.grid[2] = 0;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  launch.desc.grid[2] = 1;
  launch.arguments[3].size = 3;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  launch.arguments[3].kind = 9;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error), CHIPDOCK_UNSUPPORTED);
  cpu.destroy(queue);
  cpu.free(x);
  cpu.free(y);
  CHECK_EQ(cpu.compile->destroy_module(module, &cpu.error), CHIPDOCK_OK);
}

TEST(a_text_that_does_not_compile_leaves_its_reason_and_nothing_else) {
  Device cpu;
  if (!has_dialect(cpu, "c")) return;
  char folder[] = "/tmp/chipdock_test_XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  const Variable temporary("TMPDIR", folder);
  chipdock_module* module = nullptr;
  std::vector<char> log(200, 'x');
  CHECK_EQ(build(cpu, "c", "int f( { return undefined_name; }", &module, {}, &log),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK(module == nullptr && cpu.text_has("error"));
  CHECK(std::memchr(log.data(), '\0', log.size()) != nullptr);
  CHECK(std::string(log.data()).find("source.c") != std::string::npos);
  CHECK_EQ(entries(folder), 0);
  CHECK_EQ(build(cpu, "c", "int g(void) { return 1; }", &module, {{"optimize", "0"}}), CHIPDOCK_OK);
  CHECK_EQ(entries(folder), 0);
  chipdock_function* function = nullptr;
  CHECK_EQ(cpu.compile->get_function(module, "h", &function, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.compile->destroy_module(module, &cpu.error), CHIPDOCK_OK);
  rmdir(folder);
}

TEST(dialects_and_options_are_checked) {
  Device cpu;
  if (!has_dialect(cpu, "c")) return;
  chipdock_module* module = nullptr;
  CHECK_EQ(build(cpu, "opencl-c", "", &module), CHIPDOCK_UNSUPPORTED);
  CHECK_EQ(build(cpu, "c", "", &module, {{"fast-math", "1"}}), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(build(cpu, "c", "", &module, {{"optimize", "9"}}), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(module == nullptr);
}

TEST(cxx_takes_defines_and_needs_c_names) {
  Device cpu;
  if (!has_dialect(cpu, "c++")) return;
  chipdock_module* module = nullptr;
  const char* text =
      "extern \"C\" void set(void* const* a, const Block* b) {\n"
      "  static_cast<int*>(a[0])[b->index[0]] = VALUE + static_cast<int>(b->local_bytes);\n"
      "}\n";
  CHECK_EQ(build(cpu, "c++", text, &module, {{"define:VALUE", "40"}}), CHIPDOCK_OK);
  chipdock_function* function = nullptr;
  CHECK_EQ(cpu.compile->get_function(module, "set", &function, &cpu.error), CHIPDOCK_OK);
  chipdock_memory* block = cpu.upload(std::vector<int>(3, 0));
  Launch launch({buffer(block)});
  launch.desc.grid[0] = 3;
  launch.desc.local_bytes = 2;
  CHECK_EQ(cpu.compile->launch_function(function, &launch.desc, &cpu.error), CHIPDOCK_OK);
  CHECK(cpu.download<int>(block, 3) == (std::vector<int>{42, 42, 42}));
  cpu.free(block);
  CHECK_EQ(cpu.compile->destroy_module(module, &cpu.error), CHIPDOCK_OK);
}

TEST(without_a_compiler_the_door_is_unsupported_and_says_why) {
  Device cpu;
  const Variable path("PATH", "/nonexistent");
  const Variable cc("CC", "");
  const Variable cxx("CXX", "");
  auto caps = sized<chipdock_compile_caps>();
  CHECK_EQ(cpu.compile->caps(cpu.handle, &caps, &cpu.error), CHIPDOCK_UNSUPPORTED);
  CHECK(cpu.text_has("compiler"));
  chipdock_module* module = nullptr;
  CHECK_EQ(build(cpu, "c", kScale, &module), CHIPDOCK_UNSUPPORTED);
  CHECK(cpu.text_has("PATH"));
}

}  // namespace
