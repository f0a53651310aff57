// A node without edges.
#include "braze/trace/input_node.h"

#include "braze/support/check.h"

namespace braze::trace {

namespace {

struct InputNode final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    throw support::InternalError("the backward ran past an input of the trace");
  }
  std::string name() const override { return "BrazeInput"; }
};

template <class T>
std::shared_ptr<T> make_as(const std::shared_ptr<torch::autograd::Node>*) {
  return std::make_shared<T>();
}
template <class T>
c10::intrusive_ptr<T> make_as(const c10::intrusive_ptr<torch::autograd::Node>*) {
  return c10::make_intrusive<T>();
}

}  // namespace

NodeRef make_input_node(const at::Tensor& t) {
  auto node = make_as<InputNode>(static_cast<const NodeRef*>(nullptr));
  node->add_input_metadata(t);
  return node;
}

}  // namespace braze::trace
