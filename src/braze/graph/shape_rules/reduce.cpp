// Reductions and scans: results are dense in row-major order.
#include <algorithm>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

Sizes reduced_sizes(Call& c, const Sizes& sizes, const std::vector<std::int64_t>& dims, bool keep) {
  std::vector<bool> gone(std::max<std::size_t>(sizes.size(), 1), dims.empty());
  for (std::int64_t d : dims) {
    const std::size_t at = c.wrap(d, sizes.size());
    c.require(!gone[at]);
    gone[at] = true;
  }
  Sizes result;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!gone[d]) result.push_back(sizes[d]);
    else if (keep) result.push_back(1);
  }
  return result;
}

DType sum_dtype(Call& c, std::size_t argument) {
  if (const auto d = c.dtype(argument)) return *d;
  const DType t = c.tensor(0).dtype;
  return op::is_integral(t) || t == DType::kBool ? DType::kInt64 : t;
}

DType floating(Call& c, DType t) {
  c.require(op::is_floating(t));
  return t;
}

DType real(Call& c, DType t) {
  c.require(!op::is_complex(t));
  return t;
}

DType truth(DType t) { return t == DType::kUInt8 ? t : DType::kBool; }

/// Over the dims of argument `dims` (all if it is none or empty).
bool fold(Call& c, std::size_t dims, std::size_t keep, DType dtype) {
  const TensorType& self = c.tensor(0);
  return c.give(like(self, reduced_sizes(c, self.sizes, c.integers(dims), c.flag(keep)), dtype));
}

bool fold_all(Call& c, DType dtype) { return c.give(like(c.tensor(0), {}, dtype)); }

/// Extrema of nothing are an error.
void require_elements(Call& c) { c.require(!has_zero(c.tensor(0).sizes)); }

}  // namespace

bool reduce(Call& c) {
  const DType self = c.tensor(0).dtype;
  if (!c.sure) return false;
  switch (c.op) {
    case Op::sum:
    case Op::prod: return fold_all(c, sum_dtype(c, 1));
    case Op::sum_dim_IntList: return fold(c, 1, 2, sum_dtype(c, 3));
    case Op::nansum: return fold(c, 1, 2, real(c, sum_dtype(c, 3)));
    case Op::prod_dim_int: return fold(c, 1, 2, sum_dtype(c, 3));
    case Op::mean: return fold_all(c, floating(c, c.dtype(1).value_or(self)));
    case Op::mean_dim: return fold(c, 1, 2, floating(c, c.dtype(3).value_or(self)));
    case Op::amax:
    case Op::amin: require_elements(c); return fold(c, 1, 2, real(c, self));
    case Op::max:
    case Op::min: require_elements(c); return fold_all(c, real(c, self));
    case Op::any:
    case Op::all: return fold_all(c, truth(self));
    case Op::any_dims: c.require(c.is_none(1) || !c.exprs(1).empty()); return fold(c, 1, 2, truth(self));
    case Op::any_dim:
    case Op::all_dim: return fold(c, 1, 2, truth(self));
    case Op::argmax:
    case Op::argmin:
      require_elements(c);
      return c.require(self != DType::kBool && !op::is_complex(self)) && fold(c, 1, 2, DType::kInt64);
    case Op::var_correction:
    case Op::std_correction: return fold(c, 1, 3, floating(c, self));
    case Op::var_mean_correction: return fold(c, 1, 3, floating(c, self)) && fold(c, 1, 3, self);
    case Op::linalg_vector_norm: return fold(c, 2, 3, floating(c, c.dtype(4).value_or(floating(c, self))));
    case Op::logsumexp:
    case Op::norm_ScalarOpt_dim: {
      const std::size_t dims = c.op == Op::logsumexp ? 1 : 2;
      c.require(!c.exprs(dims).empty());
      return fold(c, dims, dims + 1, floating(c, self));
    }
    case Op::max_dim:
    case Op::min_dim: require_elements(c); return fold(c, 1, 2, real(c, self)) && fold(c, 1, 2, DType::kInt64);
    case Op::count_nonzero: {
      const TensorType& t = c.tensor(0);
      return c.give(like(t, reduced_sizes(c, t.sizes, c.integers(1), false), DType::kInt64));
    }
    default: return c.give_up();
  }
}

bool scan(Call& c) {
  const TensorType& self = c.tensor(0);
  c.wrap(c.integer(1), self.dim());
  switch (c.op) {
    case Op::cumsum:
    case Op::cumprod: return c.give(like(self, self.sizes, sum_dtype(c, 2)));
    case Op::logcumsumexp: return c.give(like(self, self.sizes, floating(c, self.dtype)));
    case Op::cummax:
      return c.give(like(self, self.sizes, real(c, self.dtype))) && c.give(like(self, self.sizes, DType::kInt64));
    default: return c.give_up();
  }
}

}  // namespace braze::graph::shape_rules
