// Explicit code: axes with a kind, loads, stores, accumulators. Emitters are folds over it and decide nothing.
//
//   kernel @k(b0: f32, b1: f32, b2: f32 out) {
//     grid g {
//       accumulate a0 = sum f32
//       vector j in 0..1024 unrolled {
//         %0: f32 = load b0[1024*g + j]
//         %1: f32 = load b1[1024*g + j]
//         %2: f32 = mul(%0, %1)
//         update a0, %2 }
//       %3: f32 = result a0
//       store b2[g], %3 } }
//
// The grid axis (at most one, outermost) runs over the part of the launch that the host gave this call; without one,
// `begin` and `end` in indices are that part. A vector axis
// runs in lanes: values that depend on it are vectors. An accumulator declared outside a vector axis and updated inside
// folds its lanes when its result is taken; one declared inside keeps one value per lane. Indices are element offsets
// over axes, integer arguments and `@n`, the value %n. Values of half types are f32 (loads widen, stores round).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braze/loop/loop.h"

namespace braze::kernel {

using loop::DType;
using loop::Fold;
using loop::ScalarOp;
using sym::SymExpr;

using ValueId = support::Id<struct KernelValueTag>;
using BufferId = support::Id<struct KernelBufferTag>;
using AccumulatorId = support::Id<struct AccumulatorTag>;

struct Buffer {
  DType type = DType::kFloat32;
  bool written = false;
  std::int64_t local = 0;  ///< 0: an argument. Else memory of the call itself, so many elements
  bool flag = false;       ///< the i32 that a failed check sets: the last pointer of all
  bool operator==(const Buffer&) const = default;
};

struct Value {
  enum class Form : std::uint8_t { scalar, load, result };
  Form form = Form::scalar;
  ScalarOp op = ScalarOp::constant;  ///< of a scalar
  DType type = DType::kFloat32;
  std::vector<ValueId> operands;  ///< of a load: none, or the mask under which memory is touched (else 0)
  double number = 0;
  std::int64_t integer = 0;
  BufferId buffer;            ///< of a load
  SymExpr index;              ///< of a load; of ScalarOp::index: the value
  AccumulatorId accumulator;  ///< of a result
  bool operator==(const Value&) const = default;
};

struct Accumulator {
  Fold fold = Fold::sum;
  DType type = DType::kFloat32;  ///< of the values folded; argmax and argmin give an i64
  bool operator==(const Accumulator&) const = default;
};

struct Statement {
  enum class Kind : std::uint8_t {
    let,         ///< names a value
    reload,      ///< names a value again: loaded from where an earlier pass stored it
    accumulate,  ///< a fresh accumulator
    update,
    store,
    check,   ///< a b8 value; where it is false, the flag buffer is set
    define,  ///< an axis with one position: `begin`
    when,    ///< body runs if the b8 value, a single one, holds
    loop,
  };
  Kind kind = Kind::let;
  ValueId value;              ///< let, reload, update, store, check, when
  AccumulatorId accumulator;  ///< accumulate, update
  BufferId buffer;            ///< store, reload; check: the flag
  SymExpr index;              ///< store, reload; update of argmax and argmin: the linear index
  bool accumulates = false;   ///< store: memory = combine(memory, value)
  ScalarOp combine = ScalarOp::add;
  // loop
  bool grid = false, vector = false;
  bool unrolled = false;  ///< a vector loop whose accumulators are kept in four parts
  std::string axis;
  SymExpr begin, end;  ///< not of the grid
  std::vector<Statement> body;
  bool operator==(const Statement&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<std::string> integers;  ///< arguments, in order
  std::vector<Value> values;
  std::vector<Accumulator> accumulators;
  std::vector<Statement> body;
  std::vector<Statement> fold;  ///< a second launch: folds what slots left (integer argument `fold` = 1)
  bool operator==(const Kernel&) const = default;
};

std::string to_text(const Kernel& k);
Kernel parse(std::string_view text);                   ///< parse(to_text(k)) == k for what tile() gives; ParseError
void verify(const Kernel& k, std::string_view after);  ///< InternalError

/// All statements in order, nested ones after their loop.
template <class Statements, class Visit>
void for_each_statement(Statements& body, Visit visit) {
  for (auto& s : body) {
    visit(s);
    for_each_statement(s.body, visit);
  }
}

}  // namespace braze::kernel
