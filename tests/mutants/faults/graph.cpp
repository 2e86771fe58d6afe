// SPDX-License-Identifier: Apache-2.0
// Captures that run, graphs that run too seldom or with old values, updates that half happen.
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Exec = chipdock_graph_exec;
using Launch = chipdock_graph_launch_desc;

std::mutex g_mutex;

bool absent() { return base().graph.begin_capture == nullptr; }

bool captured(chipdock_stream* stream) {
  int32_t state = CHIPDOCK_CAPTURE_NONE;
  if (stream == nullptr || base().graph.capture_state == nullptr) return false;
  base().graph.capture_state(stream, &state, nullptr);
  return state == CHIPDOCK_CAPTURE_ACTIVE;
}

void runs_eagerly(Tables& tables) {
  if (absent()) return;
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* desc,
                          chipdock_error* error) {
    if (desc != nullptr && desc->struct_size == sizeof(*desc) && captured(desc->stream)) {
      chipdock_copy_desc now = *desc;
      now.stream = nullptr;
      base().memory.copy(device, &now, nullptr);
    }
    return base().memory.copy(device, desc, error);
  };
}

/// Host memory is read when captured; later launches get the old bytes.
void host_bytes_kept(Tables& tables) {
  if (absent()) return;
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* given,
                          chipdock_error* error) {
    chipdock_copy_desc room{};
    chipdock_place source{};
    const auto* desc = edited(given, room, [&](chipdock_copy_desc& d) {
      if (!captured(d.stream) || d.source == nullptr || d.source->host == nullptr) return;
      source = *d.source;
      source.host = std::memcpy(::operator new(d.size), d.source->host, d.size);
      d.source = &source;
    });
    return base().memory.copy(device, desc, error);
  };
}

void launches_once(Tables& tables) {
  if (absent()) return;
  static auto& launched = *new std::set<Exec*>;
  tables.graph.launch = [](Exec* exec, const Launch* desc, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      if (exec != nullptr && desc != nullptr && !launched.insert(exec).second) {
        return CHIPDOCK_OK + 0;
      }
    }
    return base().graph.launch(exec, desc, error);
  };
  tables.graph.destroy_exec = [](Exec* exec, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      launched.erase(exec);
    }
    return base().graph.destroy_exec(exec, error);
  };
}

void update_ignored(Tables& tables) {
  if (base().graph.update == nullptr) return;
  tables.graph.update = [](Exec* exec, const chipdock_graph_update_desc* desc,
                           chipdock_error* error) {
    if (exec == nullptr || desc == nullptr) return base().graph.update(exec, desc, error);
    return CHIPDOCK_OK + 0;
  };
}

/// One change after the other: those before a bad one stay.
void update_in_parts(Tables& tables) {
  if (base().graph.update == nullptr) return;
  tables.graph.update = [](Exec* exec, const chipdock_graph_update_desc* desc,
                           chipdock_error* error) {
    if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->change_count < 2) {
      return base().graph.update(exec, desc, error);
    }
    chipdock_graph_update_desc part = *desc;
    part.change_count = 1;
    for (uint32_t i = 0; i < desc->change_count; ++i) {
      part.changes = desc->changes + i;
      const chipdock_status status = base().graph.update(exec, &part, error);
      if (status != CHIPDOCK_OK) return status;
    }
    return CHIPDOCK_OK + 0;
  };
}

/// A sync of a captured stream is waved through.
void sync_does_not_doom(Tables& tables) {
  if (absent()) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
    if (captured(stream)) return CHIPDOCK_OK + 0;
    return base().stream.sync(stream, timeout_ns, error);
  };
}

/// A captured host function runs in the first launch only.
void host_function_once(Tables& tables) {
  if (absent() || base().stream.host_function == nullptr) return;
  struct Wrapped {
    chipdock_host_function_desc desc;
    bool ran = false;
  };
  tables.stream.host_function =
      [](chipdock_stream* stream, const chipdock_host_function_desc* given, chipdock_error* error) {
        chipdock_host_function_desc room{};
        const auto* desc = edited(given, room, [&](chipdock_host_function_desc& d) {
          if (!captured(stream) || d.function == nullptr) return;
          d.context = new Wrapped{d};
          d.function = [](void* context, chipdock_status state) {
            auto* wrapped = static_cast<Wrapped*>(context);
            if (!wrapped->ran) wrapped->desc.function(wrapped->desc.context, state);
            wrapped->ran = true;
          };
        });
        return base().stream.host_function(stream, desc, error);
      };
}

void dies_with_graph(Tables& tables) {
  if (absent()) return;
  static auto& graphs = *new std::map<Exec*, chipdock_graph*>;
  tables.graph.instantiate = [](chipdock_graph* graph, const chipdock_instantiate_desc* desc,
                                Exec** out, chipdock_error* error) {
    const chipdock_status status = base().graph.instantiate(graph, desc, out, error);
    const std::lock_guard lock(g_mutex);
    if (status == CHIPDOCK_OK) graphs[*out] = graph;
    return status;
  };
  tables.graph.destroy_graph = [](chipdock_graph* graph, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      for (auto& [exec, owner] : graphs) owner = owner == graph ? nullptr : owner;
    }
    return base().graph.destroy_graph(graph, error);
  };
  tables.graph.launch = [](Exec* exec, const Launch* desc, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      const auto found = graphs.find(exec);
      if (found != graphs.end() && found->second == nullptr) {
        return chipdock_fail(error, CHIPDOCK_FAILED_PRECONDITION,
                             "FAILED_PRECONDITION: the graph is gone");
      }
    }
    return base().graph.launch(exec, desc, error);
  };
}

void state_none(Tables& tables) {
  if (base().graph.capture_state == nullptr) return;
  tables.graph.capture_state = [](chipdock_stream* stream, int32_t* out, chipdock_error* error) {
    const chipdock_status status = base().graph.capture_state(stream, out, error);
    if (status == CHIPDOCK_OK) *out = CHIPDOCK_CAPTURE_NONE;
    return status;
  };
}

void info_counts_one_more(Tables& tables) {
  if (base().graph.info == nullptr) return;
  tables.graph.info = [](chipdock_graph* graph, chipdock_graph_info* out, chipdock_error* error) {
    const chipdock_status status = base().graph.info(graph, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) out->node_count += 1;
    return status;
  };
}

/// A launch on a stream is over when the call returns, whatever the stream waits for.
void launch_out_of_order(Tables& tables) {
  if (absent()) return;
  tables.graph.launch = [](Exec* exec, const Launch* given, chipdock_error* error) {
    Launch room{};
    const auto* desc = edited(given, room, [](Launch& d) { d.stream = nullptr; });
    return base().graph.launch(exec, desc, error);
  };
}

void exec_leaks(Tables& tables) {
  if (absent()) return;
  tables.graph.destroy_exec = [](Exec* exec, chipdock_error* error) {
    return exec == nullptr ? base().graph.destroy_exec(exec, error) : CHIPDOCK_OK + 0;
  };
}

constexpr Mutant kMutants[] = {
    {"capture_runs_eagerly", &runs_eagerly},
    {"capture_keeps_host_bytes", &host_bytes_kept},
    {"capture_sync_waved_through", &sync_does_not_doom},
    {"capture_state_none", &state_none},
    {"graph_launches_once", &launches_once},
    {"graph_launch_out_of_order", &launch_out_of_order},
    {"graph_update_ignored", &update_ignored},
    {"graph_update_in_parts", &update_in_parts},
    {"graph_host_function_once", &host_function_once},
    {"graph_exec_dies_with_graph", &dies_with_graph},
    {"graph_info_off", &info_counts_one_more},
    {"graph_exec_leaks", &exec_leaks},
};

}  // namespace

MutantSpan graph_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
