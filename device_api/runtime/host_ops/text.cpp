// SPDX-License-Identifier: Apache-2.0
// Operators on the text of strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch.
// Patterns are RE2's in ONNX; here std::regex (ECMAScript) reads them without backtracking, after
// RE2's (?P<name>, (?i), \A and \z are rewritten. Not read: \p{..} classes, \Q..\E, flags in the
// middle, and (?s) and (?U).
#include <algorithm>
#include <clocale>
#include <cwctype>
#include <regex>
#include <set>

#include "host_ops/host_op.hpp"
#include "host_ops/utf8.hpp"

namespace chipdock::runtime {
namespace {

/// Index of the element of `dims` that lies under element `flat` of the broadcast shape `whole`.
size_t under(size_t flat, const Dims& whole, const Dims& dims) {
  size_t at = 0;
  size_t stride = 1;
  for (size_t back = 1; back <= whole.size(); ++back) {
    const auto extent = static_cast<size_t>(whole[whole.size() - back]);
    const size_t index = flat % extent;
    flat /= extent;
    if (back > dims.size()) continue;
    const auto own = static_cast<size_t>(dims[dims.size() - back]);
    if (own != 1) at += index * stride;
    stride *= own;
  }
  return at;
}

void concat(HostCall& call) {
  const auto& left = call.strings(0);
  const auto& right = call.strings(1);
  const Dims dims = broadcast(call.input(0).dims, call.input(1).dims, "StringConcat");
  std::vector<std::string> out(static_cast<size_t>(checked_size(dims, "StringConcat")));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = left[under(i, dims, call.input(0).dims)] + right[under(i, dims, call.input(1).dims)];
  }
  call.set(0, make_strings(dims, std::move(out)));
}

/// Pieces between delimiters; with an empty one between runs of white space, ends dropped.
std::vector<std::string> pieces(const std::string& text, const std::string& delimiter,
                                int64_t most) {
  std::vector<std::string> out;
  if (!delimiter.empty()) {
    size_t from = 0;
    for (size_t to = text.find(delimiter); to != std::string::npos && most != 0; --most) {
      out.push_back(text.substr(from, to - from));
      from = to + delimiter.size();
      to = text.find(delimiter, from);
    }
    out.push_back(text.substr(from));
    return out;
  }
  const char* blanks = " \t\r\n\f\v";
  size_t from = text.find_first_not_of(blanks);
  while (from != std::string::npos) {
    if (most-- == 0) {
      out.push_back(text.substr(from, text.find_last_not_of(blanks) + 1 - from));
      return out;
    }
    const size_t to = std::min(text.find_first_of(blanks, from), text.size());
    out.push_back(text.substr(from, to - from));
    from = text.find_first_not_of(blanks, to);
  }
  return out;
}

void split(HostCall& call) {
  const std::string delimiter = call.attributes().text("delimiter", "");
  const int64_t most = call.attributes().integer("maxsplit", -1);
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> counts;
  size_t width = 0;
  for (const std::string& text : call.strings(0)) {
    rows.push_back(pieces(text, delimiter, most));
    counts.push_back(static_cast<int64_t>(rows.back().size()));
    width = std::max(width, rows.back().size());
  }
  std::vector<std::string> out;
  for (auto& row : rows) {
    row.resize(width);
    out.insert(out.end(), row.begin(), row.end());
  }
  Dims dims = call.input(0).dims;
  call.set(1, call.tensor(kit::kInt64, dims, counts.data()));
  dims.push_back(static_cast<int64_t>(width));
  call.set(0, make_strings(std::move(dims), std::move(out)));
}

/// Upper and lower case of a locale, without touching that of the process.
class Cases {
 public:
  explicit Cases(const std::string& name) {
    for (const std::string& choice : {name, name + ".UTF-8", std::string("C.UTF-8")}) {
      if (choice.empty()) continue;
      locale_ = newlocale(LC_CTYPE_MASK, choice.c_str(), nullptr);
      if (locale_ != nullptr) return;
    }
    locale_ = newlocale(LC_CTYPE_MASK, "C", nullptr);
  }
  ~Cases() {
    if (locale_ != nullptr) freelocale(locale_);
  }
  Cases(const Cases&) = delete;
  Cases& operator=(const Cases&) = delete;

  std::string changed(const std::string& text, const std::string& action) const {
    if (action == "NONE") return text;
    std::wstring wide = to_wide(text);
    for (wchar_t& c : wide) {
      const auto code = static_cast<wint_t>(c);
      c = static_cast<wchar_t>(action == "LOWER" ? towlower_l(code, locale_)
                                                 : towupper_l(code, locale_));
    }
    return to_utf8(wide);
  }

 private:
  locale_t locale_ = nullptr;
};

std::vector<std::string> texts(HostCall& call, const char* name) {
  const chipdock_attribute* found = call.attributes().find(name);
  if (found == nullptr) return {};
  return {found->texts, found->texts + found->count};
}

void normalize(HostCall& call) {
  const std::string action = call.attributes().text("case_change_action", "NONE");
  kit::require(action == "NONE" || action == "LOWER" || action == "UPPER", "case_change_action '",
               action, "', allowed are NONE, LOWER and UPPER");
  const bool sensitive = call.attributes().integer("is_case_sensitive", 0) != 0;
  const Cases cases(call.attributes().text("locale", "en_US"));
  const Dims& dims = call.input(0).dims;
  kit::require(dims.size() == 1 || (dims.size() == 2 && dims[0] == 1), "shape ", to_string(dims),
               ", allowed are [C] and [1,C]");
  std::set<std::string> stops;
  for (const std::string& word : texts(call, "stopwords"))
    stops.insert(sensitive ? word : cases.changed(word, "LOWER"));
  std::vector<std::string> out;
  for (const std::string& text : call.strings(0)) {
    if (stops.count(sensitive ? text : cases.changed(text, "LOWER")) == 0)
      out.push_back(cases.changed(text, action));
  }
  if (out.empty()) out.emplace_back();
  Dims shape = dims;
  shape.back() = static_cast<int64_t>(out.size());
  call.set(0, make_strings(std::move(shape), std::move(out)));
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::wregex compiled(std::string pattern) {
  auto flags = std::regex_constants::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;  // linear in the text, as RE2 promises
#endif
  const std::string given = pattern;
  if (pattern.rfind("(?i)", 0) == 0) {
    pattern.erase(0, 4);
    flags |= std::regex_constants::icase;
  }
  for (size_t at = pattern.find("(?P<"); at != std::string::npos; at = pattern.find("(?P<", at)) {
    const size_t end = pattern.find('>', at);
    if (end == std::string::npos) break;
    pattern.replace(at, end + 1 - at, "(");
  }
  replace_all(pattern, "\\A", "^");
  replace_all(pattern, "\\z", "$");
  try {
    return std::wregex(to_wide(pattern), flags);
  } catch (const std::regex_error& error) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, "pattern '", given, "' cannot be read: ", error.what());
  }
}

void full_match(HostCall& call) {
  const std::wregex pattern = compiled(call.attributes().text("pattern", ""));
  std::vector<uint8_t> out;
  for (const std::string& text : call.strings(0))
    out.push_back(std::regex_match(to_wide(text), pattern) ? 1 : 0);
  call.set(0, call.tensor(kit::kBool, call.input(0).dims, out.data()));
}

}  // namespace

std::vector<HostOp> text_host_ops() {
  return {{"StringConcat", 20, 0, concat},
          {"StringSplit", 20, 0, split},
          {"StringNormalizer", 10, 0, normalize},
          {"RegexFullMatch", 20, 0, full_match}};
}

}  // namespace chipdock::runtime
