// SPDX-License-Identifier: Apache-2.0
// Shape of Einsum: the extents of the labels that its equation keeps.
#include <map>

#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(c);
    }
  }
  return terms;
}

struct Extents {
  std::map<char, int64_t> labels;
  std::map<char, int> uses;
  Dims dots;  ///< Of "...", aligned to the last.
  bool has_dots = false;
};

void merge(int64_t& known, int64_t extent, const std::string& term) {
  kit::require(known == extent || known == 1 || extent == 1, "Einsum: term '", term,
               "' has the extent ", extent, " where another has ", known);
  if (known == 1) known = extent;
}

void read_term(const std::string& term, const Dims& dims, Extents& out) {
  const size_t dots = term.find("...");
  const size_t named = term.size() - (dots == std::string::npos ? 0 : 3);
  kit::require(dots == std::string::npos ? named == dims.size() : named <= dims.size(),
               "Einsum: term '", term, "' does not fit shape ", to_string(dims));
  size_t axis = 0;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      out.has_dots = true;
      const Dims rest(dims.begin() + static_cast<std::ptrdiff_t>(axis),
                      dims.begin() + static_cast<std::ptrdiff_t>(axis + dims.size() - named));
      out.dots = broadcast(out.dots, rest, "Einsum");
      axis += rest.size();
      i += 2;
      continue;
    }
    kit::require((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z'),
                 "Einsum: label '", term[i], "' in term '", term, "', allowed are letters");
    merge(out.labels.try_emplace(term[i], dims[axis]).first->second, dims[axis], term);
    ++out.uses[term[i]];
    ++axis;
  }
}

void einsum_shape(ShapeContext& context) {
  std::string text;
  for (const char c : context.node().text("equation", "")) {
    if (c != ' ') text.push_back(c);
  }
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  kit::require(terms.size() == context.input_count(), "Einsum: equation '", text, "' has ",
               terms.size(), " terms for ", context.input_count(), " inputs");
  Extents extents;
  for (size_t i = 0; i < terms.size(); ++i) read_term(terms[i], context.input(i).dims, extents);
  std::string result;
  if (arrow != std::string::npos) {
    result = text.substr(arrow + 2);
  } else {
    if (extents.has_dots) result = "...";
    for (const auto& [label, count] : extents.uses) {
      if (count == 1) result.push_back(label);
    }
  }
  Dims out;
  const size_t dots = result.find("...");
  for (size_t i = 0; i < result.size(); ++i) {
    if (i == dots) {
      out.insert(out.end(), extents.dots.begin(), extents.dots.end());
      i += 2;
      continue;
    }
    const auto found = extents.labels.find(result[i]);
    kit::require(found != extents.labels.end(), "Einsum: equation '", text, "' keeps '", result[i],
                 "', which no term has");
    out.push_back(found->second);
  }
  checked_size(out, "Einsum");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> einsum_ops() { return {{"Einsum", 12, 0, einsum_shape}}; }

}  // namespace chipdock::runtime
