// SPDX-License-Identifier: Apache-2.0
// The only file that sees oneDNN's headers; see onednn.hpp.
#include "onednn.hpp"

#include "isa.hpp"
#include "kernel.hpp"

#if CHIPDOCK_HAVE_ONEDNN
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <list>
#include <mutex>
#include <unordered_map>
#endif

namespace chipdock::plugin::cpu::onednn {

#if CHIPDOCK_HAVE_ONEDNN
namespace {

using dnnl::memory;

/// Holds the calling thread's OpenMP team at one thread: a team would wait for busy neighbours.
/// What the thread had is put back, since the caller may be a user's own thread.
class SingleThread {
 public:
  SingleThread() : before_(functions().get != nullptr ? functions().get() : 1) {
    if (before_ != 1) functions().set(1);
  }
  ~SingleThread() {
    if (before_ != 1) functions().set(before_);
  }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  struct Functions {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  static const Functions& functions() {
    static const Functions found = [] {
      Functions f;
      // oneDNN brought it in; the plugin itself does not link it.
      if (void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
        f.get = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
        f.set = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
        if (f.set == nullptr) f.get = nullptr;
      }
      return f;
    }();
    return found;
  }
  int before_;
};

/// The level in force, without what only products of bytes know.
Isa float_isa() { return std::min(active_isa(), Isa::kAvx512); }

/// The ISA that oneDNN is held to: the one in force at first use. oneDNN cannot change it later.
Isa fixed_isa() {
  static const Isa isa = [] {
    const Isa active = float_isa();
    if (active == Isa::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return active;
  }();
  return isa;
}

/// The engine lives as long as the process: primitives of any device may outlast a device.
const dnnl::engine& engine() {
  static const auto* const made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}

memory::desc plain(int64_t channels, int64_t height, int64_t width, int64_t plane, int64_t row) {
  return memory::desc({1, channels, height, width}, memory::data_type::f32,
                      memory::dims{channels * plane, plane, row, 1});
}

dnnl::convolution_forward::primitive_desc describe(const ConvShape& s,
                                                   const memory::desc& filters) {
  const auto any = [](const memory::dims& dims) {
    return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  };
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.residual != 0) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const memory::dims strides = {s.stride[0], s.stride[1]};
  const memory::dims dilations = {s.dilation[0] - 1, s.dilation[1] - 1};
  const memory::dims begin = {s.pad[0], s.pad[1]};
  const memory::dims end = {s.pad_end[0], s.pad_end[1]};
  const auto x = any({1, s.in_channels, s.in_height, s.in_width});
  const auto y = any({1, s.out_channels, s.out_height, s.out_width});
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  using Descriptor = dnnl::convolution_forward::primitive_desc;
  if (s.bias == 0) {
    return Descriptor(engine(), kind, algorithm, x, filters, y, strides, dilations, begin, end,
                      attributes);
  }
  const memory::desc bias({s.out_channels}, memory::data_type::f32, memory::format_tag::x);
  return Descriptor(engine(), kind, algorithm, x, filters, bias, y, strides, dilations, begin, end,
                    attributes);
}

/// The form of the filters is asked for once, at the size this is used for most, so that every
/// shape shares it.
memory::desc filter_desc(const ConvShape& shape) {
  ConvShape s = shape;
  for (int i = 0; i < 2; ++i) s.pad[i] = s.pad_end[i] = 0;
  const bool pointwise = s.kernel[0] == 1 && s.kernel[1] == 1;
  s.out_height = pointwise ? 4 : 56;
  s.out_width = pointwise ? 7 : 112;
  s.in_height = (s.out_height - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
  s.in_width = (s.out_width - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  s.bias = s.residual = 0;
  const memory::desc any({s.out_channels, s.in_channels, s.kernel[0], s.kernel[1]},
                         memory::data_type::f32, memory::format_tag::any);
  return describe(s, any).weights_desc();
}

/// Filters in the shared form, unless oneDNN has only plain loops for it at this shape; they are
/// then turned into the form it wants in each run.
dnnl::convolution_forward::primitive_desc choose(const ConvShape& s) {
  auto found = describe(s, filter_desc(s));
  if (std::strstr(found.impl_info_str(), "ref") == nullptr) return found;
  const memory::desc any({s.out_channels, s.in_channels, s.kernel[0], s.kernel[1]},
                         memory::data_type::f32, memory::format_tag::any);
  return describe(s, any);
}

uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

class CachedConvolution final : public Convolution {
 public:
  explicit CachedConvolution(const ConvShape& s) : CachedConvolution(s, choose(s)) {}
  uint64_t scratch_bytes() const override {
    return rounded(x_.get_size()) + rounded(y_.get_size()) + rounded(pad_.get_size()) +
           (filters_ != given_ ? rounded(filters_.get_size()) : 0);
  }
  void run(const float* x, const void* packed, const float* bias, const float* residual, float* y,
           void* scratch) const override {
    const SingleThread single;
    dnnl::stream stream(engine());
    auto* at = static_cast<char*>(scratch);
    memory x_blocked(x_, engine(), at);
    memory y_blocked(y_, engine(), at + rounded(x_.get_size()));
    memory pad(pad_, engine(), at + rounded(x_.get_size()) + rounded(y_.get_size()));
    memory x_plain(x_plain_, engine(), const_cast<float*>(x));
    memory y_plain(y_plain_, engine(), y);
    memory filters(given_, engine(), const_cast<void*>(packed));
    if (filters_ != given_) {
      memory wanted(filters_, engine(),
                    static_cast<char*>(pad.get_data_handle()) + rounded(pad_.get_size()));
      dnnl::reorder(filters, wanted).execute(stream, filters, wanted);
      filters = wanted;
    }
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x_blocked},
                                                 {DNNL_ARG_WEIGHTS, filters},
                                                 {DNNL_ARG_DST, y_blocked},
                                                 {DNNL_ARG_SCRATCHPAD, pad}};
    if (bias != nullptr) {
      arguments.emplace(DNNL_ARG_BIAS, memory(bias_, engine(), const_cast<float*>(bias)));
    }
    if (residual != nullptr) {
      memory z_plain(y_plain_, engine(), const_cast<float*>(residual));
      start_.execute(stream, z_plain, y_blocked);
    }
    into_.execute(stream, x_plain, x_blocked);
    body_.execute(stream, arguments);
    back_.execute(stream, y_blocked, y_plain);
    stream.wait();
  }

 private:
  using Descriptor = dnnl::convolution_forward::primitive_desc;
  CachedConvolution(const ConvShape& s, const Descriptor& d)
      : x_plain_(plain(s.in_channels, s.in_height, s.in_width, s.in_plane, s.in_width)),
        y_plain_(plain(s.out_channels, s.out_height, s.out_width, s.out_plane, s.out_width)),
        x_(d.src_desc()),
        y_(d.dst_desc()),
        filters_(d.weights_desc()),
        given_(filter_desc(s)),
        bias_(s.bias != 0 ? d.bias_desc() : memory::desc()),
        pad_(d.scratchpad_desc()),
        into_({engine(), x_plain_, engine(), x_}),
        start_(s.residual != 0 ? dnnl::reorder({engine(), y_plain_, engine(), y_})
                               : dnnl::reorder()),
        body_(d),
        back_({engine(), y_, engine(), y_plain_}) {}

  memory::desc x_plain_, y_plain_, x_, y_, filters_, given_, bias_, pad_;
  dnnl::reorder into_;
  dnnl::reorder start_;  // The residual is where oneDNN's sums start.
  dnnl::convolution_forward body_;
  dnnl::reorder back_;
};

/// Least recently used first out; a primitive in use lives on through its shared pointer.
class Cache {
 public:
  std::shared_ptr<const Convolution> find_or_make(const ConvShape& shape) {
    const std::string key(reinterpret_cast<const char*>(&shape), sizeof(shape));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (const auto found = places_.find(key); found != places_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
      }
    }
    auto made = std::make_shared<const CachedConvolution>(shape);  // Slow: not under the lock.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = places_.find(key); found != places_.end()) return found->second->second;
    order_.emplace_front(key, std::move(made));
    places_[key] = order_.begin();
    if (order_.size() > kMost) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Convolution>>;
  static constexpr size_t kMost = 512;
  std::mutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

Cache& cache() {
  static auto* const made = new Cache;  // Never destroyed: workers may still run at exit.
  return *made;
}

template <class Body>
auto translated(const Body& body) {
  try {
    const SingleThread single;
    return body();
  } catch (const dnnl::error& error) {
    const bool memory_is_out = error.status == dnnl_out_of_memory;
    kit::fail(memory_is_out ? CHIPDOCK_OUT_OF_MEMORY : CHIPDOCK_UNSUPPORTED,
              "oneDNN: ", error.what());
  }
}

}  // namespace

bool available() {
  const Isa active = float_isa();
  return active >= Isa::kAvx2 && fixed_isa() == active;
}

uint64_t filter_bytes(const ConvShape& shape) {
  return translated([&] { return filter_desc(shape).get_size(); });
}

std::string filter_layout() {
  const dnnl_version_t* version = dnnl_version();
  return "onednn" + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + "_" + isa_name(active_isa());
}

void pack_filters(const ConvShape& shape, const float* filters, void* packed) {
  translated([&] {
    const memory::desc row_major(
        {shape.out_channels, shape.in_channels, shape.kernel[0], shape.kernel[1]},
        memory::data_type::f32, memory::format_tag::oihw);
    memory from(row_major, engine(), const_cast<float*>(filters));
    memory to(filter_desc(shape), engine(), packed);
    dnnl::stream stream(engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return 0;
  });
}

std::shared_ptr<const Convolution> convolution(const ConvShape& shape) {
  return translated([&] { return cache().find_or_make(shape); });
}

#else

bool available() { return false; }
uint64_t filter_bytes(const ConvShape&) { return 0; }
std::string filter_layout() { return {}; }
void pack_filters(const ConvShape&, const float*, void*) {}
std::shared_ptr<const Convolution> convolution(const ConvShape&) {
  kit::fail(CHIPDOCK_UNSUPPORTED, "this build has no oneDNN");
}

#endif

}  // namespace chipdock::plugin::cpu::onednn
