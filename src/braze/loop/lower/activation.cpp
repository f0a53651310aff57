// Activation functions and their derivatives, each in the form of PyTorch's own kernel.
#include <cmath>
#include <numbers>

#include "braze/loop/lower/pointwise.h"

namespace braze::loop {
namespace {

constexpr double kInvSqrt2 = std::numbers::sqrt2 / 2;
constexpr double kTanhBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kTanhKappa = 0.044715;

bool is_tanh(const Pointwise& p, std::size_t position) { return arg<std::string>(p.node, position) == "tanh"; }

Term tanh_inner(Term x) { return kTanhBeta * (x + kTanhKappa * (x * x * x)); }

Term relu(Pointwise& p) { return apply(ScalarOp::relu, p[0]); }
Term hardtanh(Pointwise& p) { return minimum(maximum(p[0], p[1]), p[2]); }
Term leaky_relu(Pointwise& p) { return choose(p[0] > 0.0, p[0], p[0] * p.number(1)); }

Term elu_of(Term x, double alpha, double scale, double input_scale) {
  return choose(x < 0.0, expm1(x * input_scale) * (alpha * scale), scale == 1 ? x : x * scale);
}
Term elu(Pointwise& p) { return elu_of(p[0], p.number(1), p.number(2), p.number(3)); }
Term celu(Pointwise& p) { return elu_of(p[0], p.number(1), 1, 1 / p.number(1)); }

Term gelu(Pointwise& p) {
  const Term x = p[0];
  return is_tanh(p, 1) ? 0.5 * x * (1.0 + tanh(tanh_inner(x))) : apply(ScalarOp::gelu, x);
}

Term silu(Pointwise& p) { return p[0] * sigmoid(p[0]); }
Term mish(Pointwise& p) { return p[0] * tanh(log1p(exp(p[0]))); }

/// min(max(x + 3, 0), 6)
Term shifted_relu6(Term x) { return minimum(maximum(x + 3.0, like(x, 0)), like(x, 6)); }
Term hardswish(Pointwise& p) { return p[0] * shifted_relu6(p[0]) / 6.0; }
Term hardsigmoid(Pointwise& p) { return shifted_relu6(p[0]) / 6.0; }

Term softplus(Pointwise& p) {
  const Term x = p[0], z = x * p.number(1);
  return choose(z > p.number(2), x, log1p(exp(z)) / p.number(1));
}
Term threshold(Pointwise& p) { return choose(p[0] <= p[1], p[2], p[0]); }

Term threshold_backward(Pointwise& p) { return choose(p[1] <= p[2], p.constant(0), p[0]); }

Term gelu_backward(Pointwise& p) {
  const Term dy = p[0], x = p[1];
  if (is_tanh(p, 2)) {
    const Term inner = tanh(tanh_inner(x));
    const Term inner_derivative = kTanhBeta * (1.0 + 3 * kTanhKappa * (x * x));
    return dy * (0.5 * (1.0 + inner) + 0.5 * x * (1.0 - inner * inner) * inner_derivative);
  }
  const Term cdf = 0.5 * (1.0 + apply(ScalarOp::erf, x * kInvSqrt2));
  const Term pdf = exp(x * x * -0.5) * (kInvSqrt2 * std::numbers::inv_sqrtpi);  // 1 / sqrt(2 pi)
  return dy * (cdf + x * pdf);
}

Term silu_backward(Pointwise& p) {
  const Term x = p[1], s = sigmoid(x);
  return p[0] * s * (1.0 + x * (1.0 - s));
}
Term mish_backward(Pointwise& p) {
  const Term x = p[1], t = tanh(log1p(exp(x)));
  return p[0] * (t + x * sigmoid(x) * (1.0 - t * t));
}
Term tanh_backward(Pointwise& p) { return p[0] * (1.0 - p[1] * p[1]); }
Term sigmoid_backward(Pointwise& p) { return p[0] * (1.0 - p[1]) * p[1]; }

Term hardtanh_backward(Pointwise& p) { return choose(either(p[1] <= p[2], p[1] >= p[3]), p.constant(0), p[0]); }
Term leaky_relu_backward(Pointwise& p) { return choose(p[1] > 0.0, p[0], p[0] * p.number(2)); }

Term elu_backward(Pointwise& p) {
  const double negative = p.number(1) * p.number(2), positive = p.number(2), input_scale = p.number(3);
  const Term dy = p[0], x = p[5];
  const Term below =
      bool_arg(p.node, 4) ? dy * input_scale * (x + negative) : dy * (input_scale * negative) * exp(x * input_scale);
  return choose(x <= 0.0, below, dy * positive);
}

Term softplus_backward(Pointwise& p) {
  const Term dy = p[0], x = p[1] * p.number(2), z = exp(x);
  return choose(x > p.number(3), dy, dy * z / (z + 1.0));
}

Term hardswish_backward(Pointwise& p) {
  const Term dy = p[0], x = p[1];
  return choose(x <= -3.0, like(x, 0), choose(x < 3.0, dy * (x / 3.0 + 0.5), dy));
}
Term hardsigmoid_backward(Pointwise& p) {
  return choose(both(p[1] > -3.0, p[1] < 3.0), p[0] * (1.0 / 6.0), p.constant(0));
}

bool log_sigmoid_forward(Lowering& l, const Node& node) {
  const ValueId buffer = node.results[1];
  if (!buffer.is_none() && l.type(buffer).sizes != l.type(node.results[0]).sizes) return false;
  Pointwise p(l, node, l.type(node.results[0]).dtype);
  const Term x = p[0], z = exp(-abs(x));
  p.loop.yield(minimum(x, like(x, 0)) - log1p(z), node.results[0]);
  p.loop.yield(z, buffer);
  p.loop.map();
  return true;
}
Term log_sigmoid_backward(Pointwise& p) {  // without the buffer, which some devices leave empty
  const Term x = p[1], z = exp(-abs(x));
  const Term below = choose(x < 0.0, like(x, 1), like(x, 0)), sign = choose(x < 0.0, like(x, 1), like(x, -1));
  return p[0] * (below - sign * (z / (1.0 + z)));
}

Term native_dropout_backward(Pointwise& p) { return p[0] * p[1] * p.number(2); }

constexpr RuleRow kRows[] = {
    {Op::relu, pointwise<relu>},
    {Op::hardtanh, pointwise<hardtanh>},
    {Op::leaky_relu, pointwise<leaky_relu>},
    {Op::elu, pointwise<elu>},
    {Op::celu, pointwise<celu>},
    {Op::gelu, pointwise<gelu>},
    {Op::silu, pointwise<silu>},
    {Op::mish, pointwise<mish>},
    {Op::hardswish, pointwise<hardswish>},
    {Op::hardsigmoid, pointwise<hardsigmoid>},
    {Op::softplus, pointwise<softplus>},
    {Op::threshold, pointwise<threshold>},
    {Op::threshold_backward, pointwise<threshold_backward>},
    {Op::gelu_backward, pointwise<gelu_backward>},
    {Op::silu_backward, pointwise<silu_backward>},
    {Op::mish_backward, pointwise<mish_backward>},
    {Op::tanh_backward, pointwise<tanh_backward>},
    {Op::sigmoid_backward, pointwise<sigmoid_backward>},
    {Op::hardtanh_backward, pointwise<hardtanh_backward>},
    {Op::leaky_relu_backward, pointwise<leaky_relu_backward>},
    {Op::elu_backward, pointwise<elu_backward>},
    {Op::softplus_backward, pointwise<softplus_backward>},
    {Op::hardswish_backward, pointwise<hardswish_backward>},
    {Op::hardsigmoid_backward, pointwise<hardsigmoid_backward>},
    {Op::log_sigmoid_forward, log_sigmoid_forward},
    {Op::log_sigmoid_backward, pointwise<log_sigmoid_backward>},
    {Op::native_dropout_backward, pointwise<native_dropout_backward>},
};

}  // namespace

std::span<const RuleRow> activation_rules() { return kRows; }

}  // namespace braze::loop
