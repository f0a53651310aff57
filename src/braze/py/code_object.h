// A code object decoded once: instructions with their groups, handlers, lines. Kept with the code object, dies with it.
//
//   const CodeInfo& code = CodeInfo::of(function_code);
//   const Instruction& i = code.at(pc);   // i.opcode, i.oparg, i.next
//
// Offsets are code units of 2 bytes, as in FrameState::pc. The bytes are de-quickened and without instrumentation, and
// the same offsets hold in the live, specialised code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braze/py/opcode.h"
#include "braze/py/ref.h"

namespace braze::py {

/// One instruction with its prefixes. EXTENDED_ARG groups belong to the instruction they extend. KW_NAMES (3.11, 3.12)
/// is state inside the evaluator, so [KW_NAMES, PRECALL,] CALL is one instruction: CALL with `kw_names` set.
struct Instruction {
  Opcode opcode = Opcode::CACHE;
  int oparg = 0;
  int pc = -1;    ///< first unit of the group: the only unit at which a frame may be resumed; -1: no instruction here
  int next = -1;  ///< unit behind the group and its caches; relative jumps count from here
  int kw_names = -1;  ///< index in co_consts of the tuple of keyword names; -1: none
  int last = -1;      ///< unit of `opcode` itself
};

/// Units [start, end) are covered: cut the stack to `depth`, push `pc` if `push_lasti`, push the exception, go to
/// target.
struct Handler {
  int start = 0, end = 0, target = 0, depth = 0;
  bool push_lasti = false;
};

class CodeInfo {
 public:
  /// Decodes on the first request. The reference lives as long as the code object. Throws PyError (memory).
  static const CodeInfo& of(Borrowed<PyCodeObject> code);

  /// The instruction whose group begins at unit `pc`.
  const Instruction& at(int pc) const { return instructions_[static_cast<std::size_t>(pc)]; }
  bool is_start(int pc) const {
    return pc >= 0 && pc < units() && instructions_[static_cast<std::size_t>(pc)].pc == pc;
  }
  int units() const { return static_cast<int>(instructions_.size()); }
  /// Start units of all instructions, ascending.
  std::span<const int> starts() const { return starts_; }

  /// The innermost handler that covers unit `pc` (of the instruction under way).
  std::optional<Handler> handler_at(int pc) const;
  std::span<const Handler> handlers() const { return handlers_; }

  /// Source line of a unit; 0 if it has none.
  static int line_at(Borrowed<PyCodeObject> code, int pc);

 private:
  explicit CodeInfo(Borrowed<PyCodeObject> code);
  void decode(std::span<const std::uint8_t> bytes);
  void read_handlers(std::span<const std::uint8_t> table);

  std::vector<Instruction> instructions_;  ///< by unit
  std::vector<int> starts_;
  std::vector<Handler> handlers_;
};

}  // namespace braze::py
