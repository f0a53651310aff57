// The tensor-level program: SSA, functional, aten operators, symbolic sizes.
//
//   graph @f(%x: f32[s0, 1024], %w: f32[1024]) -> f32[s0] {
//     symbols s0 in [2, inf]
//     %0: f32[s0, 1024] = aten.mul.Tensor(%x, %w)  // m.py:12
//     %1: f32[s0] = aten.sum.dim_IntList(%0, dim=[1])
//     return %1 }
//
// Functional: no node writes to an operand. View operators (Effect::view) are nodes like others; their result type
// carries the strides. Arguments stand in schema order and are complete (defaults filled in), so a node can be replayed
// without looking anything up. Wrapped numbers stay scalars: `mul.Tensor(%x, 2.0)` has a double where the schema says
// Tensor; interpret and replay make a wrapped 0-dim tensor of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braze/op/op.h"
#include "braze/op/tensor_type.h"
#include "braze/support/ids.h"

namespace braze::graph {

using op::Device;
using op::DType;
using op::Op;
using op::TensorType;
using sym::SymExpr;

using ValueId = support::Id<struct ValueTag>;  ///< a none id stands for an undefined tensor or None in a list
using NodeId = support::Id<struct NodeTag>;

enum class Layout : std::uint8_t { kStrided, kOther };
enum class MemoryFormat : std::uint8_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
struct None {
  bool operator==(const None&) const = default;
};
/// A handle to something that only PyTorch can interpret (a Generator, a ScriptObject); index into Graph::opaques.
struct Opaque {
  std::uint32_t index = 0;
  bool operator==(const Opaque&) const = default;
};
struct Complex {
  double real = 0, imag = 0;
  bool operator==(const Complex&) const = default;
};

/// One argument. ints are SymExpr; Scalars are bool, SymExpr, double or Complex.
using Arg =
    std::variant<None, ValueId, std::vector<ValueId>, bool, SymExpr, double, Complex, std::string, std::vector<SymExpr>,
                 std::vector<double>, std::vector<bool>, DType, Device, Layout, MemoryFormat, Opaque>;

struct Location {
  std::string file;  ///< user's file, "" if unknown
  int line = 0;
  bool operator==(const Location&) const = default;
};

struct Node {
  Op op = Op::kOther;
  std::string name;              ///< qualified name with overload, "aten::mul.Tensor"; always set
  std::vector<Arg> args;         ///< schema order, complete
  std::vector<ValueId> results;  ///< tensors; none for an undefined result. A Tensor[] result is flattened here
  bool returns_list = false;     ///< the single result is a Tensor[]
  Location at;

  bool operator==(const Node&) const = default;
};

struct Value {
  std::string name;  ///< without the %, unique in the graph
  TensorType type;
  NodeId producer;  ///< none: an input
  bool operator==(const Value&) const = default;
};

struct Symbol {
  std::string name;
  std::int64_t low = 2, high = INT64_MAX, hint = 2;
  bool operator==(const Symbol&) const = default;
};

struct Graph {
  std::string name = "f";
  std::vector<Symbol> symbols;
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< in program order: operands before uses
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  ///< may repeat, may be inputs, may be none
  std::vector<std::shared_ptr<void>> opaques;

  const TensorType& type(ValueId v) const { return values[v.index].type; }
  bool operator==(const Graph&) const = default;
};

/// Calls visit(ValueId&) on every operand of the node, none ids left out.
template <class NodeLike, class Visit>
void for_each_operand(NodeLike& node, Visit visit) {
  for (auto& arg : node.args) {
    if (auto* v = std::get_if<ValueId>(&arg)) {
      if (!v->is_none()) visit(*v);
    } else if (auto* list = std::get_if<std::vector<ValueId>>(&arg)) {
      for (auto& v : *list)
        if (!v.is_none()) visit(v);
    }
  }
}

/// Building: append values and nodes with fresh names.
ValueId add_input(Graph& g, std::string_view name, TensorType type);
/// Appends a node; one new value per type. A name of "" gives %0, %1, ...
std::vector<ValueId> add_node(Graph& g, std::string_view op_name, std::vector<Arg> args, std::vector<TensorType> types,
                              Location at = {});

std::string to_text(const Graph& g);
Graph parse(std::string_view text);  ///< parse(to_text(g)) == g, opaques aside; ParseError names the line
/// Throws InternalError that names `after`, the node and its neighbours if a rule of the form above is broken.
void verify(const Graph& g, std::string_view after);

/// Removes nodes whose results reach no output and that are pure or views, and values that nothing names.
void eliminate_dead_code(Graph& g);
/// The same graph with only these outputs (any values), dead code removed; inputs stay all in place.
Graph extract(const Graph& g, std::span<const ValueId> outputs);

}  // namespace braze::graph
