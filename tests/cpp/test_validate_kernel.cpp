// SPDX-License-Identifier: Apache-2.0
// The validate layer over the tables kernel, graph, compile and ccl; the rest: test_validate.cpp.
#include "validate_fixture.hpp"

using namespace chipdock;
using namespace chipdock::runtime;
using check::desc_of;
using check::pretend_tables;
using check::Setup;

namespace {

const chipdock_alias kAlias = {sizeof(chipdock_alias), 0, 0};
const chipdock_alias* const kAliases[] = {&kAlias};
chipdock_kernel g_kernel;
const chipdock_kernel* const kKernels[] = {&g_kernel};

chipdock_status list_one(chipdock_device*, const chipdock_kernel* const** out, uint64_t* count,
                         chipdock_error*) {
  *out = kKernels;
  *count = 1;
  return CHIPDOCK_OK;
}
chipdock_status needs_32(chipdock_kernel_instance*, const chipdock_launch_desc*, uint64_t* out,
                         chipdock_error*) {
  *out = 32;
  return CHIPDOCK_OK;
}

/// A kernel instance over the pretended tables, and a launch that can be changed.
struct KernelSetup : Setup {
  static Tables kernel_tables() {
    Tables tables = pretend_tables();
    tables.kernel.list = list_one;
    tables.kernel.workspace_size = needs_32;
    return tables;
  }
  explicit KernelSetup(const Tables& plain = kernel_tables()) : Setup(plain) {
    g_kernel = {};
    g_kernel.struct_size = sizeof(g_kernel);
    g_kernel.name = g_kernel.op = "Relu";
    g_kernel.domain = "";
    g_kernel.alias_count = 1;
    g_kernel.aliases = kAliases;
    uint64_t count = 0;
    const chipdock_kernel* const* kernels = nullptr;
    tables.kernel.list(device, &kernels, &count, nullptr);
    node = desc_of<chipdock_node>();
    node.domain = "";
    node.op = "Relu";
    status = tables.kernel.create(device, &g_kernel, &node, &instance, &error);
    for (chipdock_tensor* tensor : {&input, &output}) {
      *tensor = desc_of<chipdock_tensor>();
      tensor->dtype = kit::kFloat32;
      tensor->rank = 1;
      tensor->shape = &extent;
      tensor->memory = memory;
    }
    output.offset = 64;
    desc = desc_of<chipdock_launch_desc>();
    desc.input_count = desc.output_count = 1;
    desc.inputs = &inputs;
    desc.outputs = &outputs;
    desc.workspace = alloc(32);
    desc.workspace_size = 32;
  }
  std::string launch() { return text(tables.kernel.launch(instance, &desc, &error)); }

  int64_t extent = 8;
  int64_t stride = 2;
  chipdock_node node{};
  chipdock_kernel_instance* instance = nullptr;
  chipdock_tensor input{}, output{};
  const chipdock_tensor* inputs = &input;
  const chipdock_tensor* outputs = &output;
  chipdock_launch_desc desc{};
};

}  // namespace

TEST(launch_of_a_correct_kernel_passes) {
  KernelSetup s;
  CHECK_EQ(s.launch(), "OK");
}

TEST(launch_checks_ranges_aliases_strides_and_workspace) {
  KernelSetup s;
  s.extent = 17;
  CHECK_HAS(s.launch(), "output range 64+68 passes the allocation's 128 bytes [MEM-3]");
  s.extent = -1;
  CHECK_HAS(s.launch(), "input has extent -1 in dim 0 [KRN-4]");
  s.extent = INT64_MAX;
  CHECK_HAS(s.launch(), "[MEM-3]");
  s.extent = 8;
  s.output.offset = 0;
  CHECK_EQ(s.launch(), "OK");
  g_kernel.alias_count = 0;
  CHECK_HAS(s.launch(),
            "output 0 overlaps input 0, which kernel Relu does not list as an alias [KRN-9]");
  s.output.offset = 64;
  s.input.strides = &s.stride;
  CHECK_HAS(s.launch(), "input 0 has strides, which the kernel does not accept [KRN-8]");
  g_kernel.flags = CHIPDOCK_KERNEL_ACCEPTS_STRIDES;
  CHECK_EQ(s.launch(), "OK");
  s.stride = -2;
  CHECK_HAS(s.launch(), "input starts before its allocation [MEM-3]");
  s.input.strides = nullptr;
  s.desc.workspace_size = 16;
  CHECK_HAS(s.launch(), "workspace has 16 bytes, Relu needs 32 [KRN-5]");
  s.desc.workspace_size = 33;
  CHECK_HAS(s.launch(), "workspace range 0+33 passes");
  s.desc.workspace_size = 32;
  g_kernel.host_inputs = 1;
  CHECK_HAS(s.launch(), "input 0 is in device memory, the kernel reads it on the host [KRN-7]");
}

TEST(launch_after_destroy_and_bad_modes_are_refused) {
  KernelSetup s;
  s.desc.math_mode = 9;
  CHECK_HAS(s.launch(), "math_mode is 9 [BASE-7]");
  s.desc.math_mode = 0;
  s.input.rank = 99;
  CHECK_HAS(s.launch(), "input has rank 99");
  s.input.rank = 1;
  s.input.memory = nullptr;
  CHECK_HAS(s.launch(), "has elements and neither memory nor host [KRN-10]");
  s.extent = 0;
  CHECK_EQ(s.launch(), "OK");
  CHECK_EQ(s.text(s.tables.kernel.destroy(s.instance, &s.error)), "OK");
  CHECK_HAS(s.launch(), "instance is a kernel instance that was already ended [KRN-3]");
}

namespace {

const uint32_t kLayout = 7;
const chipdock_layout_rule kReads = {sizeof(chipdock_layout_rule), 0, 1, 0, &kLayout};
const chipdock_layout_rule kWrites = {sizeof(chipdock_layout_rule), -1, 1, 0, &kLayout};
const chipdock_layout_rule* const kRules[] = {&kReads, &kWrites};

chipdock_status two_more(chipdock_device*, const chipdock_value* value, uint64_t* out,
                         chipdock_error* error) {
  if (value->layout != kLayout) return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "no such layout");
  *out = (static_cast<uint64_t>(value->dims[0]) + 2) * 4;
  return CHIPDOCK_OK;
}

/// An instance that reads and writes layout 7.
struct LayoutSetup : KernelSetup {
  static Tables layout_tables() {
    Tables tables = kernel_tables();
    tables.kernel.layout_size = two_more;
    return tables;
  }
  LayoutSetup() : KernelSetup(layout_tables()) {
    g_kernel.layout_rule_count = 2;
    g_kernel.layout_rules = kRules;
    value = desc_of<chipdock_value>();
    value.layout = kLayout;
    node.input_count = node.output_count = 1;
    node.inputs = node.outputs = &values;
    status = tables.kernel.create(device, &g_kernel, &node, &instance, &error);
    input.layout = output.layout = kLayout;
  }
  chipdock_value value{};
  const chipdock_value* values = &value;
};

}  // namespace

TEST(layouts_are_those_of_the_rules_and_of_the_instance) {
  LayoutSetup s;
  CHECK_EQ(s.launch(), "OK");
  s.output.layout = 0;
  CHECK_HAS(s.launch(), "output 0 is in layout 0, the instance was created for layout 7 [KRN-8]");
  s.output.layout = kLayout;
  s.input.layout = 9;
  CHECK_HAS(s.launch(), "input is in layout 9, which layout_size refuses: no such layout [KRN-8]");
  uint64_t size = 0;
  CHECK_HAS(s.text(s.tables.kernel.workspace_size(s.instance, &s.desc, &size, &s.error)),
            "input 0 is in layout 9, the instance was created for layout 7 [KRN-8]");
  s.input.layout = kLayout;
  s.input.strides = &s.stride;
  CHECK_HAS(s.launch(), "input is in layout 7 and has strides [KRN-8]");
  s.input.strides = nullptr;
  int32_t answer = 0;
  double score = 0;
  s.value.layout = 9;
  const std::string foreign = "input 0 is in layout 9, which kernel Relu does not list for it";
  CHECK_HAS(s.text(s.tables.kernel.supports(s.device, &g_kernel, &s.node, &answer, &s.error)),
            foreign);
  CHECK_HAS(s.text(s.tables.kernel.score(s.device, &g_kernel, &s.node, &score, &s.error)), foreign);
  CHECK_HAS(s.text(s.tables.kernel.create(s.device, &g_kernel, &s.node, &s.instance, &s.error)),
            foreign);
}

TEST(a_tensor_in_a_layout_has_the_bytes_that_the_plugin_says) {
  LayoutSetup s;
  s.extent = 14;  // 64 bytes with its padding
  CHECK_EQ(s.launch(), "OK");
  s.extent = 15;
  CHECK_HAS(s.launch(), "output range 64+68 passes the allocation's 128 bytes [MEM-3]");
  s.extent = 14;
  g_kernel.alias_count = 0;
  CHECK_EQ(s.launch(), "OK");
  s.output.offset = 60;
  CHECK_HAS(s.launch(), "output 0 overlaps input 0");
  s.extent = 0;
  s.input.memory = s.output.memory = nullptr;
  CHECK_EQ(s.launch(), "OK");
}

TEST(a_layout_without_bytes_is_the_plugins_fault) {
  Tables tables = pretend_tables();
  tables.kernel.layout_size = [](chipdock_device*, const chipdock_value*, uint64_t* out,
                                 chipdock_error*) {
    *out = 0;
    return chipdock_status{CHIPDOCK_OK};
  };
  Setup s(tables);
  auto value = desc_of<chipdock_value>();
  int64_t extent = 3;
  value.rank = 1;
  value.dims = &extent;
  value.layout = kLayout;
  uint64_t size = 1;
  CHECK_HAS(s.text(s.tables.kernel.layout_size(s.device, &value, &size, &s.error)),
            "returned 0 bytes for a tensor in layout 7 [BASE-8]");
  extent = 0;
  CHECK_EQ(s.text(s.tables.kernel.layout_size(s.device, &value, &size, &s.error)), "OK");
}

TEST(functions_end_with_their_module) {
  Setup s;
  auto source = desc_of<chipdock_source_desc>();
  source.dialect = source.text = "c";
  chipdock_module* module = nullptr;
  chipdock_function* function = nullptr;
  s.tables.compile.compile_source(s.device, &source, &module, &s.error);
  s.tables.compile.get_function(module, "f", &function, &s.error);
  auto launch = desc_of<chipdock_function_launch_desc>();
  CHECK_HAS(s.text(s.tables.compile.launch_function(function, &launch, &s.error)), "[CMP-4]");
  for (int i = 0; i < 3; ++i) launch.grid[i] = launch.block[i] = 1;
  CHECK_EQ(s.text(s.tables.compile.launch_function(function, &launch, &s.error)), "OK");
  s.tables.compile.destroy_module(module, nullptr);
  CHECK_HAS(s.text(s.tables.compile.launch_function(function, &launch, &s.error)), "[CMP-5]");
}

TEST(graphs_and_comms_are_tracked) {
  Setup s;
  chipdock_stream* stream = s.stream();
  chipdock_graph* graph = nullptr;
  CHECK_EQ(s.text(s.tables.graph.end_capture(stream, &graph, &s.error)), "OK");
  CHECK_EQ(s.text(s.tables.graph.destroy_graph(graph, &s.error)), "OK");
  CHECK_HAS(s.text(s.tables.graph.destroy_graph(graph, &s.error)), "already ended [GRA-11]");
  auto comm = desc_of<chipdock_ccl_comm_desc>();
  const auto store = desc_of<chipdock_ccl_store>();
  comm.store = &store;
  comm.rank_count = 1;
  comm.rank = 1;
  chipdock_ccl_comm* made = nullptr;
  CHECK_HAS(s.text(s.tables.ccl.init(s.device, &comm, &made, &s.error)),
            "rank 1 of 1 does not exist");
  comm.rank = 0;
  CHECK_EQ(s.text(s.tables.ccl.init(s.device, &comm, &made, &s.error)), "OK");
  CHECK_HAS(s.text(s.tables.ccl.abort(made, CHIPDOCK_BUSY, &s.error)), "[CCL-7]");
}
