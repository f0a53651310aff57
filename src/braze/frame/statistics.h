// What happened to one compiled callable: counters and lists that braze.stats() and braze.explain() show.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braze/capture/capture.h"

namespace braze::frame {

/// A call that no entry served, and the guard that refused it, with both values.
struct Recompile {
  std::string where;
  std::string reason;
};

/// Why a call or a segment ran in CPython.
enum class Fallback : std::uint8_t {
  kChaos,           ///< forced by BRAZE_CHAOS
  kRunFailed,       ///< the plan raised before it wrote anything
  kForeignMode,     ///< torch.func, dispatch or function modes, torch.jit.trace
  kNotInterpreted,  ///< a generator or coroutine function, or nothing with Python code
  kContention,      ///< another thread, or this one further out, is capturing this callable
  kLeft,            ///< the point was given up before
  kRecompileLimit,
  kRefused,        ///< the capture could not start
  kGuardsChanged,  ///< somebody changed what was guarded while it was captured
  kInternalError,
  kCompileError,
};
inline constexpr std::size_t kFallbacks = 11;
const char* fallback_name(Fallback reason) noexcept;

struct Statistics {
  std::int64_t graphs = 0;                           ///< captured segments with tensor operations, recompiles included
  std::int64_t compiles = 0;                         ///< captures
  std::int64_t internal_errors = 0;                  ///< our own faults
  std::array<std::int64_t, kFallbacks> fallbacks{};  ///< segments and calls that ran in CPython, by reason
  std::vector<Recompile> recompiles;
  std::vector<capture::Break> breaks;    ///< each place and reason once
  std::vector<capture::Break> notes;     ///< met and not supported; branches taken because of is_compiling
  std::map<std::string, double> phases;  ///< seconds: "capture", "compile", ...
  double eager_operators = 0;            ///< aten calls that eager would have made for the segments that ran
  double compiled_operators = 0;         ///< of these, executed by plans

  std::int64_t fallback_count() const;
  void add_fallback(Fallback reason) { ++fallbacks[static_cast<std::size_t>(reason)]; }
  void add_break(const capture::Break& found);
  void add_note(const capture::Break& found);
};

/// Adds its lifetime to one phase.
class PhaseTimer {
 public:
  PhaseTimer(Statistics& statistics, const char* phase)
      : statistics_(statistics), phase_(phase), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() {
    statistics_.phases[phase_] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Statistics& statistics_;
  const char* phase_;
  std::chrono::steady_clock::time_point start_;
};

/// "model.py:12 in forward".
std::string place_of(const capture::Break& found);

}  // namespace braze::frame
