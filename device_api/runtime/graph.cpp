// SPDX-License-Identifier: Apache-2.0
// The two kinds of graph. A host graph's body is immutable and shared with launches in flight, so
// an update changes a copy and a destroyed graph keeps its memory until its last launch has ended.
#include "graph.hpp"

#include <sstream>
#include <utility>

#include "graph_capture.hpp"
#include "operation.hpp"
#include "stream.hpp"

namespace chipdock::runtime {
namespace {

class ReplayOperation : public Operation {
 public:
  explicit ReplayOperation(std::shared_ptr<const GraphBody> body) : body_(std::move(body)) {}
  const char* name() const override { return "graph"; }
  const char* category() const override { return "graph"; }
  std::shared_ptr<Operation> keep() const override {
    return std::make_shared<ReplayOperation>(*this);
  }
  bool recordable(const Device& device) const override {
    for (const CapturedNode& node : body_->nodes) {
      if (!node.operation->recordable(device)) return false;
    }
    return true;
  }

  void issue(Issue& issue) override {
    const uint64_t launch_id = issue.correlation_id;
    for (size_t i = 0; i < body_->nodes.size(); ++i) {
      const CapturedNode& node = body_->nodes[i];
      // A node's error names the captured id; its text, the place in the graph. [GRA-10]
      issue.correlation_id = node.correlation_id;
      try {
        node.operation->issue(issue);
      } catch (const Error& error) {
        std::ostringstream text;
        text << error.what() << " (operation " << node.operation->name() << ", node " << i << " of "
             << body_->nodes.size() << " of a graph, correlation id " << node.correlation_id << ")";
        throw Error(error.code(), text.str(), error.vendor_code(), error.scope(),
                    node.correlation_id);
      }
    }
    issue.correlation_id = launch_id;
    if (issue.stream != nullptr) issue.keep.push_back(std::const_pointer_cast<GraphBody>(body_));
  }

 private:
  std::shared_ptr<const GraphBody> body_;
};

class HostGraph : public Graph {
 public:
  HostGraph(std::shared_ptr<Device> device, std::shared_ptr<GraphBody> body)
      : device_(std::move(device)), body_(std::move(body)) {}

  void launch(Stream* stream) override {
    ReplayOperation replay(body());
    device_->submit(replay, stream);
  }

  void update(const std::vector<GraphChange>& changes) override {
    auto changed = std::make_shared<GraphBody>(*body());
    for (const GraphChange& change : changes) {
      CapturedNode* found = nullptr;
      for (CapturedNode& node : changed->nodes) {
        if (node.correlation_id == change.target) found = &node;
      }
      if (found == nullptr) {
        raise(CHIPDOCK_INVALID_ARGUMENT, "graph.update: no captured operation has correlation id ",
              change.target);
      }
      found->operation = found->operation->keep();
      found->operation->change(change);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    body_ = std::move(changed);
  }

  std::vector<GraphNode> nodes() const override {
    std::vector<GraphNode> out;
    for (const CapturedNode& node : body()->nodes) {
      out.push_back({node.operation->name(), node.correlation_id});
    }
    return out;
  }
  size_t node_count() const override { return body()->nodes.size(); }
  bool native() const override { return false; }

 protected:
  std::shared_ptr<GraphBody> body() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return body_;
  }
  std::shared_ptr<Device> device_;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<GraphBody> body_;
};

/// Its body is kept for names, and for the memory that captured copies and functions use.
class NativeGraph : public HostGraph {
 public:
  NativeGraph(std::shared_ptr<Device> device, std::shared_ptr<GraphBody> body,
              chipdock_graph_exec* exec)
      : HostGraph(std::move(device), std::move(body)), exec_(exec) {}

  ~NativeGraph() override {
    if (!device_->callable()) return;
    ErrorRecord error;
    device_->tables().graph.destroy_exec(exec_, &error);
  }

  bool native() const override { return true; }

  void launch(Stream* stream) override {
    class Launch : public Operation {
     public:
      explicit Launch(chipdock_graph_exec* exec) : exec_(exec) {}
      const char* name() const override { return "graph"; }
      const char* category() const override { return "graph"; }
      bool capturable() const override { return false; }
      std::shared_ptr<Operation> keep() const override { return std::make_shared<Launch>(*this); }
      void issue(Issue& issue) override {
        chipdock_graph_launch_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.stream = issue.stream;
        desc.correlation_id = issue.correlation_id;
        ErrorRecord error;
        issue.device.check_call(issue.device.tables().graph.launch(exec_, &desc, &error), error,
                                "graph.launch");
      }

     private:
      chipdock_graph_exec* exec_;
    } launch(exec_);
    device_->submit(launch, stream);
  }

  void update(const std::vector<GraphChange>& changes) override {
    const auto slot = device_->tables().graph.update;
    if (slot == nullptr) {
      raise(CHIPDOCK_UNSUPPORTED, device_->name(), " cannot update a graph; capture it anew");
    }
    std::vector<chipdock_graph_change> given(changes.size());
    std::vector<const chipdock_graph_change*> pointers;
    for (size_t i = 0; i < changes.size(); ++i) {
      given[i].struct_size = sizeof(chipdock_graph_change);
      given[i].kind = changes[i].kind;
      given[i].target = changes[i].target;
      given[i].argument = changes[i].argument;
      given[i].scalar_size = changes[i].scalar_size;
      given[i].memory = changes[i].place.memory;
      given[i].offset = changes[i].place.offset;
      given[i].host = changes[i].place.host;
      given[i].value = changes[i].value;
      pointers.push_back(&given[i]);
    }
    chipdock_graph_update_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.change_count = static_cast<uint32_t>(pointers.size());
    desc.changes = pointers.data();
    desc.correlation_id = device_->next_correlation_id();
    ErrorRecord error;
    device_->check_call(slot(exec_, &desc, &error), error, "graph.update");
  }

 private:
  chipdock_graph_exec* exec_;
};

}  // namespace

std::shared_ptr<Graph> make_host_graph(std::shared_ptr<Device> device,
                                       std::shared_ptr<GraphBody> body) {
  return std::make_shared<HostGraph>(std::move(device), std::move(body));
}

std::shared_ptr<Graph> make_native_graph(std::shared_ptr<Device> device,
                                         std::shared_ptr<GraphBody> body, chipdock_graph* graph) {
  chipdock_instantiate_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.correlation_id = device->next_correlation_id();
  chipdock_graph_exec* exec = nullptr;
  ErrorRecord error;
  ErrorRecord ignored;
  const chipdock_graph_api& api = device->tables().graph;
  const chipdock_status status = api.instantiate(graph, &desc, &exec, &error);
  api.destroy_graph(graph, &ignored);  // An exec stands alone. [GRA-11]
  if (status == CHIPDOCK_UNSUPPORTED) return make_host_graph(std::move(device), std::move(body));
  device->check_call(status, error, "graph.instantiate");
  return std::make_shared<NativeGraph>(std::move(device), std::move(body), exec);
}

}  // namespace chipdock::runtime
