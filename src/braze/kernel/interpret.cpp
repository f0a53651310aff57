// A walk over the statements; a value is what its name was last given.
#include "braze/kernel/interpret.h"

#include <map>

#include "braze/kernel/memory.h"
#include "braze/loop/interpret.h"
#include "braze/support/check.h"

namespace braze::kernel {
namespace {

using loop::Number;
using Kind = Statement::Kind;

class Interpreter {
 public:
  Interpreter(const Kernel& k, void* const* buffers, const std::int64_t* integers, std::int64_t begin, std::int64_t end)
      : k_(k), begin_(begin), end_(end), values_(k.values.size()), foldings_(k.accumulators.size()) {
    std::size_t next = 0;
    for (const Buffer& b : k.buffers)
      if (b.local == 0 && !b.flag) memory_.push_back(buffers[next++]);
      else if (b.flag) memory_.push_back(nullptr);
      else memory_.push_back(locals_.emplace_back(static_cast<std::size_t>(b.local * op::bytes(b.type))).data());
    for (std::size_t b = 0; b < memory_.size(); ++b)
      if (k.buffers[b].flag) memory_[b] = buffers[next];
    axes_["begin"] = begin;
    axes_["end"] = end;
    for (std::size_t i = 0; i < k.integers.size(); ++i) axes_[k.integers[i]] = integers[i];
  }

  void run() {
    const bool folds = !k_.fold.empty() && axes_.at(k_.integers.back()) != 0;
    run(folds ? k_.fold : k_.body);
  }

 private:
  std::int64_t value_of(std::string_view name) const {
    if (name[0] == '@') return values_.at(std::stoul(std::string(name.substr(1)))).integer;
    const auto found = axes_.find(name);
    BRAZE_CHECK(found != axes_.end(), "axis {} has no value", name);
    return found->second;
  }
  std::int64_t eval(const SymExpr& e) const {
    return sym::evaluate(e, [this](std::string_view name) { return value_of(name); });
  }
  DType type(ValueId v) const { return k_.values[v.index].type; }

  Number read(BufferId b, const SymExpr& index, DType to) const {
    const DType from = k_.buffers[b.index].type;
    return loop::convert(read_number(memory_[b.index], from, eval(index)), from, to);
  }

  Number result(const Value& v) const {
    const Accumulator& a = k_.accumulators[v.accumulator.index];
    const loop::Folding& f = foldings_[v.accumulator.index];
    if (a.fold == Fold::argmax || a.fold == Fold::argmin) return {0, f.best};
    return loop::convert(f.value, a.type, v.type);
  }

  Number compute(const Value& v) const {
    if (v.form == Value::Form::result) return result(v);
    if (v.form == Value::Form::load) {
      if (!v.operands.empty() && !values_[v.operands[0].index].integer) return {};
      return read(v.buffer, v.index, v.type);
    }
    if (v.op == ScalarOp::constant) return loop::convert({v.number, v.integer}, v.type, v.type);
    if (v.op == ScalarOp::index) return loop::convert({0, eval(v.index)}, DType::kInt64, v.type);
    std::vector<Number> operands;
    std::vector<DType> types;
    for (const ValueId o : v.operands) {
      operands.push_back(values_[o.index]);
      types.push_back(type(o));
    }
    return loop::evaluate(v.op, v.type, operands, types);
  }

  void store(const Statement& s) {
    const DType to = k_.buffers[s.buffer.index].type, compute = op::compute_type(to);
    Number x = loop::convert(values_[s.value.index], type(s.value), compute);
    if (s.accumulates) {
      const Number pair[] = {read(s.buffer, s.index, compute), x};
      const DType types[] = {compute, compute};
      x = loop::evaluate(s.combine, compute, pair, types);
    }
    write_number(memory_[s.buffer.index], to, eval(s.index), loop::convert(x, compute, to));
  }

  void update(const Statement& s) {
    const Accumulator& a = k_.accumulators[s.accumulator.index];
    const Number x = loop::convert(values_[s.value.index], type(s.value), a.type);
    loop::fold_in(a.fold, a.type, foldings_[s.accumulator.index], x, eval(s.index));
  }

  void repeat(const Statement& s) {
    const std::int64_t first = s.grid ? begin_ : eval(s.begin), last = s.grid ? end_ : eval(s.end);
    for (std::int64_t at = first; at < last; ++at) {
      axes_[s.axis] = at;
      run(s.body);
    }
  }

  void run(const Statement& s) {
    switch (s.kind) {
      case Kind::let: values_[s.value.index] = compute(k_.values[s.value.index]); return;
      case Kind::reload: values_[s.value.index] = read(s.buffer, s.index, type(s.value)); return;
      case Kind::accumulate: {
        const Accumulator& a = k_.accumulators[s.accumulator.index];
        foldings_[s.accumulator.index] = loop::neutral(a.fold, a.type);
        return;
      }
      case Kind::update: return update(s);
      case Kind::store: return store(s);
      case Kind::check:
        if (!values_[s.value.index].integer) write_number(memory_[s.buffer.index], DType::kInt32, 0, {0, 1});
        return;
      case Kind::define: axes_[s.axis] = eval(s.begin); return;
      case Kind::when:
        if (values_[s.value.index].integer) run(s.body);
        return;
      case Kind::loop: return repeat(s);
    }
  }
  void run(const std::vector<Statement>& body) {
    for (const Statement& s : body) run(s);
  }

  const Kernel& k_;
  std::int64_t begin_, end_;
  std::map<std::string, std::int64_t, std::less<>> axes_;
  std::vector<Number> values_;
  std::vector<loop::Folding> foldings_;
  std::vector<void*> memory_;
  std::vector<std::vector<char>> locals_;
};

}  // namespace

void interpret(const Kernel& k, void* const* buffers, const std::int64_t* integers, std::int64_t begin,
               std::int64_t end) {
  Interpreter(k, buffers, integers, begin, end).run();
}

}  // namespace braze::kernel
