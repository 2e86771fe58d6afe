// SPDX-License-Identifier: Apache-2.0
// Trampolines. Only the few instructions that fetch the attachment exist once per attachment; the
// walk through the layers exists once per slot.
#include "layer_stack.hpp"

#include <array>
#include <tuple>
#include <utility>

namespace chipdock::runtime {
namespace {

std::array<std::atomic<LayerStack*>, LayerStack::kAttachments> g_stacks{};

template <SlotId kSlot, class... Args>
chipdock_status dispatch(LayerStack* stack, Args... args) {
  void* arguments[] = {static_cast<void*>(&args)...};
  chipdock_error* error = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
  if (stack == nullptr) {
    return chipdock_fail(error, CHIPDOCK_SHUTDOWN,
                         "SHUTDOWN: the plugin was shut down; nothing of it can be used any more");
  }
  const Call call{kSlot, arguments, error};
  uint64_t notes[LayerStack::kMaxLayers] = {};
  size_t entered = 0;
  chipdock_status status = stack->enter(call, notes, entered);
  if (status == CHIPDOCK_OK) {
    try {
      status = SlotTraits<kSlot>::get(stack->inner())(args...);
    } catch (...) {
      const std::string text = std::string("INTERNAL: an exception left ") + slot_info(kSlot).name +
                               "; a plugin returns a status [BASE-9]";
      status = chipdock_fail(error, CHIPDOCK_INTERNAL, text.c_str());
    }
  }
  return stack->leave(call, notes, entered, status);
}

template <size_t kAttachment, SlotId kSlot, class Function>
struct Trampoline;
template <size_t kAttachment, SlotId kSlot, class... Args>
struct Trampoline<kAttachment, kSlot, chipdock_status (*)(Args...)> {
  static chipdock_status CHIPDOCK_CALL call(Args... args) {
    return dispatch<kSlot, Args...>(g_stacks[kAttachment].load(std::memory_order_acquire), args...);
  }
};

template <size_t kAttachment, SlotId kSlot>
void wrap(Tables& tables) {
  using Traits = SlotTraits<kSlot>;
  auto& slot = Traits::get(tables);
  if (slot != nullptr) slot = &Trampoline<kAttachment, kSlot, typename Traits::Function>::call;
}

template <size_t kAttachment, size_t... kSlots>
void wrap_all(Tables& tables, std::index_sequence<kSlots...>) {
  (wrap<kAttachment, static_cast<SlotId>(kSlots)>(tables), ...);
}

template <size_t... kIndices>
void wrap_for(size_t attachment, Tables& tables, std::index_sequence<kIndices...>) {
  using Wrap = void (*)(Tables&, std::make_index_sequence<kSlotCount>);
  static constexpr Wrap kWraps[] = {[](Tables& t, std::make_index_sequence<kSlotCount> slots) {
    wrap_all<kIndices>(t, slots);
  }...};
  // The caller has checked the number of layers.
  kWraps[attachment](tables, {});  // NOLINT(clang-analyzer-security.ArrayBound)
}

}  // namespace

LayerStack::LayerStack(Tables& tables, std::vector<std::unique_ptr<Layer>> layers)
    : inner_(tables), layers_(std::move(layers)) {
  if (layers_.size() > kMaxLayers) {
    raise(CHIPDOCK_INVALID_ARGUMENT, layers_.size(), " layers were asked for, at most ", kMaxLayers,
          " fit on one plugin");
  }
  for (; attachment_ < kAttachments; ++attachment_) {
    LayerStack* free = nullptr;
    if (g_stacks[attachment_].compare_exchange_strong(free, this, std::memory_order_acq_rel)) break;
  }
  if (attachment_ == kAttachments) {
    raise(CHIPDOCK_FAILED_PRECONDITION, "at most ", kAttachments,
          " loaded plugins can have layers at one time; shut one down or load without layers");
  }
  wrap_for(attachment_, tables, std::make_index_sequence<kAttachments>{});
}

void LayerStack::finish() noexcept {
  if (finished_) return;
  finished_ = true;
  for (const auto& layer : layers_) layer->finish();
  g_stacks[attachment_].store(nullptr, std::memory_order_release);
}

chipdock_status LayerStack::enter(const Call& call, uint64_t* notes, size_t& entered) {
  for (; entered < layers_.size(); ++entered) {
    const chipdock_status status = layers_[entered]->before(call, notes[entered]);
    if (status != CHIPDOCK_OK) return status;
  }
  return CHIPDOCK_OK;
}

chipdock_status LayerStack::leave(const Call& call, const uint64_t* notes, size_t entered,
                                  chipdock_status status) {
  for (size_t i = entered; i > 0; --i) status = layers_[i - 1]->after(call, notes[i - 1], status);
  return status;
}

}  // namespace chipdock::runtime
