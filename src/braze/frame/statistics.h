// What happened to one compiled callable: counters and lists that braze.stats() and braze.explain() show.
#pragma once

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

struct Statistics {
  std::int64_t graphs = 0;                        ///< captured segments with tensor operations, recompiles included
  std::int64_t compiles = 0;                      ///< captures
  std::int64_t internal_errors = 0;               ///< our own faults
  std::map<std::string, std::int64_t> fallbacks;  ///< segments and calls that ran in CPython, by reason code
  std::vector<Recompile> recompiles;
  std::vector<capture::Break> breaks;    ///< each place and reason once
  std::vector<capture::Break> notes;     ///< met and not supported; branches taken because of is_compiling
  std::map<std::string, double> phases;  ///< seconds: "capture", "compile", ...
  double eager_operators = 0;            ///< aten calls that eager would have made for the segments that ran
  double compiled_operators = 0;         ///< of these, executed by plans

  std::int64_t fallback_count() const;
  void add_fallback(const std::string& reason) { ++fallbacks[reason]; }
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
