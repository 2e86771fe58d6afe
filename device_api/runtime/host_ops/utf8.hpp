// SPDX-License-Identifier: Apache-2.0
// UTF-8 to code points and back, for operators that look at characters. A byte that is no UTF-8
// stands for itself.
#ifndef CHIPDOCK_RUNTIME_HOST_OPS_UTF8_HPP_
#define CHIPDOCK_RUNTIME_HOST_OPS_UTF8_HPP_

#include <cstdint>
#include <string>
#include <string_view>

namespace chipdock::runtime {

inline std::wstring to_wide(std::string_view text) {
  static_assert(sizeof(wchar_t) == 4, "one wchar_t is one code point");
  std::wstring out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    bool good = i + length <= text.size() && (lead < 0x80 || length > 1);
    for (size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      code = code << 6 | (next & 0x3fu);
    }
    out.push_back(static_cast<wchar_t>(good ? code : lead));
    i += good ? length : 1;
  }
  return out;
}

inline std::string to_utf8(std::wstring_view text) {
  std::string out;
  out.reserve(text.size());
  for (const wchar_t wide : text) {
    const auto code = static_cast<uint32_t>(wide);
    const auto tail = [&out, code](int shift) {
      out.push_back(static_cast<char>(0x80 | (code >> shift & 0x3f)));
    };
    if (code < 0x80) {
      out.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      out.push_back(static_cast<char>(0xc0 | code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out.push_back(static_cast<char>(0xe0 | code >> 12));
      tail(6);
      tail(0);
    } else {
      out.push_back(static_cast<char>(0xf0 | code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }
  return out;
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_HOST_OPS_UTF8_HPP_
