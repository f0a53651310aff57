// Matrix products: dense row-major results of one element type.
#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

/// Rank, element type and device of an operand of a product.
void check(Call& c, const TensorType& t, std::size_t rank, const TensorType& first) {
  c.require(t.dim() == rank && t.dtype == first.dtype && t.device == first.device);
}

bool product_of(Call& c, std::size_t left, std::size_t right, std::size_t rank) {
  const TensorType &a = c.tensor(left), &b = c.tensor(right);
  check(c, a, rank, a);
  check(c, b, rank, a);
  if (!c.sure) return false;
  c.require(c.equal(a.sizes[rank - 1], b.sizes[rank - 2]));
  if (rank == 3) c.require(c.equal(a.sizes[0], b.sizes[0]));
  Sizes sizes = a.sizes;
  sizes[rank - 1] = b.sizes[rank - 1];
  return c.give(like(a, std::move(sizes)));
}

/// The addend of addmm and baddbmm must expand to the result.
bool with_addend(Call& c, std::size_t rank) {
  if (!product_of(c, 1, 2, rank)) return false;
  const TensorType& addend = c.tensor(0);
  c.require(addend.dtype == c.tensor(1).dtype && addend.device == c.tensor(1).device);
  return c.require(c.equal(broadcast(c, addend.sizes, c.out[0]->sizes), c.out[0]->sizes));
}

bool matrix_vector(Call& c, std::size_t matrix) {
  const TensorType &a = c.tensor(matrix), &v = c.tensor(matrix + 1);
  check(c, a, 2, a);
  check(c, v, 1, a);
  if (!c.sure || !c.require(c.equal(a.sizes[1], v.sizes[0]))) return false;
  return c.give(like(a, {a.sizes[0]}));
}

}  // namespace

bool matmul(Call& c) {
  switch (c.op) {
    case Op::mm: return product_of(c, 0, 1, 2);
    case Op::bmm: return product_of(c, 0, 1, 3);
    case Op::addmm:
    case Op::_addmm_activation: return with_addend(c, 2);
    case Op::baddbmm: return with_addend(c, 3);
    case Op::mv: return matrix_vector(c, 0);
    case Op::addmv:
      if (!matrix_vector(c, 1)) return false;
      c.require(c.tensor(0).dtype == c.tensor(1).dtype);
      return c.require(c.equal(broadcast(c, c.tensor(0).sizes, c.out[0]->sizes), c.out[0]->sizes));
    case Op::dot: {
      const TensorType &a = c.tensor(0), &b = c.tensor(1);
      check(c, a, 1, a);
      check(c, b, 1, a);
      return c.sure && c.require(c.equal(a.sizes[0], b.sizes[0])) && c.give(like(a, {}));
    }
    default: return c.give_up();  // matmul is a composite: PyTorch takes it apart before it comes here
  }
}

}  // namespace braze::graph::shape_rules
