// SPDX-License-Identifier: Apache-2.0
// The whole C++ test harness: TEST(name) { CHECK(...); CHECK_EQ(a, b); CHECK_THROWS(expr, Type); }.
// Each tests/cpp/test_*.cpp is one executable and includes this file once, since it defines main().
// `test_x NAME...` runs only tests whose name contains a NAME. Timeouts are ctest's work.
#ifndef CHIPDOCK_TESTS_CPP_CHECK_HPP_
#define CHIPDOCK_TESTS_CPP_CHECK_HPP_

#include <cstring>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace chipdock::check {

using Test = std::pair<const char*, void (*)()>;
inline std::vector<Test> g_tests;
inline int g_failures = 0;  // Of the test that runs now; checks are made on the test's thread only.

struct Registrar {
  Registrar(const char* name, void (*body)()) { g_tests.emplace_back(name, body); }
};

template <typename T, typename = void>
struct Printable : std::false_type {};
template <typename T>
struct Printable<T,
                 std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

template <typename T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (Printable<T>::value) {
    out << value;
  } else {
    out << "<" << sizeof(T) << "-byte object>";
  }
  return out.str();
}

inline void fail(const char* file, int line, const std::string& text) {
  ++g_failures;
  std::cerr << file << ":" << line << ": " << text << std::endl;
}

template <typename A, typename B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) fail(file, line, std::string(text) + ": got " + show(a) + " and " + show(b));
}

inline bool run_one(const Test& test) {
  g_failures = 0;
  try {
    test.second();
  } catch (const std::exception& caught) {
    fail(test.first, 0, std::string("uncaught exception: ") + caught.what());
  }
  std::cerr << (g_failures == 0 ? "ok   " : "FAIL ") << test.first << std::endl;
  return g_failures == 0;
}

}  // namespace chipdock::check

#define TEST(name)                                                         \
  static void name();                                                      \
  static const ::chipdock::check::Registrar name##_registrar(#name, name); \
  static void name()
#define CHECK(...) \
  ((__VA_ARGS__) ? (void)0 : ::chipdock::check::fail(__FILE__, __LINE__, "CHECK(" #__VA_ARGS__ ")"))
#define CHECK_EQ(a, b) ::chipdock::check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_THROWS(expression, type)                                              \
  try {                                                                             \
    (void)(expression);                                                             \
    ::chipdock::check::fail(__FILE__, __LINE__, #expression ": no " #type " came"); \
  } catch (const type&) {                                                           \
  }

int main(int argc, char** argv) {
  int passed = 0;
  int failed = 0;
  for (const auto& test : chipdock::check::g_tests) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strstr(test.first, argv[i]) != nullptr;
    if (wanted) ++(chipdock::check::run_one(test) ? passed : failed);
  }
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed == 0 && passed > 0 ? 0 : 1;
}

#endif  // CHIPDOCK_TESTS_CPP_CHECK_HPP_
