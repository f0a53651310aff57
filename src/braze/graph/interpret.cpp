#include "braze/graph/interpret.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "braze/support/check.h"

namespace braze::graph {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t numel(const Index& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// The index of the n-th element in row-major order.
Index index_of(std::int64_t n, const Index& sizes) {
  Index index(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0; n /= sizes[d]) index[d] = n % sizes[d];
  return index;
}

/// The element of `a` at an index of a space that a broadcasts to.
double at(const Array& a, const Index& index) {
  std::int64_t n = 0;
  const std::size_t offset = index.size() - a.sizes.size();
  for (std::size_t d = 0; d < a.sizes.size(); ++d) n = n * a.sizes[d] + (a.sizes[d] == 1 ? 0 : index[offset + d]);
  return a.data[static_cast<std::size_t>(n)];
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }
double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}
double minimum(double a, double b) { return -maximum(-a, -b); }
double floor_mod(double a, double b) { return a - b * std::floor(a / b); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

using Function = double (*)(const double*);

/// Pointwise operators of their leading arguments, tensors and numbers alike (alpha and value come last).
const std::map<Op, std::pair<std::size_t, Function>>& functions() {
  using A = const double*;
  static const std::map<Op, std::pair<std::size_t, Function>> table = {
      {Op::add_Tensor, {3, [](A a) { return a[0] + a[2] * a[1]; }}},
      {Op::add_Scalar, {3, [](A a) { return a[0] + a[2] * a[1]; }}},
      {Op::sub_Tensor, {3, [](A a) { return a[0] - a[2] * a[1]; }}},
      {Op::sub_Scalar, {3, [](A a) { return a[0] - a[2] * a[1]; }}},
      {Op::rsub_Scalar, {3, [](A a) { return a[1] - a[2] * a[0]; }}},
      {Op::mul_Tensor, {2, [](A a) { return a[0] * a[1]; }}},
      {Op::mul_Scalar, {2, [](A a) { return a[0] * a[1]; }}},
      {Op::div_Tensor, {2, [](A a) { return a[0] / a[1]; }}},
      {Op::div_Scalar, {2, [](A a) { return a[0] / a[1]; }}},
      {Op::maximum, {2, [](A a) { return maximum(a[0], a[1]); }}},
      {Op::minimum, {2, [](A a) { return minimum(a[0], a[1]); }}},
      {Op::pow_Tensor_Scalar, {2, [](A a) { return std::pow(a[0], a[1]); }}},
      {Op::pow_Tensor_Tensor, {2, [](A a) { return std::pow(a[0], a[1]); }}},
      {Op::pow_Scalar, {2, [](A a) { return std::pow(a[0], a[1]); }}},
      {Op::atan2, {2, [](A a) { return std::atan2(a[0], a[1]); }}},
      {Op::floor_divide, {2, [](A a) { return std::floor(a[0] / a[1]); }}},
      {Op::remainder_Tensor, {2, [](A a) { return floor_mod(a[0], a[1]); }}},
      {Op::remainder_Scalar, {2, [](A a) { return floor_mod(a[0], a[1]); }}},
      {Op::fmod_Tensor, {2, [](A a) { return std::fmod(a[0], a[1]); }}},
      {Op::where_self, {3, [](A a) { return a[0] != 0 ? a[1] : a[2]; }}},
      {Op::masked_fill_Scalar, {3, [](A a) { return a[1] != 0 ? a[2] : a[0]; }}},
      {Op::masked_fill_Tensor, {3, [](A a) { return a[1] != 0 ? a[2] : a[0]; }}},
      {Op::addcmul, {4, [](A a) { return a[0] + a[3] * a[1] * a[2]; }}},
      {Op::addcdiv, {4, [](A a) { return a[0] + a[3] * a[1] / a[2]; }}},
      {Op::lerp_Scalar, {3, [](A a) { return a[0] + a[2] * (a[1] - a[0]); }}},
      {Op::clamp_min, {2, [](A a) { return maximum(a[0], a[1]); }}},
      {Op::clamp_max, {2, [](A a) { return minimum(a[0], a[1]); }}},
      {Op::eq_Tensor, {2, [](A a) { return double(a[0] == a[1]); }}},
      {Op::ne_Tensor, {2, [](A a) { return double(a[0] != a[1]); }}},
      {Op::lt_Tensor, {2, [](A a) { return double(a[0] < a[1]); }}},
      {Op::le_Tensor, {2, [](A a) { return double(a[0] <= a[1]); }}},
      {Op::gt_Tensor, {2, [](A a) { return double(a[0] > a[1]); }}},
      {Op::ge_Tensor, {2, [](A a) { return double(a[0] >= a[1]); }}},
      {Op::eq_Scalar, {2, [](A a) { return double(a[0] == a[1]); }}},
      {Op::ne_Scalar, {2, [](A a) { return double(a[0] != a[1]); }}},
      {Op::lt_Scalar, {2, [](A a) { return double(a[0] < a[1]); }}},
      {Op::le_Scalar, {2, [](A a) { return double(a[0] <= a[1]); }}},
      {Op::gt_Scalar, {2, [](A a) { return double(a[0] > a[1]); }}},
      {Op::ge_Scalar, {2, [](A a) { return double(a[0] >= a[1]); }}},
      {Op::logical_and, {2, [](A a) { return double(a[0] != 0 && a[1] != 0); }}},
      {Op::logical_or, {2, [](A a) { return double(a[0] != 0 || a[1] != 0); }}},
      {Op::logical_not, {1, [](A a) { return double(a[0] == 0); }}},
      {Op::isnan, {1, [](A a) { return double(std::isnan(a[0])); }}},
      {Op::neg, {1, [](A a) { return -a[0]; }}},
      {Op::abs, {1, [](A a) { return std::abs(a[0]); }}},
      {Op::sign, {1, [](A a) { return sign(a[0]); }}},
      {Op::floor, {1, [](A a) { return std::floor(a[0]); }}},
      {Op::ceil, {1, [](A a) { return std::ceil(a[0]); }}},
      {Op::round, {1, [](A a) { return std::nearbyint(a[0]); }}},
      {Op::trunc, {1, [](A a) { return std::trunc(a[0]); }}},
      {Op::relu, {1, [](A a) { return maximum(a[0], 0); }}},
      {Op::silu, {1, [](A a) { return a[0] * sigmoid(a[0]); }}},
      {Op::square, {1, [](A a) { return a[0] * a[0]; }}},
      {Op::exp, {1, [](A a) { return std::exp(a[0]); }}},
      {Op::expm1, {1, [](A a) { return std::expm1(a[0]); }}},
      {Op::log, {1, [](A a) { return std::log(a[0]); }}},
      {Op::log1p, {1, [](A a) { return std::log1p(a[0]); }}},
      {Op::sqrt, {1, [](A a) { return std::sqrt(a[0]); }}},
      {Op::rsqrt, {1, [](A a) { return 1 / std::sqrt(a[0]); }}},
      {Op::reciprocal, {1, [](A a) { return 1 / a[0]; }}},
      {Op::sin, {1, [](A a) { return std::sin(a[0]); }}},
      {Op::cos, {1, [](A a) { return std::cos(a[0]); }}},
      {Op::tanh, {1, [](A a) { return std::tanh(a[0]); }}},
      {Op::sigmoid, {1, [](A a) { return sigmoid(a[0]); }}},
      {Op::erf, {1, [](A a) { return std::erf(a[0]); }}},
      {Op::threshold_backward, {3, [](A a) { return a[1] <= a[2] ? 0 : a[0]; }}},
      {Op::tanh_backward, {2, [](A a) { return a[0] * (1 - a[1] * a[1]); }}},
      {Op::sigmoid_backward, {2, [](A a) { return a[0] * a[1] * (1 - a[1]); }}},
      {Op::silu_backward, {2, [](A a) { return a[0] * sigmoid(a[1]) * (1 + a[1] * (1 - sigmoid(a[1]))); }}},
      {Op::clone, {1, [](A a) { return a[0]; }}},
      {Op::_to_copy, {1, [](A a) { return a[0]; }}},
      {Op::lift_fresh_copy, {1, [](A a) { return a[0]; }}},
      {Op::positive, {1, [](A a) { return a[0]; }}},
      {Op::expand, {1, [](A a) { return a[0]; }}},
  };
  return table;
}

class Machine {
 public:
  Machine(const Graph& g, std::span<const Array> inputs) : g_(g), values_(g.values.size()) {
    BRAZE_CHECK(inputs.size() == g.inputs.size(), "graph @{} has {} inputs, not {}", g.name, g.inputs.size(),
                inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values_[g.inputs[i].index] = inputs[i];
      bind(g.type(g.inputs[i]).sizes, inputs[i].sizes);
    }
  }

  std::vector<Array> run() {
    for (const Node& node : g_.nodes) evaluate(node);
    std::vector<Array> outputs;
    for (ValueId v : g_.outputs) outputs.push_back(v.is_none() ? Array{} : values_[v.index]);
    return outputs;
  }

 private:
  void bind(const std::vector<SymExpr>& sizes, const Index& actual) {
    BRAZE_CHECK(sizes.size() == actual.size(), "an input of {} dimensions has {}", sizes.size(), actual.size());
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (!sizes[d].is_constant()) symbols_.emplace(sym::to_text(sizes[d]), actual[d]);
  }

  std::int64_t size(const SymExpr& e) const {
    return sym::evaluate(e, [&](std::string_view name) {
      const auto found = symbols_.find(std::string(name));
      BRAZE_CHECK(found != symbols_.end(), "no input has size {}", name);
      return found->second;
    });
  }

  Array make(ValueId v) const {
    Array a{.dtype = g_.type(v).dtype, .sizes = {}, .data = {}};
    for (const SymExpr& s : g_.type(v).sizes) a.sizes.push_back(size(s));
    a.data.resize(static_cast<std::size_t>(numel(a.sizes)));
    return a;
  }

  const Array& tensor(const Node& node, std::size_t i) const { return values_[std::get<ValueId>(node.args[i]).index]; }

  double number(const Arg& a) const {
    if (const auto* d = std::get_if<double>(&a)) return *d;
    if (const auto* b = std::get_if<bool>(&a)) return *b;
    if (const auto* e = std::get_if<SymExpr>(&a)) return static_cast<double>(size(*e));
    throw support::InternalError("an argument is not a number");
  }
  std::int64_t integer(const Arg& a) const { return static_cast<std::int64_t>(number(a)); }

  std::size_t dim(const Arg& a, std::size_t rank) const {
    const std::int64_t d = integer(a);
    return static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d);
  }

  static double round_to(DType t, double x) {
    if (t == DType::kFloat32) return static_cast<float>(x);
    if (t == DType::kBool) return x != 0;
    return op::is_integral(t) ? std::trunc(x) : x;
  }

  void store(const Node& node, std::size_t result, const std::function<double(const Index&)>& element) {
    const ValueId v = node.results[result];
    if (v.is_none()) return;
    Array a = make(v);
    for (std::size_t n = 0; n < a.data.size(); ++n)
      a.data[n] = round_to(a.dtype, element(index_of(static_cast<std::int64_t>(n), a.sizes)));
    values_[v.index] = std::move(a);
  }

  void evaluate(const Node& node) {
    if (const auto found = functions().find(node.op); found != functions().end()) return pointwise(node, found->second);
    switch (node.op) {
      case Op::gelu: return gelu_node(node);
      case Op::gelu_backward: return gelu_backward(node);
      case Op::clamp: return clamp(node);
      case Op::alias:
      case Op::detach:
      case Op::lift_fresh:
      case Op::view:
      case Op::_unsafe_view:
      case Op::reshape:
      case Op::squeeze:
      case Op::squeeze_dim:
      case Op::squeeze_dims:
      case Op::unsqueeze: return reshape(node);
      case Op::t: return permute(node, tensor(node, 0).sizes.size() == 2 ? Index{1, 0} : Index{0});
      case Op::transpose_int: return transpose(node);
      case Op::permute: return permute(node, integers(node.args[1]));
      case Op::slice_Tensor: return slice(node);
      case Op::select_int: return select(node);
      case Op::full: return store(node, 0, [&](const Index&) { return number(node.args[1]); });
      case Op::zeros:
      case Op::zeros_like:
      case Op::new_zeros: return store(node, 0, [](const Index&) { return 0.0; });
      case Op::ones:
      case Op::ones_like:
      case Op::new_ones: return store(node, 0, [](const Index&) { return 1.0; });
      case Op::full_like:
      case Op::scalar_tensor:
        return store(node, 0, [&](const Index&) { return number(node.args[node.op == Op::full_like ? 1 : 0]); });
      case Op::arange: return store(node, 0, [](const Index& i) { return static_cast<double>(i[0]); });
      case Op::sum:
      case Op::mean:
      case Op::amax:
      case Op::amin:
      case Op::max:
      case Op::min:
      case Op::sum_dim_IntList:
      case Op::mean_dim: return reduce(node);
      case Op::mm:
      case Op::bmm:
      case Op::addmm: return matmul(node);
      case Op::_softmax:
      case Op::_log_softmax: return softmax(node);
      case Op::cat: return cat(node);
      case Op::embedding: return embedding(node);
      default: throw support::InternalError(support::format("interpret does not know {}", node.name));
    }
  }

  void pointwise(const Node& node, std::pair<std::size_t, Function> row) {
    store(node, 0, [&](const Index& index) {
      double operands[4] = {};
      for (std::size_t i = 0; i < row.first; ++i)
        operands[i] = std::holds_alternative<ValueId>(node.args[i]) ? at(tensor(node, i), index) : number(node.args[i]);
      return row.second(operands);
    });
  }

  void gelu_node(const Node& node) {
    check_exact_gelu(node.args[1]);
    store(node, 0, [&](const Index& i) { return gelu(at(tensor(node, 0), i)); });
  }
  void gelu_backward(const Node& node) {
    check_exact_gelu(node.args[2]);
    store(node, 0, [&](const Index& i) { return at(tensor(node, 0), i) * gelu_slope(at(tensor(node, 1), i)); });
  }
  static void check_exact_gelu(const Arg& a) {
    BRAZE_CHECK(a == Arg(std::string("none")), "interpret knows the exact gelu only");
  }

  void clamp(const Node& node) {
    store(node, 0, [&](const Index& i) {
      double x = at(tensor(node, 0), i);
      if (!std::holds_alternative<None>(node.args[1])) x = maximum(x, number(node.args[1]));
      return std::holds_alternative<None>(node.args[2]) ? x : minimum(x, number(node.args[2]));
    });
  }

  void reshape(const Node& node) {
    Array a = make(node.results[0]);
    a.data = tensor(node, 0).data;
    values_[node.results[0].index] = std::move(a);
  }

  Index integers(const Arg& a) const {
    if (std::holds_alternative<None>(a)) return {};
    Index list;
    for (const SymExpr& e : std::get<std::vector<SymExpr>>(a)) list.push_back(size(e));
    return list;
  }

  void permute(const Node& node, Index dims) {
    const Array& x = tensor(node, 0);
    store(node, 0, [&](const Index& i) {
      Index from(i.size());
      for (std::size_t d = 0; d < i.size(); ++d)
        from[static_cast<std::size_t>(dims[d] < 0 ? dims[d] + static_cast<std::int64_t>(i.size()) : dims[d])] = i[d];
      return at(x, from);
    });
  }

  void transpose(const Node& node) {
    const std::size_t rank = tensor(node, 0).sizes.size();
    Index dims(rank);
    std::iota(dims.begin(), dims.end(), 0);
    std::swap(dims[dim(node.args[1], rank)], dims[dim(node.args[2], rank)]);
    permute(node, dims);
  }

  void slice(const Node& node) {
    const Array& x = tensor(node, 0);
    const std::size_t d = dim(node.args[1], x.sizes.size());
    std::int64_t start = std::holds_alternative<None>(node.args[2]) ? 0 : integer(node.args[2]);
    if (start < 0) start += x.sizes[d];
    start = std::clamp<std::int64_t>(start, 0, x.sizes[d]);
    const std::int64_t step = integer(node.args[4]);
    store(node, 0, [&](Index i) {
      i[d] = start + step * i[d];
      return at(x, i);
    });
  }

  void select(const Node& node) {
    const Array& x = tensor(node, 0);
    const std::size_t d = dim(node.args[1], x.sizes.size());
    std::int64_t position = integer(node.args[2]);
    if (position < 0) position += x.sizes[d];
    store(node, 0, [&](Index i) {
      i.insert(i.begin() + static_cast<std::ptrdiff_t>(d), position);
      return at(x, i);
    });
  }

  void reduce(const Node& node) {
    const Array& x = tensor(node, 0);
    const std::size_t rank = x.sizes.size();
    const bool takes_dims = node.op != Op::sum && node.op != Op::mean && node.op != Op::max && node.op != Op::min;
    const Index dims = takes_dims ? integers(node.args[1]) : Index{};
    std::vector<bool> gone(rank, dims.empty());  // keepdim does not matter: sizes of 1 move no element
    for (std::int64_t d : dims) gone[static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d)] = true;
    const bool is_max = node.op == Op::amax || node.op == Op::max, is_min = node.op == Op::amin || node.op == Op::min;
    Array result = make(node.results[0]);
    const double start = is_max ? -INFINITY : is_min ? INFINITY : 0;
    std::fill(result.data.begin(), result.data.end(), start);
    for (std::size_t n = 0; n < x.data.size(); ++n) {
      const Index i = index_of(static_cast<std::int64_t>(n), x.sizes);
      std::int64_t to = 0;
      for (std::size_t d = 0; d < rank; ++d)
        if (!gone[d]) to = to * x.sizes[d] + i[d];
      double& r = result.data[static_cast<std::size_t>(to)];
      r = is_max ? maximum(r, x.data[n]) : is_min ? minimum(r, x.data[n]) : r + x.data[n];
    }
    const bool is_mean = node.op == Op::mean || node.op == Op::mean_dim;
    const double count = static_cast<double>(x.data.size()) / static_cast<double>(result.data.size());
    for (double& r : result.data) r = round_to(result.dtype, is_mean ? r / count : r);
    values_[node.results[0].index] = std::move(result);
  }

  void matmul(const Node& node) {
    const bool adds = node.op == Op::addmm;
    const Array &a = tensor(node, adds ? 1 : 0), &b = tensor(node, adds ? 2 : 1);
    store(node, 0, [&](const Index& i) {
      double sum = 0;
      Index left = i, right = i;
      for (std::int64_t k = 0; k < a.sizes.back(); ++k) {
        left.back() = k;
        right[right.size() - 2] = k;
        sum += at(a, left) * at(b, right);
      }
      return adds ? number(node.args[3]) * at(tensor(node, 0), i) + number(node.args[4]) * sum : sum;
    });
  }

  void softmax(const Node& node) {
    const Array& x = tensor(node, 0);
    const std::size_t d = dim(node.args[1], x.sizes.size());
    store(node, 0, [&](const Index& i) {
      double top = -INFINITY, sum = 0;
      Index k = i;
      for (k[d] = 0; k[d] < x.sizes[d]; ++k[d]) top = maximum(top, at(x, k));
      for (k[d] = 0; k[d] < x.sizes[d]; ++k[d]) sum += std::exp(at(x, k) - top);
      return node.op == Op::_softmax ? std::exp(at(x, i) - top) / sum : at(x, i) - top - std::log(sum);
    });
  }

  void cat(const Node& node) {
    const auto& list = std::get<std::vector<ValueId>>(node.args[0]);
    store(node, 0, [&](Index i) {
      const std::size_t d = dim(node.args[1], i.size());
      for (ValueId v : list) {
        const Array& part = values_[v.index];
        if (part.sizes.size() != i.size()) continue;  // an empty one of one dimension
        if (i[d] < part.sizes[d]) return at(part, i);
        i[d] -= part.sizes[d];
      }
      throw support::InternalError("cat: the parts are too small");
    });
  }

  void embedding(const Node& node) {
    const Array &weight = tensor(node, 0), &indices = tensor(node, 1);
    store(node, 0, [&](const Index& i) {
      const Index at_index(i.begin(), i.end() - 1);
      return at(weight, {static_cast<std::int64_t>(at(indices, at_index)), i.back()});
    });
  }

  const Graph& g_;
  std::vector<Array> values_;
  std::map<std::string, std::int64_t> symbols_;
};

}  // namespace

std::vector<Array> interpret(const Graph& g, std::span<const Array> inputs) { return Machine(g, inputs).run(); }

}  // namespace braze::graph
