// SPDX-License-Identifier: Apache-2.0
#include "embed/embed.hpp"

namespace chipdock::embed {

void fill_error(chipdock_error* error, chipdock_status code, const char* text,
                const runtime::Error* cause) noexcept {
  chipdock_fail(error, code, text);
  if (error == nullptr || cause == nullptr || error->struct_size < offsetof(chipdock_error, text)) {
    return;
  }
  error->vendor_code = cause->vendor_code();
  error->scope = cause->scope();
  error->correlation_id = cause->correlation_id();
}

void check_dtype(chipdock_dtype dtype, const char* what) {
  const bool known = dtype.code <= CHIPDOCK_DTYPE_FLOAT4_E2M1FN && dtype.lanes == 1 &&
                     dtype.bits != 0 && dtype.bits <= 128 && (dtype.bits & (dtype.bits - 1)) == 0;
  const bool sixth =
      dtype.code == CHIPDOCK_DTYPE_FLOAT6_E2M3FN || dtype.code == CHIPDOCK_DTYPE_FLOAT6_E3M2FN;
  require(known || (sixth && dtype.bits == 6 && dtype.lanes == 1), what, " has the dtype (code ",
          int{dtype.code}, ", bits ", int{dtype.bits}, ", lanes ", dtype.lanes,
          "), which is none of base.h; lanes is 1");
}

runtime::Dims read_dims(int32_t rank, const int64_t* dims, bool unknown_allowed, const char* what) {
  require(rank >= 0 && rank <= CHIPDOCK_MAX_RANK, what, " has rank ", rank, ", allowed are 0 to ",
          CHIPDOCK_MAX_RANK);
  need_list(dims, static_cast<uint64_t>(rank), what);
  runtime::Dims out;
  for (int32_t i = 0; i < rank; ++i) {
    require(dims[i] >= 0 || (unknown_allowed && dims[i] == -1), what, " has the extent ", dims[i],
            " at dim ", i, ", allowed are 0 and more", unknown_allowed ? ", or -1" : "");
    out.push_back(dims[i]);
  }
  return out;
}

namespace {

void add_tensor_attribute(runtime::Attributes& attributes, const std::string& name,
                          const chipdock_tensor* given) {
  const chipdock_tensor tensor = take(given, "tensor of an attribute");
  check_dtype(tensor.dtype, "tensor of an attribute");
  runtime::Dims dims = read_dims(tensor.rank, tensor.shape, false, "tensor of an attribute");
  runtime::check_bytes(tensor.dtype, dims, "tensor of an attribute");
  const auto count = static_cast<uint64_t>(runtime::element_count(dims));
  const uint64_t bytes = kit::dtype_bytes(tensor.dtype, count);
  require(tensor.memory == nullptr && tensor.strides == nullptr && tensor.layout == 0,
          "the tensor of attribute '", name, "' must be dense and in host memory");
  need_list(static_cast<const char*>(tensor.host), bytes, "host of an attribute's tensor");
  attributes.add_tensor(name, tensor.dtype, std::move(dims), tensor.host, bytes);
}

}  // namespace

void add_attribute(runtime::Attributes& attributes, const chipdock_attribute* given) {
  const chipdock_attribute a = take(given, "attribute");
  const std::string name = &need(a.name, "name of an attribute");
  switch (a.kind) {
    case CHIPDOCK_ATTRIBUTE_FLOAT:
      return attributes.add_number(name, a.number);
    case CHIPDOCK_ATTRIBUTE_INT:
      return attributes.add_integer(name, a.integer);
    case CHIPDOCK_ATTRIBUTE_STRING:
      need_list(a.text, a.count, "text of an attribute");
      return attributes.add_text(name, std::string(a.count == 0 ? "" : a.text, a.count));
    case CHIPDOCK_ATTRIBUTE_TENSOR:
      return add_tensor_attribute(attributes, name, a.tensor);
    case CHIPDOCK_ATTRIBUTE_FLOATS:
      need_list(a.numbers, a.count, "numbers of an attribute");
      return attributes.add_numbers(name, {a.numbers, a.numbers + a.count});
    case CHIPDOCK_ATTRIBUTE_INTS:
      need_list(a.integers, a.count, "integers of an attribute");
      return attributes.add_integers(name, {a.integers, a.integers + a.count});
    case CHIPDOCK_ATTRIBUTE_STRINGS: {
      need_list(a.texts, a.count, "texts of an attribute");
      std::vector<std::string> texts;
      texts.reserve(a.count);
      for (uint64_t i = 0; i < a.count; ++i) texts.emplace_back(&need(a.texts[i], "texts entry"));
      return attributes.add_texts(name, texts);
    }
    default:
      runtime::raise(CHIPDOCK_UNSUPPORTED, "attribute '", name, "' has kind ", a.kind,
                     ", which is none of kernel.h");
  }
}

void add_attributes(runtime::Attributes& attributes, const chipdock_attribute* const* given,
                    uint32_t count) {
  need_list(given, count, "attributes");
  for (uint32_t i = 0; i < count; ++i) add_attribute(attributes, given[i]);
}

}  // namespace chipdock::embed
