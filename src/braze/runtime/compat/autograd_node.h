// What differs between torch versions in making autograd Nodes: reference counting moved into the Node in 2.12.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/version.h>

#include <memory>
#include <utility>

namespace braze::runtime {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12
template <class N>
using NodePointer = c10::intrusive_ptr<N>;
template <class N, class... Args>
NodePointer<N> make_node(Args&&... args) {
  return c10::make_intrusive<N>(std::forward<Args>(args)...);
}
#else
template <class N>
using NodePointer = std::shared_ptr<N>;
template <class N, class... Args>
NodePointer<N> make_node(Args&&... args) {
  return NodePointer<N>(new N(std::forward<Args>(args)...), torch::autograd::deleteNode);
}
#endif

}  // namespace braze::runtime
