// One runner for the passes of every level: names, dumps, times, disables and verifies them.
//
// A pass is a free function `void fold_constants(Graph&)`, registered once in its layer's constexpr list.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braze::support {

template <class IR>
struct Pass {
  std::string_view name;
  std::string_view summary;
  void (*apply)(IR&);
};

/// What watches a compile: collects times and refusals always, dumps when asked. Not shared between threads.
class Observer {
 public:
  struct Time {
    std::string name;
    double seconds;
  };
  virtual ~Observer() = default;
  virtual bool disabled(std::string_view) const { return false; }  ///< BRAZE_DISABLE names this pass
  virtual bool wants(std::string_view) const { return false; }     ///< BRAZE_DUMP names this pass or level
  virtual bool checks() const { return false; }                    ///< verify after every pass (BRAZE_STRICT)
  virtual void changed(std::string_view, const std::string& /*before*/, const std::string& /*after*/) {}
  /// A fusion or rewrite that was considered and not done, in words: explain shows it.
  void refuse(std::string reason) { refusals.push_back(std::move(reason)); }
  void took(std::string_view name, double seconds) { times.push_back({std::string(name), seconds}); }

  std::vector<Time> times;
  std::vector<std::string> refusals;
};

/// Runs one pass. `to_text(const IR&)` and `verify(const IR&, std::string_view after)` are found by ADL.
template <class IR>
void run(const Pass<IR>& pass, IR& ir, Observer& o) {
  if (o.disabled(pass.name)) return;
  const bool dump = o.wants(pass.name);
  const std::string before = dump ? to_text(ir) : std::string{};
  const auto start = std::chrono::steady_clock::now();
  pass.apply(ir);
  o.took(pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (o.checks()) verify(ir, pass.name);
  if (dump) {
    std::string after = to_text(ir);
    if (after != before) o.changed(pass.name, before, after);
  }
}

template <class IR>
void run_all(std::span<const Pass<IR>> passes, IR& ir, Observer& o) {
  for (const Pass<IR>& pass : passes) run(pass, ir, o);
}

}  // namespace braze::support
