// SPDX-License-Identifier: Apache-2.0
// Checks of the compile table.
#include "validate.hpp"

namespace chipdock::runtime {
namespace {

using Book = Validator;

Handle of_device(const void* device) {
  Handle entry;
  entry.device = device;
  return entry;
}

void caps(Book& book, chipdock_device* device, chipdock_compile_caps* out_caps, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  out_struct(book, out_caps, "out_caps");
}

void compile_source(Book& book, chipdock_device* device, const chipdock_source_desc* desc,
                    chipdock_module** out_module, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_module != nullptr, book, "BASE-8", "out_module is NULL");
  const auto given = in_struct(book, desc, "desc");
  want(given.dialect != nullptr && given.text != nullptr, book, "CMP-2", "dialect or text is NULL");
  no_flags(book, given.flags, 0, "flags");
  options_array(book, given.option_count, given.options);
  want(given.log != nullptr || given.log_size == 0, book, "CMP-3", "log is NULL and log_size ",
       given.log_size);
}
void compiled_source(Book& book, chipdock_device* device, const chipdock_source_desc*,
                     chipdock_module** out_module, chipdock_error*) {
  book.add(Kind::kModule, *out_module, of_device(device), "module");
}
void get_function(Book& book, chipdock_module* module, const char* name,
                  chipdock_function** out_function, chipdock_error*) {
  book.live(Kind::kModule, module, "module");
  want(name != nullptr && out_function != nullptr, book, "BASE-8", "name or out_function is NULL");
}
void got_function(Book& book, chipdock_module* module, const char*,
                  chipdock_function** out_function, chipdock_error*) {
  Handle entry = of_device(book.live(Kind::kModule, module, "module").device);
  entry.parent = module;
  book.add(Kind::kFunction, *out_function, entry, "function");
}
void function_info(Book& book, chipdock_function* function, chipdock_function_info* out_info,
                   chipdock_error*) {
  book.live(Kind::kFunction, function, "function");
  out_struct(book, out_info, "out_info");
}
void launch_function(Book& book, chipdock_function* function,
                     const chipdock_function_launch_desc* desc, chipdock_error*) {
  const void* device = book.live(Kind::kFunction, function, "function").device;
  const auto given = in_struct(book, desc, "desc");
  for (int i = 0; i < 3; ++i) {
    want(given.grid[i] > 0 && given.block[i] > 0, book, "CMP-4", "grid ", given.grid[i],
         " or block ", given.block[i], " of dim ", i, " is 0");
  }
  want(given.argument_count == 0 || given.arguments != nullptr, book, "BASE-6",
       "arguments is NULL");
  for (uint32_t i = 0; i < given.argument_count; ++i) {
    const auto argument = in_struct(book, given.arguments[i], "argument");
    if (argument.kind == CHIPDOCK_ARGUMENT_BUFFER && argument.memory != nullptr) {
      book.range(device, argument.memory, argument.offset, 0, "argument");
    }
    if (argument.kind != CHIPDOCK_ARGUMENT_SCALAR) continue;
    const uint64_t size = argument.size;
    want(size == 1 || size == 2 || size == 4 || size == 8, book, "CMP-4", "scalar argument ", i,
         " has ", size, " bytes, it has 1, 2, 4 or 8");
  }
  book.stream_or_null(given.stream, device);
}
void destroy_module(Book& book, chipdock_module* module, chipdock_error*) {
  book.end(Kind::kModule, module, "module");
  book.end_children(module);
}

void claim(Book& book, chipdock_device* device, const chipdock_model* model, int32_t* out_groups,
           chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  in_struct(book, model, "model");
  want(out_groups != nullptr, book, "BASE-8", "out_groups is NULL");
}
void claimed(Book& book, chipdock_device*, const chipdock_model* model, int32_t* out_groups,
             chipdock_error*) {
  for (uint32_t i = 0; i < model->node_count; ++i) {
    expect(out_groups[i] >= -1, book, "CMP-6", "put node ", i, " into group ", out_groups[i]);
  }
}
void compile(Book& book, chipdock_device* device, const chipdock_compile_desc* desc,
             chipdock_executable** out_executable, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_executable != nullptr, book, "BASE-8", "out_executable is NULL");
  const auto given = in_struct(book, desc, "desc");
  in_struct(book, given.model, "model");
  options_array(book, given.option_count, given.options);
  want(given.weight_count == 0 || given.weights != nullptr, book, "BASE-6", "weights is NULL");
}
void compiled(Book& book, chipdock_device* device, const chipdock_compile_desc*,
              chipdock_executable** out_executable, chipdock_error*) {
  book.add(Kind::kExecutable, *out_executable, of_device(device), "executable");
}
void io_info(Book& book, chipdock_executable* executable, chipdock_io_info* out_info,
             chipdock_error*) {
  book.live(Kind::kExecutable, executable, "executable");
  out_struct(book, out_info, "out_info");
}
void workspace_size(Book& book, chipdock_executable* executable, const chipdock_execute_desc* desc,
                    uint64_t* out_size, chipdock_error*) {
  book.live(Kind::kExecutable, executable, "executable");
  in_struct(book, desc, "desc");
  want(out_size != nullptr, book, "BASE-8", "out_size is NULL");
}
void execute(Book& book, chipdock_executable* executable, const chipdock_execute_desc* desc,
             chipdock_error*) {
  const void* device = book.live(Kind::kExecutable, executable, "executable").device;
  const auto given = in_struct(book, desc, "desc");
  want((given.input_count == 0 || given.inputs != nullptr) &&
           (given.output_count == 0 || given.outputs != nullptr),
       book, "BASE-6", "desc has a count without its array");
  for (uint32_t i = 0; i < given.input_count; ++i) {
    if (given.inputs[i] != nullptr) book.tensor(given.inputs[i], device, true, "input");
  }
  for (uint32_t o = 0; o < given.output_count; ++o) {
    if (given.outputs[o] != nullptr) book.tensor(given.outputs[o], device, true, "output");
  }
  if (given.workspace != nullptr) {
    book.range(device, given.workspace, given.workspace_offset, given.workspace_size, "workspace");
  }
  book.stream_or_null(given.stream, device);
}
void cancel(Book& book, chipdock_executable* executable, uint64_t, chipdock_error*) {
  book.live(Kind::kExecutable, executable, "executable");
}
void serialize(Book& book, chipdock_executable* executable, void* blob, uint64_t size,
               uint64_t* out_size, chipdock_error*) {
  book.live(Kind::kExecutable, executable, "executable");
  want(out_size != nullptr, book, "BASE-8", "out_size is NULL");
  want(blob != nullptr || size == 0, book, "BASE-8", "blob is NULL and size ", size);
}
void load(Book& book, chipdock_device* device, const void* blob, uint64_t,
          chipdock_executable** out_executable, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(blob != nullptr && out_executable != nullptr, book, "CMP-11",
       "blob or out_executable is NULL");
}
void loaded(Book& book, chipdock_device* device, const void*, uint64_t,
            chipdock_executable** out_executable, chipdock_error*) {
  book.add(Kind::kExecutable, *out_executable, of_device(device), "executable");
}
void check_compat(Book& book, chipdock_device* device, const void* blob, uint64_t,
                  chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(blob != nullptr, book, "CMP-11", "blob is NULL");
}
void destroy(Book& book, chipdock_executable* executable, chipdock_error*) {
  book.end(Kind::kExecutable, executable, "executable");
}

}  // namespace

void add_compile_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, compile_caps, caps);
  CHIPDOCK_BEFORE(checks, compile_compile_source, compile_source);
  CHIPDOCK_SUCCESS(checks, compile_compile_source, compiled_source);
  CHIPDOCK_BEFORE(checks, compile_get_function, get_function);
  CHIPDOCK_SUCCESS(checks, compile_get_function, got_function);
  CHIPDOCK_BEFORE(checks, compile_function_info, function_info);
  CHIPDOCK_BEFORE(checks, compile_launch_function, launch_function);
  CHIPDOCK_BEFORE(checks, compile_destroy_module, destroy_module);
  CHIPDOCK_BEFORE(checks, compile_claim, claim);
  CHIPDOCK_SUCCESS(checks, compile_claim, claimed);
  CHIPDOCK_BEFORE(checks, compile_compile, compile);
  CHIPDOCK_SUCCESS(checks, compile_compile, compiled);
  CHIPDOCK_BEFORE(checks, compile_io_info, io_info);
  CHIPDOCK_BEFORE(checks, compile_workspace_size, workspace_size);
  CHIPDOCK_BEFORE(checks, compile_execute, execute);
  CHIPDOCK_BEFORE(checks, compile_cancel, cancel);
  CHIPDOCK_BEFORE(checks, compile_serialize, serialize);
  CHIPDOCK_BEFORE(checks, compile_load, load);
  CHIPDOCK_SUCCESS(checks, compile_load, loaded);
  CHIPDOCK_BEFORE(checks, compile_check_compat, check_compat);
  CHIPDOCK_BEFORE(checks, compile_destroy, destroy);
}

}  // namespace chipdock::runtime
