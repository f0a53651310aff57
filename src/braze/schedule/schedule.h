// Which loop operators share a kernel, which tensors need memory, and in what order groups run.
//
// A group has axes (g0, g1, ...: its iteration space) and members. A member is a loop operator whose loop variables are
// expressions over the axes, so that operators over [B, T, C] and [B*T, C] meet in one space. Axes are outer or inner:
// rows are the points of the outer axes, and a row reduction folds the inner ones.
//
//   layer norm forward: axes g0 < 128 outer, g1 < 768 inner
//     sum       row     (i0=g0 | r0=g1)      one pass over the row
//     var       row     (i0=g0 | r0=g1)      a second one
//     scaled    full    (i0=g0, i1=g1)       a third one
//   its backward adds dgamma column (i0=g1 | r0=g0): accumulated while rows are swept, in slots folded at the end.
//
// A map that is not stored is computed wherever it is used, in its own group and in others.
#pragma once

#include <string>
#include <vector>

#include "braze/loop/loop.h"
#include "braze/support/passes.h"
#include "braze/support/target.h"

namespace braze::schedule {

using loop::LoopProgram;
using loop::TensorId;
using sym::SymExpr;

constexpr std::uint32_t kNone = UINT32_MAX;

/// How a member meets the axes of its group.
enum class Role : std::uint8_t {
  full,    ///< a map over all axes
  outer,   ///< a map over the outer axes
  row,     ///< a reduction of the inner axes at each point of the outer ones
  column,  ///< a reduction of the outer axes at each point of the inner ones
  total,   ///< a reduction of the outer axes of a value that depends on them alone, or of all axes
  folded,  ///< a map of column or total results, after they are folded
};

struct Member {
  std::uint32_t op = 0;  ///< of LoopProgram::ops
  Role role = Role::full;
  std::vector<SymExpr> variables;  ///< of i0, i1, ..., r0, r1, ...; 0 for extents of 1
};

struct Axis {
  std::string name;
  SymExpr extent;
  bool outer = false;
};

enum class Form : std::uint8_t { loops, scatter, external };

struct Group {
  Form form = Form::loops;
  std::vector<Axis> axes;
  std::vector<Member> members;  ///< in program order; one for scatter and external
  bool has_roles = false;       ///< outer and inner are decided (there is a reduction)
  bool by_lane = false;         ///< rows are walked side by side in vector lanes: the contiguous axis is an outer one
};

struct Schedule {
  LoopProgram program;
  std::vector<Group> groups;            ///< in order of execution
  std::vector<bool> stored;             ///< by tensor: it has memory (or is a view of memory)
  std::vector<std::uint32_t> producer;  ///< op by tensor; kNone: an input
};

Schedule fuse(LoopProgram program, const support::Target& target, support::Observer& observer);

std::string to_text(const Schedule& s);

}  // namespace braze::schedule
