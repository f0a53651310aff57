#include "braze/runtime/library_call.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "braze/support/check.h"

namespace braze::runtime {

using plan::BufferId;

namespace {

c10::OperatorHandle find_operator(std::string_view name) {
  const auto dot = name.find('.');
  const std::string base(name.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
}

/// The dispatcher's handle of one overload; looked up once per process.
template <class Signature>
struct Typed;
template <class R, class... A>
struct Typed<R(A...)> {
  explicit Typed(const char* name) : handle(find_operator(name).typed<R(A...)>()) {}
  c10::TypedOperatorHandle<R(A...)> handle;
};

using T = const at::Tensor&;

}  // namespace

/// The matrix products: called hundreds of times per step on small models.
struct TypedCalls {
  using Product = at::Tensor(T, T);
  using ProductOut = at::Tensor&(T, T, at::Tensor&);
  using Sum = at::Tensor(T, T, T, const at::Scalar&, const at::Scalar&);
  using SumOut = at::Tensor&(T, T, T, const at::Scalar&, const at::Scalar&, at::Tensor&);

  static T operand(const LibraryCall& c, Buffers& b, std::size_t i) {
    return b.tensor(std::get<BufferId>(c.args_[i]).index);
  }

  static void product(const LibraryCall& c, Buffers& b, const Typed<Product>& op, const Typed<ProductOut>& out) {
    T x = operand(c, b, 0);
    T y = operand(c, b, 1);
    if (!c.in_place_) return c.store(b, 0, op.handle.call(x, y));
    at::Tensor to = b.tensor(c.results_[0].index);
    out.handle.call(x, y, to);
  }
  static void sum(const LibraryCall& c, Buffers& b, const Typed<Sum>& op, const Typed<SumOut>& out) {
    T x = operand(c, b, 0);
    T y = operand(c, b, 1);
    T z = operand(c, b, 2);
    const at::Scalar beta = c.constants_[3]->toScalar(), alpha = c.constants_[4]->toScalar();
    if (!c.in_place_) return c.store(b, 0, op.handle.call(x, y, z, beta, alpha));
    at::Tensor to = b.tensor(c.results_[0].index);
    out.handle.call(x, y, z, beta, alpha, to);
  }

  static void mm(const LibraryCall& c, Buffers& b) {
    static const Typed<Product> op("aten::mm");
    static const Typed<ProductOut> out("aten::mm.out");
    product(c, b, op, out);
  }
  static void bmm(const LibraryCall& c, Buffers& b) {
    static const Typed<Product> op("aten::bmm");
    static const Typed<ProductOut> out("aten::bmm.out");
    product(c, b, op, out);
  }
  static void addmm(const LibraryCall& c, Buffers& b) {
    static const Typed<Sum> op("aten::addmm");
    static const Typed<SumOut> out("aten::addmm.out");
    sum(c, b, op, out);
  }
  static void baddbmm(const LibraryCall& c, Buffers& b) {
    static const Typed<Sum> op("aten::baddbmm");
    static const Typed<SumOut> out("aten::baddbmm.out");
    sum(c, b, op, out);
  }

  static LibraryCall::Typed find(std::string_view name) {
    if (name == "aten::mm") return mm;
    if (name == "aten::bmm") return bmm;
    if (name == "aten::addmm") return addmm;
    if (name == "aten::baddbmm") return baddbmm;
    return nullptr;
  }
};

LibraryCall::LibraryCall(const plan::Call& call, bool in_place)
    : name_(call.name),
      args_(call.args),
      results_(call.results),
      handle_(std::make_shared<const c10::OperatorHandle>(find_operator(call.name))),
      in_place_(in_place) {
  const auto& parameters = handle_->schema().arguments();
  BRAZE_CHECK(parameters.size() == args_.size(), "{} has {} arguments, its schema {}", name_, args_.size(),
              parameters.size());
  bool all_tensors = true;
  for (std::size_t i = 0; i < args_.size(); i++) {
    const aten::ArgKind kind = aten::kind_of(*parameters[i].real_type());
    const bool named =
        std::holds_alternative<BufferId>(args_[i]) || std::holds_alternative<std::vector<BufferId>>(args_[i]);
    kinds_.push_back(kind);
    constants_.push_back(named ? std::nullopt : std::optional(aten::to_ivalue(args_[i], kind, {})));
    if (kind == aten::ArgKind::kTensor && !named) all_tensors = false;
  }
  graph::for_each_operand(call, [&](const BufferId& b) { operands_.push_back(b.index); });
  if (all_tensors) typed_ = TypedCalls::find(name_);
}

void LibraryCall::run(Buffers& buffers) const { typed_ != nullptr ? typed_(*this, buffers) : run_boxed(buffers); }

void LibraryCall::run_boxed(Buffers& buffers) const {
  for (const std::uint32_t b : operands_) buffers.tensor(b);
  torch::jit::Stack stack;
  stack.reserve(args_.size());
  for (std::size_t i = 0; i < args_.size(); i++)
    stack.push_back(constants_[i] ? *constants_[i] : aten::to_ivalue(args_[i], kinds_[i], buffers.tensors()));
  handle_->callBoxed(&stack);
  std::size_t next = 0;
  for (c10::IValue& v : stack) {
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) store(buffers, next++, t);
    else if (v.isTensor()) store(buffers, next++, std::move(v).toTensor());
    else if (v.isNone() && next < results_.size()) store(buffers, next++, {});
  }
  BRAZE_CHECK(next == results_.size(), "{} returned {} tensors, its call has {} results", name_, next, results_.size());
}

void LibraryCall::store(Buffers& buffers, std::size_t result, at::Tensor t) const {
  BRAZE_CHECK(result < results_.size(), "{} returned more tensors than its call has results", name_);
  if (results_[result].is_none()) return;
  const std::uint32_t b = results_[result].index;
  if (in_place_) {
    buffers.tensor(b).copy_(t);
  } else if (!t.defined()) {
    buffers.bind(b, {});
  } else if (buffers.in_arena(t)) {  // an operand came back: its place will be used again
    at::Tensor own = empty(buffers.layout(b));
    own.copy_(t);
    buffers.bind(b, std::move(own));
  } else {
    buffers.bind(b, in_layout(t, buffers.layout(b)));
  }
}

}  // namespace braze::runtime
