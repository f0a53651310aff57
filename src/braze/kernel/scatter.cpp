// First the owned part of the result is copied from `init` or cleared, then targets inside it are written in order.
#include "braze/kernel/scatter.h"

#include <algorithm>
#include <unordered_set>

#include "braze/kernel/cost.h"
#include "braze/kernel/values.h"
#include "braze/schedule/access.h"

namespace braze::kernel {
namespace {

class ScatterTiler {
 public:
  ScatterTiler(const schedule::Schedule& s, const schedule::Group& group, const support::Target& target)
      : s_(s), group_(group), member_(group.members[0]), op_(s.program.ops[member_.op]), v_(s, group, target.strict) {}

  Tiled run() {
    result_ = op_.results[0];
    type_ = &s_.program.tensors[result_.index].type;
    const ValueId value = v_.cast(v_.yields_of(member_)[0], op::compute_type(type_->dtype));
    for (const SymExpr& t : op_.targets) targets_.push_back(v_.index_at(member_, t));
    buffer_ = v_.buffer_of(result_);
    Kernel k;
    k.body.push_back(start());
    k.body.push_back(walk(value));
    k.values = std::move(v_.values);
    k.buffers = std::move(v_.buffers);
    for (std::size_t b = 0; b < k.buffers.size(); ++b)
      if (!k.buffers[b].flag) out_.arguments.push_back(v_.arguments[b]);
    out_.checks = !flag_.is_none();
    for_each_statement(k.body, [&](const Statement& s) {
      if (s.kind == Statement::Kind::store || s.kind == Statement::Kind::check)
        k.buffers[s.buffer.index].written = true;
    });
    bind_integers(k, s_.program, out_, 1);
    out_.extent = type_->dim() == 0 ? SymExpr(1) : type_->sizes[0];
    out_.grain = grain();
    out_.origins = op_.origin;
    out_.kernel = std::move(k);
    return std::move(out_);
  }

 private:
  static Statement loop(std::string axis, SymExpr begin, SymExpr end) {
    Statement s;
    s.kind = Statement::Kind::loop;
    s.axis = std::move(axis);
    s.begin = std::move(begin);
    s.end = std::move(end);
    return s;
  }
  static Statement with(Statement::Kind kind, ValueId v) {
    Statement s;
    s.kind = kind;
    s.value = v;
    return s;
  }
  static Statement nest(std::vector<Statement> loops, std::vector<Statement> body) {
    for (std::size_t k = loops.size(); k-- > 0;) {
      loops[k].body = std::move(body);
      body = {};
      body.push_back(std::move(loops[k]));
    }
    return std::move(body[0]);
  }

  /// for d0 in begin..end, d1, ...: result[d] = init[d] or 0
  Statement start() {
    std::vector<SymExpr> at;
    std::vector<Statement> loops;
    for (std::size_t d = 0; d < std::max<std::size_t>(1, type_->dim()); ++d) {
      const std::string axis = support::format("d{}", d);
      at.push_back(SymExpr::symbol(axis));
      loops.push_back(d == 0 ? loop(axis, SymExpr::symbol("begin"), SymExpr::symbol("end"))
                             : loop(axis, 0, type_->sizes[d]));
    }
    if (type_->dim() > 0 && type_->strides.back().is_value(1)) loops.back().vector = true;
    at.resize(type_->dim());
    std::vector<Statement> body;
    const ValueId from = op_.init.is_none() ? v_.constant(op::compute_type(type_->dtype), 0, 0)
                                            : v_.load(v_.buffer_of(op_.init),
                                                      schedule::address(s_.program.tensors[op_.init.index].type, at));
    body.push_back(with(Statement::Kind::let, from));
    body.push_back(store(from, schedule::address(*type_, at)));
    return nest(std::move(loops), std::move(body));
  }

  Statement store(ValueId v, SymExpr index) const {
    Statement s = with(Statement::Kind::store, v);
    s.buffer = buffer_;
    s.index = std::move(index);
    return s;
  }

  ValueId index_value(const SymExpr& e) {
    Value v;
    v.op = ScalarOp::index;
    v.type = DType::kInt64;
    v.index = e;
    return v_.add(std::move(v));
  }

  /// The target lies in the owned rows and inside the result.
  ValueId is_owned() {
    ValueId all;
    const auto also = [&](ScalarOp op, const SymExpr& a, const SymExpr& b) {
      const ValueId c = v_.scalar(op, DType::kBool, {index_value(a), index_value(b)});
      all = all.is_none() ? c : v_.scalar(ScalarOp::bit_and, DType::kBool, {all, c});
    };
    for (std::size_t d = 0; d < targets_.size(); ++d) {
      also(ScalarOp::ge, targets_[d], d == 0 ? SymExpr::symbol("begin") : SymExpr(0));
      also(ScalarOp::lt, targets_[d], d == 0 ? SymExpr::symbol("end") : type_->sizes[d]);
    }
    return all;
  }

  void name(ValueId v, std::vector<Statement>& body) {
    if (!named_.insert(v.index).second) return;
    const Value value = v_.values[v.index];
    for (ValueId o : value.operands) name(o, body);
    std::vector<std::string> names;
    if (!value.index.is_constant()) collect_symbols(value.index, names);
    for (const std::string& n : names)
      if (n[0] == '@') name(ValueId(std::stoul(n.substr(1))), body);
    body.push_back(with(Statement::Kind::let, v));
  }

  /// The last axis runs in lanes if only the last target follows it, contiguously.
  bool has_lanes(const schedule::Axis& last) const {
    if (targets_.size() < 2 || !type_->strides.back().is_value(1)) return false;
    const std::vector<std::string> names{last.name};
    for (std::size_t d = 0; d < targets_.size(); ++d) {
      if (depends(targets_[d], last.name) != (d + 1 == targets_.size())) return false;
    }
    for (const ValueId c : v_.checks)
      if (depends(SymExpr::symbol(support::format("@{}", c.index)), last.name)) return false;
    const auto linear = schedule::linear_in(targets_.back(), names);
    return linear && linear->coefficients[0].is_value(1) && !mentions_value(linear->rest);
  }
  static bool mentions_value(const SymExpr& e) {
    std::vector<std::string> names;
    collect_symbols(e, names);
    return std::ranges::any_of(names, [](const std::string& n) { return n[0] == '@'; });
  }
  bool depends(const SymExpr& e, const std::string& axis) const {
    std::vector<std::string> names;
    collect_symbols(e, names);
    return std::ranges::any_of(names, [&](const std::string& n) {
      if (n[0] != '@') return n == axis;
      const Value& v = v_.values[std::stoul(n.substr(1))];
      return depends(v.index, axis) || std::ranges::any_of(v.operands, [&](ValueId o) {
               return depends(SymExpr::symbol(support::format("@{}", o.index)), axis);
             });
    });
  }

  Statement walk(ValueId value) {
    std::vector<Statement> loops, body, inside;
    for (const schedule::Axis& a : group_.axes) loops.push_back(loop(a.name, 0, a.extent));
    const bool lanes = !group_.axes.empty() && has_lanes(group_.axes.back());
    std::vector<SymExpr> tests = targets_;
    if (lanes) targets_.pop_back();  // it follows the axis, which fits
    const ValueId owned = targets_.empty() ? ValueId() : is_owned();
    targets_ = tests;
    for (const ValueId c : v_.checks) {
      name(c, body);
      Statement s = with(Statement::Kind::check, c);
      s.buffer = flag();
      body.push_back(std::move(s));
    }
    Statement st = store(value, v_.simplified(schedule::address(*type_, targets_)));
    st.accumulates = op_.accumulate;
    if (owned.is_none()) {
      name(value, body);
      body.push_back(std::move(st));
    } else {
      name(owned, body);
      Statement when = with(Statement::Kind::when, owned);
      if (lanes) {
        Statement l = std::move(loops.back());
        loops.pop_back();
        l.vector = true;
        name(value, l.body);
        l.body.push_back(std::move(st));
        when.body.push_back(std::move(l));
      } else {
        name(value, when.body);
        when.body.push_back(std::move(st));
      }
      body.push_back(std::move(when));
    }
    if (loops.empty()) {
      Statement once = loop("once", 0, 1);
      loops.push_back(std::move(once));
    }
    return nest(std::move(loops), std::move(body));
  }

  BufferId flag() {
    if (flag_.is_none()) flag_ = v_.new_buffer({DType::kInt32, true, 0, true}, {});
    return flag_;
  }

  SymExpr grain() const {
    const double work = 0.3 * static_cast<double>(schedule::estimate(type_->numel(), s_.program)) +
                        1.5 * static_cast<double>(schedule::estimate(sym::product(op_.space), s_.program));
    const std::int64_t rows =
        std::max<std::int64_t>(1, type_->dim() == 0 ? 1 : schedule::estimate(type_->sizes[0], s_.program));
    return work < 2 * kSerialNanoseconds ? rows : (rows + 15) / 16;
  }

  const schedule::Schedule& s_;
  const schedule::Group& group_;
  const schedule::Member& member_;
  const loop::LoopOp& op_;
  Values v_;
  Tiled out_;
  TensorId result_;
  const op::TensorType* type_ = nullptr;
  std::vector<SymExpr> targets_;
  BufferId buffer_;
  BufferId flag_;
  std::unordered_set<std::uint32_t> named_;
};

}  // namespace

Tiled tile_scatter(const schedule::Schedule& s, const schedule::Group& group, const support::Target& target) {
  return ScatterTiler(s, group, target).run();
}

}  // namespace braze::kernel
