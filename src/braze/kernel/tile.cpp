// A group becomes: an optional loop over slots, a loop over rows, and per pass over a row one nest that updates
// accumulators and stores. A value is computed in the row if it depends on no inner axis, else in every pass that uses
// it.
#include "braze/kernel/tile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "braze/kernel/axes.h"
#include "braze/kernel/cost.h"
#include "braze/kernel/scatter.h"
#include "braze/schedule/access.h"
#include "braze/support/check.h"

namespace braze::kernel {
namespace {

using schedule::Group;
using schedule::Member;
using schedule::Role;

constexpr std::int64_t kLongestLocal = 4096;  // elements of a row kept between passes
constexpr std::size_t kMostLocals = 3;
constexpr int kHeavy = 8;              // weight of a value worth keeping
constexpr std::int64_t kBlock = 64;    // side of the blocks in which transposed operands are walked
constexpr std::size_t kUnrolled = 30;  // values in a pass whose accumulators are split in four

struct Store {
  BufferId buffer;
  SymExpr index;
  ValueId value;
  bool full;  // in a pass, else per row
};

struct Update {
  AccumulatorId accumulator;  // row, total
  BufferId partial;           // column
  ScalarOp combine = ScalarOp::add;
  ValueId value;
  SymExpr index;  // linear, of arg reductions
  Role role;
  int pass = 0;
};

struct Facts {         // of a value
  bool inner = false;  // depends on an inner axis
  int pass = 0;        // the first pass that can compute it
  int weight = 0;
};

ScalarOp combine_of(Fold f) {
  switch (f) {
    case Fold::sum: return ScalarOp::add;
    case Fold::prod: return ScalarOp::mul;
    case Fold::max: return ScalarOp::maximum;
    case Fold::min: return ScalarOp::minimum;
    case Fold::any: return ScalarOp::bit_or;
    default: return ScalarOp::bit_and;
  }
}

struct Scope {
  std::vector<Statement> body;
  std::unordered_set<std::uint32_t> named;
};

class Tiler {
 public:
  Tiler(const schedule::Schedule& s, const Group& group, const support::Target& target)
      : s_(s), group_(group), target_(target), v_(s, group, target.strict) {}

  Tiled run() {
    collect();
    arrange();
    study();
    Statement grid = has_partials() ? slot_loop() : row_loop();
    if (has_partials() && slots_ > 1) fold_launch();
    finish(std::move(grid));
    return std::move(out_);
  }

 private:
  // ---- what the group computes, over its axes

  void collect() {
    for (const Member& m : group_.members)
      if (m.role != Role::folded) collect_member(m);
    for (const Member& m : group_.members)
      if (m.role == Role::folded) collect_stores(m, folded_);
    for (const Member& m : group_.members)
      if (m.role == Role::column || m.role == Role::total) collect_results(m);
  }

  void collect_member(const Member& m) {
    const loop::LoopOp& op = s_.program.ops[m.op];
    if (op.kind == loop::Kind::map) return collect_stores(m, stores_);
    const auto yields = v_.yields_of(m);
    for (std::size_t n = 0; n < yields.size(); ++n) {
      const DType type = v_.values[yields[n].index].type;
      const AccumulatorId a = new_accumulator({op.fold, type});
      const bool arg = op.fold == Fold::argmax || op.fold == Fold::argmin;
      const ValueId result = v_.result(a, arg ? DType::kInt64 : type);
      v_.reductions[{m.op, n}] = result;
      updates_.push_back(
          {a, BufferId(), combine_of(op.fold), yields[n], arg ? reduced_position(m) : SymExpr(), m.role});
      if (m.role == Role::row && !op.results[n].is_none() && s_.stored[op.results[n].index])
        stores_.push_back({v_.buffer_of(op.results[n]), result_address(m, n), result, false});
    }
  }

  void collect_stores(const Member& m, std::vector<Store>& stores) {
    const loop::LoopOp& op = s_.program.ops[m.op];
    bool any = false;
    for (TensorId t : op.results) any = any || (!t.is_none() && s_.stored[t.index]);
    if (!any) return;
    const auto yields = v_.yields_of(m);
    for (std::size_t n = 0; n < yields.size(); ++n)
      if (!op.results[n].is_none() && s_.stored[op.results[n].index])
        stores.push_back({v_.buffer_of(op.results[n]), result_address(m, n), to_result(yields[n], op.results[n]),
                          m.role == Role::full});
  }

  void collect_results(const Member& m) {
    const loop::LoopOp& op = s_.program.ops[m.op];
    for (std::size_t n = 0; n < op.results.size(); ++n)
      if (!op.results[n].is_none() && s_.stored[op.results[n].index])
        folded_.push_back({v_.buffer_of(op.results[n]), result_address(m, n),
                           to_result(v_.reductions.at({m.op, n}), op.results[n]), false});
  }

  ValueId to_result(ValueId value, TensorId t) {
    return v_.cast(value, op::compute_type(s_.program.tensors[t.index].type.dtype));
  }

  SymExpr result_address(const Member& m, std::size_t n) {
    const loop::LoopOp& op = s_.program.ops[m.op];
    return v_.simplified(
        schedule::address(s_.program.tensors[op.results[n].index].type, std::span(m.variables).first(op.space.size())));
  }

  SymExpr reduced_position(const Member& m) {
    const loop::LoopOp& op = s_.program.ops[m.op];
    SymExpr position;
    for (std::size_t k = 0; k < op.reduced.size(); ++k)
      position = position * op.reduced[k] + m.variables[op.space.size() + k];
    return v_.simplified(position);
  }

  AccumulatorId new_accumulator(Accumulator a) {
    k_.accumulators.push_back(a);
    return AccumulatorId(k_.accumulators.size() - 1);
  }

  // ---- axes

  void arrange() {
    std::vector<Access> accesses;
    std::vector<SymExpr> indices;
    for (const Store& s : stores_) accesses.push_back({s.index, 2});
    for (const Store& s : folded_) accesses.push_back({s.index, 1});
    for (const Value& v : v_.values) {
      if (v.form == Value::Form::load) accesses.push_back({v.index, 1});
      if (v.form == Value::Form::scalar && v.op == ScalarOp::index) indices.push_back(v.index);
    }
    for (const Update& u : updates_) indices.push_back(u.index);
    layout_ = lay_out(group_, accesses, indices);
    for (Value& v : v_.values) v.index = renamed(v.index);
    for (auto* list : {&stores_, &folded_})
      for (Store& s : *list) s.index = renamed(s.index);
    for (Update& u : updates_) u.index = renamed(u.index);
    if (!group_.has_roles)
      for (std::size_t k = 0; k < layout_.axes.size(); ++k)
        layout_.axes[k].outer = static_cast<int>(k) != layout_.vector;
    for (std::size_t k = 0; k < layout_.axes.size(); ++k) {
      const schedule::Axis& a = layout_.axes[k];
      if (static_cast<int>(k) == layout_.vector) vector_ = &a;
      else (a.outer ? outer_ : inner_).push_back(&a);
    }
    by_lane_ = group_.by_lane && vector_;
  }

  SymExpr renamed(const SymExpr& e) const {
    if (e.is_constant() || layout_.renames.empty()) return e;
    return substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
      for (const auto& [from, to] : layout_.renames)
        if (from == name) return to;
      return std::nullopt;
    });
  }

  // ---- facts about values, in order of creation: operands come first

  bool is_inner_axis(std::string_view name) const {
    if (vector_ && !by_lane_ && vector_->name == name) return true;
    return std::ranges::any_of(inner_, [&](const schedule::Axis* a) { return a->name == name; });
  }

  void add_index_facts(Facts& f, const SymExpr& e) const {
    std::vector<std::string> names;
    collect_symbols(e, names);
    for (const std::string& n : names) {
      if (n[0] == '@') join(f, facts_[std::stoul(n.substr(1))]);
      if (is_inner_axis(n)) f.inner = true;
    }
  }

  static void join(Facts& f, const Facts& o) {
    f.inner = f.inner || o.inner;
    f.pass = std::max(f.pass, o.pass);
    f.weight = std::min(1000, f.weight + (o.inner ? o.weight : 0));
  }

  void study() {
    facts_.resize(v_.values.size());
    for (std::size_t k = 0; k < v_.values.size(); ++k) {
      const Value& v = v_.values[k];
      Facts f;
      for (ValueId o : v.operands) join(f, facts_[o.index]);
      if (!v.index.is_constant()) add_index_facts(f, v.index);
      if (v.form == Value::Form::scalar) f.weight += schedule::weight(v.op);
      if (v.form == Value::Form::result)
        for (Update& u : updates_)
          if (u.accumulator == v.accumulator) {
            u.pass = facts_[u.value.index].pass;
            f.pass = u.pass + 1;
          }
      facts_[k] = f;
    }
    for (Update& u : updates_) u.pass = facts_[u.value.index].pass;
    cost_ = row_cost(v_.values, facts_inner(), inner_extent(), s_.program);
    if (has_partials()) {
      const double total = cost_ * static_cast<double>(schedule::estimate(outer_extent(), s_.program));
      slots_ = total < kSerialNanoseconds ? 1 : std::max(1, target_.threads);
    }
  }

  std::vector<bool> facts_inner() const {
    std::vector<bool> inner;
    for (const Facts& f : facts_) inner.push_back(f.inner || by_lane_);
    return inner;
  }

  SymExpr outer_extent() const {
    SymExpr e = 1;
    for (const schedule::Axis* a : outer_) e = e * a->extent;
    return by_lane_ ? e * vector_->extent : e;
  }
  SymExpr inner_extent() const {
    SymExpr e = 1;
    for (const schedule::Axis* a : inner_) e = e * a->extent;
    return vector_ && !by_lane_ ? e * vector_->extent : e;
  }

  bool has_partials() const {
    return std::ranges::any_of(updates_, [](const Update& u) { return u.role != Role::row; });
  }

  // ---- statements

  static Statement let(ValueId v) {
    Statement s;
    s.value = v;
    return s;
  }
  static Statement loop(std::string axis, SymExpr begin, SymExpr end, bool vector = false) {
    Statement s;
    s.kind = Statement::Kind::loop;
    s.axis = std::move(axis);
    s.begin = std::move(begin);
    s.end = std::move(end);
    s.vector = vector;
    return s;
  }
  static Statement accumulate(AccumulatorId a) {
    Statement s;
    s.kind = Statement::Kind::accumulate;
    s.accumulator = a;
    return s;
  }
  static Statement store(BufferId b, SymExpr index, ValueId v) {
    Statement s;
    s.kind = Statement::Kind::store;
    s.buffer = b;
    s.index = std::move(index);
    s.value = v;
    return s;
  }

  /// Names v and what it is made of, in the row where it can be, else in the pass.
  void need(ValueId v, Scope& row, Scope* pass, int number) {
    const Facts& f = facts_[v.index];
    Scope& scope = f.inner && pass ? *pass : row;
    if (!scope.named.insert(v.index).second) return;
    if (f.inner && pass && keep(v, *pass, number)) return;
    const Value& value = v_.values[v.index];
    for (ValueId o : value.operands) need(o, row, pass, number);
    need_index(value.index, row, pass, number);
    scope.body.push_back(let(v));
    if (f.inner) first_pass_.try_emplace(v.index, number);
  }

  void need_index(const SymExpr& e, Scope& row, Scope* pass, int number) {
    if (e.is_constant()) return;
    std::vector<std::string> names;
    collect_symbols(e, names);
    for (const std::string& n : names)
      if (n[0] == '@') need(ValueId(std::stoul(n.substr(1))), row, pass, number);
  }

  /// A heavy value of an earlier pass is stored there and loaded here.
  bool keep(ValueId v, Scope& pass, int number) {
    const auto first = first_pass_.find(v.index);
    if (first == first_pass_.end() || first->second >= number || facts_[v.index].weight < kHeavy) return false;
    if (by_lane_ || !vector_ || !inner_.empty()) return false;
    const auto extent = vector_->extent.maybe_constant();
    auto kept = kept_.find(v.index);
    if (kept == kept_.end()) {
      if (!extent || *extent > kLongestLocal || kept_.size() >= kMostLocals) return false;
      Buffer local{v_.values[v.index].type, true, (*extent + 63) / 64 * 64};
      const BufferId b = v_.new_buffer(local, {});
      kept = kept_.emplace(v.index, b).first;
      passes_[static_cast<std::size_t>(first->second)].push_back(store(b, SymExpr::symbol(vector_->name), v));
    }
    Statement s = store(kept->second, SymExpr::symbol(vector_->name), v);
    s.kind = Statement::Kind::reload;
    pass.body.push_back(s);
    return true;
  }

  /// The passes over one row, and what is done once per row.
  std::vector<Statement> row_body() {
    Scope row;
    int last = 0;
    for (const Update& u : updates_) last = std::max(last, u.pass);
    for (const Store& s : stores_) last = std::max(last, facts_[s.value.index].pass);
    for (const auto& c : v_.checks) last = std::max(last, facts_[c.index].pass);
    std::vector<std::size_t> place(static_cast<std::size_t>(last) + 1);  // of each pass in the row
    passes_.resize(place.size());
    for (int p = 0; p <= last; ++p) {
      Scope pass;
      fill_pass(p, row, pass);
      passes_[static_cast<std::size_t>(p)] = std::move(pass.body);
      place[static_cast<std::size_t>(p)] = row.body.size();
      row.body.emplace_back();  // the pass
    }
    for (const Store& s : stores_) {
      if (s.full && inner_or_vector()) continue;
      need(s.value, row, nullptr, last);
      need_index(s.index, row, nullptr, last);
      row.body.push_back(store(s.buffer, s.index, s.value));
    }
    std::vector<Statement> body;
    for (std::size_t k = 0, p = 0; k < row.body.size(); ++k) {
      if (p < place.size() && place[p] == k) append_pass(p++, body);
      else body.push_back(std::move(row.body[k]));
    }
    return body;
  }

  bool inner_or_vector() const { return !inner_.empty() || (vector_ && !by_lane_); }

  std::uint32_t find_result(AccumulatorId a) const {
    for (std::uint32_t k = 0; k < v_.values.size(); ++k)
      if (v_.values[k].form == Value::Form::result && v_.values[k].accumulator == a) return k;
    return UINT32_MAX;
  }

  void fill_pass(int p, Scope& row, Scope& pass) {
    const bool nest = inner_or_vector();
    for (const Update& u : updates_) {
      if (u.pass != p) continue;
      need(u.value, row, &pass, p);
      need_index(u.index, row, &pass, p);
      Scope& scope = facts_[u.value.index].inner || u.role != Role::total || !nest ? pass : row;
      scope.body.push_back(update(u));
    }
    for (const Store& s : stores_) {
      if (!s.full || !nest || facts_[s.value.index].pass != p) continue;
      need(s.value, row, &pass, p);
      need_index(s.index, row, &pass, p);
      pass.body.push_back(store(s.buffer, s.index, s.value));
    }
    for (const ValueId c : v_.checks) {
      if (facts_[c.index].pass != p) continue;
      need(c, row, &pass, p);
      Statement s = store(flag(), 0, c);
      s.kind = Statement::Kind::check;
      (facts_[c.index].inner ? pass : row).body.push_back(s);
    }
  }

  BufferId flag() {
    if (flag_.is_none()) flag_ = v_.new_buffer({DType::kInt32, true, 0, true}, {});
    return flag_;
  }

  Statement update(const Update& u) const {
    if (u.role != Role::column) {
      Statement s = accumulate(u.accumulator);
      s.kind = Statement::Kind::update;
      s.value = u.value;
      s.index = u.index;
      return s;
    }
    Statement s = store(u.partial, slot_position() * inner_extent() + inner_position(), u.value);
    s.accumulates = true;
    s.combine = u.combine;
    return s;
  }

  void append_pass(std::size_t p, std::vector<Statement>& body) {
    if (passes_[p].empty()) return;
    for (const Update& u : updates_)
      if (u.role == Role::row && u.pass == static_cast<int>(p)) body.push_back(accumulate(u.accumulator));
    std::vector<Statement> nest = std::move(passes_[p]);
    const bool updates =
        std::ranges::any_of(nest, [](const Statement& s) { return s.kind == Statement::Kind::update; });
    if (vector_ && !by_lane_) {
      Statement l = loop(vector_->name, vector_begin_, vector_end_ ? *vector_end_ : vector_->extent, true);
      l.unrolled = updates && nest.size() <= kUnrolled;
      l.body = std::move(nest);
      nest = {};
      nest.push_back(std::move(l));
    }
    for (std::size_t k = inner_.size(); k-- > 0;) {
      Statement l = loop(inner_[k]->name, 0, inner_[k]->extent);
      l.body = std::move(nest);
      nest = {};
      nest.push_back(std::move(l));
    }
    for (Statement& s : nest) body.push_back(std::move(s));
  }

  // ---- the loops around rows

  /// Defines the outer axes from one row number.
  std::vector<Statement> with_outer(const SymExpr& row, std::vector<Statement> body) const {
    std::vector<Statement> defines;
    SymExpr size = 1;
    for (std::size_t k = outer_.size(); k-- > 0;) {
      Statement d;
      d.kind = Statement::Kind::define;
      d.axis = outer_[k]->name;
      d.begin = k == 0 ? floor_div(row, size) : mod(floor_div(row, size), outer_[k]->extent);
      size = size * outer_[k]->extent;
      defines.insert(defines.begin(), std::move(d));
    }
    for (Statement& s : body) defines.push_back(std::move(s));
    return defines;
  }

  SymExpr rows() const {
    SymExpr e = 1;
    for (const schedule::Axis* a : outer_) e = e * a->extent;
    return e;
  }

  /// for each row { defines; lanes { body } }, over all rows of the launch.
  Statement row_loop() {
    if (outer_.empty() && vector_ && (by_lane_ || (updates_.empty() && inner_.empty()))) return flat_loop();
    if (const schedule::Axis* crossed = crossed_axis()) return blocked_loop(crossed);
    std::vector<Statement> body = row_body();
    if (by_lane_) body = {lanes(std::move(body), 0, vector_->extent)};
    Statement g = loop(outer_.size() == 1 ? outer_[0]->name : "row", 0, 0);
    if (outer_.size() > 1) body = with_outer(SymExpr::symbol("row"), std::move(body));
    g.grid = true;
    g.body = std::move(body);
    out_.extent = rows();
    set_grain(by_lane_ ? cost_ * static_cast<double>(schedule::estimate(vector_->extent, s_.program)) : cost_);
    return g;
  }

  /// An outer axis along which some load is contiguous that jumps along the vector axis: a transposed operand.
  const schedule::Axis* crossed_axis() const {
    if (!updates_.empty() || !inner_.empty() || !vector_ || by_lane_) return nullptr;
    for (const Value& v : v_.values) {
      if (v.form != Value::Form::load || v.index.is_constant()) continue;
      for (const schedule::Axis* o : outer_) {
        const std::vector<std::string> names{o->name, vector_->name};
        const auto linear = schedule::linear_in(v.index, names);
        if (!linear || !linear->coefficients[0].is_value(1)) continue;
        if (linear->coefficients[1].is_value(0) || schedule::estimate(o->extent, s_.program) < kBlock) continue;
        return o;
      }
    }
    return nullptr;
  }

  /// Blocks of kBlock x kBlock elements, so that the lines of a transposed operand are used whole while in cache.
  Statement blocked_loop(const schedule::Axis* crossed) {
    const SymExpr blocks = floor_div(crossed->extent + (kBlock - 1), kBlock), row = SymExpr::symbol("row");
    const SymExpr block = SymExpr::symbol("block"), chunk = SymExpr::symbol("chunk");
    vector_begin_ = chunk * kBlock;
    vector_end_ = min(chunk * kBlock + kBlock, vector_->extent);
    Statement rows = loop(crossed->name, block * kBlock, min(block * kBlock + kBlock, crossed->extent));
    rows.body = row_body();
    Statement chunks = loop("chunk", 0, floor_div(vector_->extent + (kBlock - 1), kBlock));
    chunks.body.push_back(std::move(rows));
    Statement define;
    define.kind = Statement::Kind::define;
    define.axis = "block";
    define.begin = mod(row, blocks);
    std::vector<Statement> body;
    body.push_back(std::move(define));
    body.push_back(std::move(chunks));
    std::erase(outer_, crossed);
    Statement g = loop("row", 0, 0);
    g.grid = true;
    g.body = with_outer(floor_div(row, blocks), std::move(body));
    out_.extent = this->rows() * blocks;
    set_grain(cost_ * kBlock * 3);
    return g;
  }

  Statement lanes(std::vector<Statement> body, SymExpr begin, SymExpr end) const {
    Statement l = loop(vector_->name, std::move(begin), std::move(end), true);
    l.body = std::move(body);
    return l;
  }

  /// No rows: the launch itself is cut along the vector axis.
  Statement flat_loop() {
    std::vector<Statement> body = row_body();
    Statement g = by_lane_ ? lanes(std::move(body), 0, 0) : std::move(body.back());
    if (!by_lane_) {  // values that depend on nothing are named inside
      body.pop_back();
      g.body.insert(g.body.begin(), std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
    }
    g.grid = true;
    g.unrolled = false;
    out_.extent = vector_->extent;
    set_grain(by_lane_ ? cost_
                       : cost_ / static_cast<double>(
                                     std::max<std::int64_t>(1, schedule::estimate(vector_->extent, s_.program))));
    if (const auto grain = out_.grain.maybe_constant()) out_.grain = (*grain + 63) / 64 * 64;
    return g;
  }

  void set_grain(double nanoseconds_per_step) {
    out_.grain =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(kSerialNanoseconds / std::max(nanoseconds_per_step, 0.01)));
  }

  // ---- slots: each sweeps its share of the rows and leaves partial results

  SymExpr slot_position() const { return slots_ > 1 ? SymExpr::symbol("slot") : SymExpr(0); }
  SymExpr slot_count() const { return slots_ > 1 ? SymExpr::symbol("slots") : SymExpr(1); }
  SymExpr inner_position() const {
    SymExpr p;
    for (const schedule::Axis* a : inner_) p = p * a->extent + SymExpr::symbol(a->name);
    return vector_ ? p * vector_->extent + SymExpr::symbol(vector_->name) : p;
  }

  BufferId new_workspace(DType type, SymExpr elements) {
    out_.workspaces.push_back({elements * slots_, type});
    return v_.new_buffer({type, true}, {Argument::Kind::workspace, TensorId(), out_.workspaces.size() - 1});
  }

  Statement slot_loop() {
    for (Update& u : updates_) {
      if (u.role == Role::row) continue;
      const DType type = k_.accumulators[u.accumulator.index].type;
      if (u.role == Role::column) u.partial = new_workspace(type, inner_extent());
      if (u.role == Role::total && slots_ > 1) u.partial = new_workspace(type, 1);
    }
    const SymExpr rows_total = outer_.empty() && vector_ ? vector_->extent : rows();
    SymExpr begin = 0, end = rows_total;
    if (slots_ > 1) {
      begin = floor_div(rows_total * slot_position(), slot_count());
      end = floor_div(rows_total * (slot_position() + 1), slot_count());
    }
    std::vector<Statement> body;
    for (const Update& u : updates_) {
      if (u.role == Role::total) body.push_back(accumulate(u.accumulator));
      if (u.role == Role::column) clear_partial(u, body);
    }
    if (outer_.empty()) {
      vector_begin_ = begin;
      vector_end_ = end;
      for (Statement& s : row_body()) body.push_back(std::move(s));
    } else {
      Statement r = loop(outer_.size() == 1 ? outer_[0]->name : "row", begin, end);
      r.body = row_body();
      if (outer_.size() > 1) r.body = with_outer(SymExpr::symbol("row"), std::move(r.body));
      body.push_back(std::move(r));
    }
    if (slots_ > 1) {
      for (const Update& u : updates_)
        if (u.role == Role::total) leave_total(u, body);
    } else {
      fold_totals(body, false);
      fold_columns(body, false);
    }
    Statement g = loop("slot", 0, 0);
    g.grid = true;
    g.body = std::move(body);
    out_.extent = slots_;
    out_.slots = slots_ > 1;
    return g;
  }

  ValueId neutral(const Update& u) {
    const Accumulator& a = k_.accumulators[u.accumulator.index];
    const bool floating = op::is_floating(a.type);
    double number = a.fold == Fold::prod ? 1 : a.fold == Fold::max ? -HUGE_VAL : a.fold == Fold::min ? HUGE_VAL : 0;
    std::int64_t integer = a.fold == Fold::prod || a.fold == Fold::all ? 1 : 0;
    const int bits = op::bytes(a.type) * 8;
    if (!floating && a.fold == Fold::max) integer = op::info(a.type).cls == 'i' ? INT64_MIN >> (64 - bits) : 0;
    if (!floating && a.fold == Fold::min)
      integer = op::info(a.type).cls == 'i' ? INT64_MAX >> (64 - bits) : (std::int64_t{1} << bits) - 1;
    return v_.constant(a.type, floating ? number : 0, floating ? 0 : integer);
  }

  std::vector<Statement> over_inner(std::vector<Statement> body, bool grid) const {
    BRAZE_CHECK(vector_, "a column reduction without columns");
    Statement l = loop(vector_->name, 0, grid && inner_.empty() ? SymExpr(0) : vector_->extent, true);
    l.body = std::move(body);
    for (std::size_t k = inner_.size(); k-- > 0;) {
      Statement o = loop(inner_[k]->name, 0, inner_[k]->extent);
      o.body.push_back(std::move(l));
      l = std::move(o);
    }
    l.grid = grid;
    std::vector<Statement> out;
    out.push_back(std::move(l));
    return out;
  }

  void clear_partial(const Update& u, std::vector<Statement>& body) {
    const ValueId zero = neutral(u);
    facts_.resize(v_.values.size());
    std::vector<Statement> inside;
    inside.push_back(let(zero));
    inside.push_back(store(u.partial, slot_position() * inner_extent() + inner_position(), zero));
    for (Statement& s : over_inner(std::move(inside), false)) body.push_back(std::move(s));
  }

  void leave_total(const Update& u, std::vector<Statement>& body) {
    const ValueId r = ValueId(find_result(u.accumulator));
    body.push_back(let(r));
    body.push_back(store(u.partial, slot_position(), r));
  }

  /// Loads a partial result of slot `t`.
  ValueId partial(const Update& u, const SymExpr& index) {
    const ValueId v = v_.load(u.partial, index);
    facts_.resize(v_.values.size());
    return v;
  }

  void fold_slots(const Update& u, const SymExpr& count, const SymExpr& offset, std::vector<Statement>& body) {
    body.push_back(accumulate(u.accumulator));
    Statement l = loop("t", 0, count);
    const ValueId v =
        partial(u, SymExpr::symbol("t") * (u.role == Role::column ? inner_extent() : SymExpr(1)) + offset);
    l.body.push_back(let(v));
    Statement up = accumulate(u.accumulator);
    up.kind = Statement::Kind::update;
    up.value = v;
    l.body.push_back(std::move(up));
    body.push_back(std::move(l));
  }

  /// What a folded store is made of: totals or columns.
  bool is_total(ValueId v, std::unordered_set<std::uint32_t>& seen) const {
    if (!seen.insert(v.index).second) return false;
    const Value& value = v_.values[v.index];
    if (value.form == Value::Form::result)
      for (const Update& u : updates_)
        if (u.accumulator == value.accumulator) return u.role == Role::total;
    return std::ranges::any_of(value.operands, [&](ValueId o) { return is_total(o, seen); });
  }
  bool is_total(ValueId v) const {
    std::unordered_set<std::uint32_t> seen;
    return is_total(v, seen);
  }

  void name_folded(ValueId v, Scope& scope) {
    if (!scope.named.insert(v.index).second) return;
    const Value& value = v_.values[v.index];
    for (ValueId o : value.operands) name_folded(o, scope);
    std::vector<std::string> names;
    if (!value.index.is_constant()) collect_symbols(value.index, names);
    for (const std::string& n : names)
      if (n[0] == '@') name_folded(ValueId(std::stoul(n.substr(1))), scope);
    scope.body.push_back(let(v));
  }

  void fold_totals(std::vector<Statement>& body, bool launch) {
    Scope scope;
    for (const Update& u : updates_)
      if (launch && u.role == Role::total) fold_slots(u, slot_count(), 0, scope.body);
    for (const Store& s : folded_) {
      if (!is_total(s.value)) continue;
      name_folded(s.value, scope);
      scope.body.push_back(store(s.buffer, s.index, s.value));
    }
    if (scope.body.empty()) return;
    Statement first =
        launch ? loop("first", SymExpr::symbol("begin"), min(SymExpr::symbol("end"), SymExpr(1))) : loop("first", 0, 1);
    first.body = std::move(scope.body);
    body.push_back(std::move(first));
  }

  void fold_columns(std::vector<Statement>& body, bool launch) {
    Scope scope;
    bool any = false;
    for (const Update& u : updates_) {
      if (u.role != Role::column) continue;
      any = true;
      fold_slots(u, slot_count(), inner_position(), scope.body);
    }
    if (!any) return;
    for (const Store& s : folded_) {
      if (is_total(s.value)) continue;
      name_folded(s.value, scope);
      scope.body.push_back(store(s.buffer, s.index, s.value));
    }
    for (Statement& s : over_inner(std::move(scope.body), launch)) body.push_back(std::move(s));
  }

  /// A second launch of the same kernel: columns along the grid; totals by whoever starts at 0.
  void fold_launch() {
    std::vector<Statement> totals, columns;
    fold_totals(totals, true);
    fold_columns(columns, true);
    for (Statement& s : totals) k_.fold.push_back(std::move(s));
    out_.fold_extent = 1;
    if (columns.empty()) return;
    out_.fold_extent = inner_.empty() ? vector_->extent : inner_[0]->extent;
    out_.fold_grain = inner_.empty() ? SymExpr(8192) : SymExpr(64);
    k_.fold.push_back(std::move(columns[0]));
  }

  void finish(Statement grid) {
    k_.body.push_back(std::move(grid));
    k_.values = std::move(v_.values);
    k_.buffers = std::move(v_.buffers);
    for (std::size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].local == 0 && !k_.buffers[b].flag) out_.arguments.push_back(v_.arguments[b]);
    out_.checks = !flag_.is_none();
    mark_written();
    name_integers();
    for (const Member& m : group_.members) {
      if (!out_.origins.empty()) out_.origins += ",";
      out_.origins += s_.program.ops[m.op].origin;
    }
    out_.kernel = std::move(k_);
  }

  void mark_written() {
    for (auto* body : {&k_.body, &k_.fold})
      for_each_statement(*body, [&](const Statement& s) {
        if (s.kind == Statement::Kind::store || s.kind == Statement::Kind::check)
          k_.buffers[s.buffer.index].written = true;
      });
  }

  void name_integers() { bind_integers(k_, s_.program, out_, slots_); }

  const schedule::Schedule& s_;
  const Group& group_;
  const support::Target& target_;
  Values v_;
  Kernel k_;
  Tiled out_;
  std::vector<Store> stores_, folded_;
  std::vector<Update> updates_;
  Layout layout_;
  const schedule::Axis* vector_ = nullptr;
  std::vector<const schedule::Axis*> outer_, inner_;
  bool by_lane_ = false;
  std::vector<Facts> facts_;
  std::unordered_map<std::uint32_t, int> first_pass_;
  std::unordered_map<std::uint32_t, BufferId> kept_;
  std::vector<std::vector<Statement>> passes_;
  SymExpr vector_begin_;
  std::optional<SymExpr> vector_end_;
  BufferId flag_;
  double cost_ = 0;
  int slots_ = 1;
};

}  // namespace

namespace {

/// Leaves out what the text of a kernel does not say: values that no statement names, bounds of grid loops.
void tidy(Kernel& k) {
  std::vector<bool> named(k.values.size());
  for (auto* body : {&k.body, &k.fold})
    for_each_statement(*body, [&](Statement& s) {
      if (s.kind == Statement::Kind::let) named[s.value.index] = true;
      if (s.grid) s.begin = s.end = 0;
    });
  for (std::size_t v = 0; v < named.size(); ++v)
    if (!named[v]) k.values[v] = {};
  while (!named.empty() && !named.back()) named.pop_back();
  k.values.resize(named.size());
}

}  // namespace

Tiled tile(const schedule::Schedule& s, const Group& group, const support::Target& target) {
  Tiled t = group.form == schedule::Form::scatter ? tile_scatter(s, group, target) : Tiler(s, group, target).run();
  tidy(t.kernel);
  return t;
}

}  // namespace braze::kernel
