// SPDX-License-Identifier: Apache-2.0
// Every node starts in its best form; forms of equal score, and staying out for nodes that gain
// nothing, are tried as long as one of them saves a Reorder.
#include "exec/layout_regions.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace chipdock::runtime {
namespace {

constexpr int kOut = -1;  // the node works without the layout

class RegionFinder {
 public:
  RegionFinder(const IrGraph& graph, const std::vector<bool>& live, const LayoutOffers& offers)
      : graph_(graph),
        offers_(offers),
        chosen_(graph.nodes.size(), kOut),
        writer_(graph.values.size(), -1),
        readers_(graph.values.size()),
        read_plain_(graph.values.size(), false) {
    for (const int32_t output : graph.outputs) read_plain_[static_cast<size_t>(output)] = true;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!live[i]) continue;
      if (!offers[i].empty()) chosen_[i] = 0;
      const IrNode& node = *graph.nodes[i];
      for (const int32_t v : node.outputs) {
        if (v >= 0) writer_[static_cast<size_t>(v)] = static_cast<int32_t>(i);
      }
      for (const int32_t v : node.inputs) {
        if (v >= 0) readers_[static_cast<size_t>(v)].push_back(i);
      }
      for (const IrSubgraph& body : node.subgraphs) {
        for (const auto& [outer, inner] : body.captures) {
          read_plain_[static_cast<size_t>(outer)] = true;
        }
      }
    }
  }

  std::vector<LayoutRegion> find() {
    bool changed = true;  // ends: each change takes a Reorder away
    while (changed) {
      changed = false;
      for (size_t i = 0; i < chosen_.size(); ++i) changed = improve(i) || changed;
    }
    return regions();
  }

 private:
  const LayoutForm* form(size_t node) const {
    return chosen_[node] == kOut ? nullptr : &offers_[node][static_cast<size_t>(chosen_[node])];
  }

  bool writes_in_layout(int32_t value) const {
    const int32_t writer = writer_[static_cast<size_t>(value)];
    if (writer < 0) return false;
    const auto node = static_cast<size_t>(writer);
    return form(node) != nullptr &&
           touches(graph_.nodes[node]->outputs, form(node)->outputs, value);
  }
  bool reads_in_layout(size_t node, int32_t value) const {
    return form(node) != nullptr && touches(graph_.nodes[node]->inputs, form(node)->inputs, value);
  }
  bool reads_plain(size_t node, int32_t value) const {
    if (form(node) == nullptr) return true;
    std::vector<bool> others = form(node)->inputs;
    others.flip();
    return touches(graph_.nodes[node]->inputs, others, value);
  }
  static bool touches(const std::vector<int32_t>& values, const std::vector<bool>& chosen,
                      int32_t value) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (chosen[i] && values[i] == value) return true;
    }
    return false;
  }

  bool enters(int32_t value) const {
    const auto& readers = readers_[static_cast<size_t>(value)];
    return !writes_in_layout(value) &&
           std::any_of(readers.begin(), readers.end(),
                       [&](size_t node) { return reads_in_layout(node, value); });
  }
  bool leaves(int32_t value) const {
    const auto& readers = readers_[static_cast<size_t>(value)];
    return writes_in_layout(value) &&
           (read_plain_[static_cast<size_t>(value)] ||
            std::any_of(readers.begin(), readers.end(),
                        [&](size_t node) { return reads_plain(node, value); }));
  }

  /// Reorders of the values that a node reads and writes.
  size_t reorders(size_t node) const {
    std::set<int32_t> values(graph_.nodes[node]->inputs.begin(), graph_.nodes[node]->inputs.end());
    values.insert(graph_.nodes[node]->outputs.begin(), graph_.nodes[node]->outputs.end());
    values.erase(-1);
    return static_cast<size_t>(std::count_if(values.begin(), values.end(),
                                             [&](int32_t v) { return enters(v) || leaves(v); }));
  }

  bool improve(size_t node) {
    if (chosen_[node] == kOut) return false;
    const LayoutForm& now = *form(node);
    int best = chosen_[node];
    size_t fewest = reorders(node);
    const auto attempt = [&](int choice) {
      chosen_[node] = choice;
      const size_t needed = reorders(node);
      if (needed >= fewest) return;
      fewest = needed;
      best = choice;
    };
    const int before = best;
    for (size_t f = 0; f < offers_[node].size(); ++f) {
      if (offers_[node][f].score >= now.score) attempt(static_cast<int>(f));
    }
    if (!now.wants) attempt(kOut);
    chosen_[node] = best;
    return best != before;
  }

  std::vector<LayoutRegion> regions() {
    std::vector<size_t> parent(chosen_.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    const auto root = [&](size_t node) {
      while (parent[node] != node) node = parent[node] = parent[parent[node]];
      return node;
    };
    std::vector<int32_t> owner(graph_.values.size(),
                               -1);  // a node that has the value in the layout
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const auto value = static_cast<int32_t>(v);
      if (writes_in_layout(value)) owner[v] = writer_[v];
      for (const size_t node : readers_[v]) {
        if (!reads_in_layout(node, value)) continue;
        if (owner[v] < 0) owner[v] = static_cast<int32_t>(node);
        parent[root(node)] = root(static_cast<size_t>(owner[v]));
      }
    }
    std::vector<LayoutRegion> out;
    std::map<size_t, size_t> by_root;
    const auto region_of = [&](size_t node) -> LayoutRegion& {
      const auto [place, fresh] = by_root.try_emplace(root(node), out.size());
      if (fresh) out.emplace_back();
      return out[place->second];
    };
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (form(i) != nullptr) region_of(i).members.push_back({i, *form(i)});
    }
    for (size_t v = 0; v < owner.size(); ++v) {
      if (owner[v] < 0) continue;
      LayoutRegion& region = region_of(static_cast<size_t>(owner[v]));
      if (enters(static_cast<int32_t>(v))) region.entering.push_back(static_cast<int32_t>(v));
      if (leaves(static_cast<int32_t>(v))) region.leaving.push_back(static_cast<int32_t>(v));
    }
    return out;
  }

  const IrGraph& graph_;
  const LayoutOffers& offers_;
  std::vector<int> chosen_;  ///< By node: index of its form, or kOut.
  std::vector<int32_t> writer_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> read_plain_;  ///< By value: by more than nodes.
};

}  // namespace

bool LayoutRegion::pays() const {
  const auto gains = static_cast<size_t>(std::count_if(
      members.begin(), members.end(), [](const Member& member) { return member.form.wants; }));
  return gains >= 2 || (gains > 0 && gains >= entering.size() + leaving.size());
}

std::vector<LayoutRegion> find_layout_regions(const IrGraph& graph, const std::vector<bool>& live,
                                              const LayoutOffers& offers) {
  return RegionFinder(graph, live, offers).find();
}

}  // namespace chipdock::runtime
