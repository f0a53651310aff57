// The interpreter: nested loops over every index, one body evaluation each.
#include "braze/loop/interpret.h"

#include <map>

#include "braze/support/check.h"

namespace braze::loop {
namespace {

using Symbols = std::map<std::string, std::int64_t, std::less<>>;

struct Interpreter {
  const LoopProgram& p;
  const External& external;
  Symbols symbols;  // sizes, and the loop variables of the operation at hand
  std::vector<Array> arrays;
  std::vector<Number> scalars;  // of the body at hand

  std::int64_t value_of(std::string_view name) const {
    if (name[0] == '@') return scalars.at(std::stoul(std::string(name.substr(1)))).integer;
    const auto found = symbols.find(name);
    BRAZE_CHECK(found != symbols.end(), "symbol {} has no value", name);
    return found->second;
  }
  std::int64_t eval(const SymExpr& e) const {
    return sym::evaluate(e, [this](std::string_view name) { return value_of(name); });
  }
  std::vector<std::int64_t> eval(const std::vector<SymExpr>& list) const {
    std::vector<std::int64_t> values;
    for (const SymExpr& e : list) values.push_back(eval(e));
    return values;
  }

  TensorType concrete(TensorType t) const {
    for (SymExpr& e : t.sizes) e = eval(e);
    for (SymExpr& e : t.strides) e = eval(e);
    return t;
  }
  Array fresh(TensorId t) const {
    Array a{concrete(p.tensors[t.index].type), {}};
    a.elements.resize(static_cast<std::size_t>(a.type.numel().constant()));
    return a;
  }

  void bind_symbols(const TensorType& symbolic, const TensorType& given) {
    BRAZE_CHECK(symbolic.dim() == given.dim(), "an input has {} dimensions, not {}", symbolic.dim(), given.dim());
    for (const graph::Symbol& s : p.symbols) {
      for (std::size_t k = 0; k < symbolic.dim(); ++k) {
        if (sym::to_text(symbolic.sizes[k]) == s.name) symbols[s.name] = given.sizes[k].constant();
      }
    }
  }

  /// Row-major position; checks that every index is in range.
  static std::size_t position(const Array& a, const std::vector<std::int64_t>& at) {
    std::size_t linear = 0;
    for (std::size_t k = 0; k < at.size(); ++k) {
      const std::int64_t size = a.type.sizes[k].constant();
      BRAZE_CHECK(at[k] >= 0 && at[k] < size, "index {} in a dimension of size {}", at[k], size);
      linear = linear * static_cast<std::size_t>(size) + static_cast<std::size_t>(at[k]);
    }
    return linear;
  }

  Number load(const Scalar& s) const {
    if (!s.operands.empty() && !scalars[s.operands[0].index].integer) return {};
    const Array& a = arrays[s.tensor.index];
    return a.elements[position(a, eval(s.indices))];
  }

  Number scalar(const Body& body, const Scalar& s) const {
    if (s.op == ScalarOp::constant) return {s.number, s.integer};
    if (s.op == ScalarOp::index) return {0, eval(s.indices[0])};
    if (s.op == ScalarOp::load) return load(s);
    std::vector<Number> operands;
    std::vector<DType> types;
    for (const ScalarId id : s.operands) {
      operands.push_back(scalars[id.index]);
      types.push_back(body.nodes[id.index].type);
    }
    return evaluate(s.op, s.type, operands, types);
  }

  void run(const Body& body) {
    scalars.clear();
    for (const Scalar& s : body.nodes) scalars.push_back(scalar(body, s));
    for (const ScalarId id : body.checks) BRAZE_CHECK(scalars[id.index].integer, "check @{} does not hold", id.index);
  }

  /// Calls visit() with the variables `prefix`0... at every index of the extents, row-major.
  template <class Visit>
  void loop(char prefix, const std::vector<SymExpr>& extents, Visit visit, std::size_t depth = 0) {
    if (depth == extents.size()) return visit();
    const std::int64_t extent = eval(extents[depth]);
    const std::string name = prefix + std::to_string(depth);
    for (std::int64_t k = 0; k < extent; ++k) {
      symbols[name] = k;
      loop(prefix, extents, visit, depth + 1);
    }
  }

  Number yielded(const LoopOp& op, std::size_t k, DType to) const {
    const ScalarId id = op.body.yields[k];
    return convert(scalars[id.index], op.body.nodes[id.index].type, to);
  }

  void map(const LoopOp& op) {
    for (const TensorId t : op.results) arrays[t.index] = fresh(t);
    std::size_t at = 0;
    loop('i', op.space, [&] {
      run(op.body);
      for (std::size_t k = 0; k < op.results.size(); ++k) {
        Array& a = arrays[op.results[k].index];
        a.elements[at] = yielded(op, k, a.type.dtype);
      }
      ++at;
    });
  }

  void reduce(const LoopOp& op) {
    for (const TensorId t : op.results) arrays[t.index] = fresh(t);
    std::size_t at = 0;
    loop('i', op.space, [&] {
      std::vector<Folding> accs(op.results.size());
      const auto type = [&](std::size_t k) { return op.body.nodes[op.body.yields[k].index].type; };
      for (std::size_t k = 0; k < accs.size(); ++k) accs[k] = neutral(op.fold, type(k));
      std::int64_t step = 0;
      loop('r', op.reduced, [&] {
        run(op.body);
        for (std::size_t k = 0; k < accs.size(); ++k)
          fold_in(op.fold, type(k), accs[k], scalars[op.body.yields[k].index], step);
        ++step;
      });
      const bool is_arg = op.fold == Fold::argmax || op.fold == Fold::argmin;
      for (std::size_t k = 0; k < accs.size(); ++k) {
        Array& a = arrays[op.results[k].index];
        a.elements[at] = is_arg ? Number{0, accs[k].best} : convert(accs[k].value, type(k), a.type.dtype);
      }
      ++at;
    });
  }

  void scatter(const LoopOp& op) {
    Array result = fresh(op.results[0]);
    if (!op.init.is_none()) result.elements = arrays[op.init.index].elements;
    const DType dtype = result.type.dtype, compute = op::compute_type(dtype);
    const DType types[] = {compute, compute};
    loop('i', op.space, [&] {
      run(op.body);
      Number& target = result.elements[position(result, eval(op.targets))];
      const Number pair[] = {target, yielded(op, 0, compute)};
      const ScalarOp add = dtype == DType::kBool ? ScalarOp::bit_or : ScalarOp::add;
      target = convert(op.accumulate ? evaluate(add, compute, pair, types) : pair[1], compute, dtype);
    });
    arrays[op.results[0].index] = std::move(result);
  }

  /// The elements of a tensor; a view's are picked from its base's memory.
  Array read(TensorId t) const {
    const Tensor& tensor = p.tensors[t.index];
    if (tensor.base.is_none()) return arrays[t.index];
    std::map<std::int64_t, Number> memory;
    const Array& base = arrays[tensor.base.index];
    walk(base.type, 0, [&](std::int64_t address, std::size_t at) { memory[address] = base.elements[at]; });
    Array view = fresh(t);
    walk(view.type, eval(tensor.offset),
         [&](std::int64_t address, std::size_t at) { view.elements[at] = memory.at(address); });
    return view;
  }
  template <class Visit>
  static void walk(const TensorType& t, std::int64_t offset, Visit visit) {
    const std::int64_t count = t.numel().constant();
    for (std::int64_t at = 0; at < count; ++at) {
      std::int64_t address = offset, rest = at;
      for (std::size_t k = t.dim(); k-- > 0;) {
        address += rest % t.sizes[k].constant() * t.strides[k].constant();
        rest /= t.sizes[k].constant();
      }
      visit(address, static_cast<std::size_t>(at));
    }
  }

  void call(const LoopOp& op) {
    BRAZE_CHECK(external, "the interpreter has no library: {}", op.node.name);
    std::vector<Array> results = external(op, [this](TensorId t) { return read(t); });
    BRAZE_CHECK(results.size() == op.results.size(), "{} gave {} results", op.node.name, results.size());
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!op.results[k].is_none()) arrays[op.results[k].index] = std::move(results[k]);
    }
  }

  void operation(const LoopOp& op) {
    switch (op.kind) {
      case Kind::map: return map(op);
      case Kind::reduce: return reduce(op);
      case Kind::scatter: return scatter(op);
      case Kind::external: return call(op);
    }
  }
};

}  // namespace

std::vector<Array> interpret(const LoopProgram& p, std::span<const Array> inputs, const External& external) {
  BRAZE_CHECK(inputs.size() == p.inputs.size(), "{} inputs for {}", inputs.size(), p.inputs.size());
  Interpreter run{p, external, {}, std::vector<Array>(p.tensors.size()), {}};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    run.bind_symbols(p.tensors[p.inputs[k].index].type, inputs[k].type);
    run.arrays[p.inputs[k].index] = inputs[k];
  }
  for (const LoopOp& op : p.ops) run.operation(op);
  std::vector<Array> outputs;
  for (const TensorId t : p.outputs) outputs.push_back(t.is_none() ? Array{} : run.read(t));
  return outputs;
}

}  // namespace braze::loop
