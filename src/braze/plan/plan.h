// The host program of one graph: what the executor runs, step by step. Pure data; sizes may be symbolic.
//
//   plan @f(%x: f32[s0, 1024], %w: f32[1024]) -> (%1) {
//     alloc %1: f32[s0]
//     launch @k0(%x, %w, %1; ) over s0 grain 16
//     return %1 }
//
// Kernel ABI: extern "C" void k(void* const* p, const int64_t* s, int64_t begin, int64_t end). `p` are the data
// pointers of `buffers` (offset applied), `s` the integer arguments then the doubles as bit patterns; the host splits
// [0, extent) into chunks of at least `grain` with at::parallel_for. Kernels that need private partial results per
// chunk run with Launch::slots > 0: [0, slots) is the extent and `grain` is 1, and a later launch folds the slots. A
// plan writes nothing that is visible outside before its commit: steps from `commit` on cannot fail and write inputs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::plan {

using graph::Arg;
using graph::TensorType;
using sym::SymExpr;

using BufferId = graph::ValueId;  ///< an index into Plan::buffers; the same type, so that a Call's args are graph Args
using KernelId = support::Id<struct KernelTag>;

struct Buffer {
  std::string name;
  TensorType type;
  BufferId base;   ///< none: own storage. Else a view of base's storage (base itself is not a view)
  SymExpr offset;  ///< elements from base's first element
};

struct Kernel {
  std::string name;        ///< symbol in its unit
  std::string source_key;  ///< kernels with equal keys are one kernel (content hash of `source`)
  std::string source;      ///< C++ text without the prelude
  std::string summary;     ///< kernel IR text, for explain
  std::string origins;     ///< the aten operators it computes, comma separated
};

struct Alloc {  ///< dense memory for the buffer; `arena_offset` in bytes if it lies in the plan's arena, else -1: a
                ///< tensor
  BufferId buffer;
  std::int64_t arena_offset = -1;
};
struct View {  ///< a tensor object for a view buffer; needed only before a Call or Return names it
  BufferId buffer;
};
struct Launch {
  KernelId kernel;
  std::vector<BufferId> buffers;
  std::vector<SymExpr> integers;
  std::vector<double> doubles;
  SymExpr extent;
  SymExpr grain = 1;
  bool slots = false;
  bool checks = false;  ///< `p` has one more pointer, to an i32 the kernel sets to 1 if one of its checks failed: then
                        ///< everything the plan computed is void and the graph is run operator by operator
};
struct Call {  ///< a library operator; args as in graph::Node, ValueIds are buffers
  graph::Op op = graph::Op::kOther;
  std::string name;
  std::vector<Arg> args;
  std::vector<BufferId> results;
  bool returns_list = false;
};
struct Free {
  BufferId buffer;
};
using Step = std::variant<Alloc, View, Launch, Call, Free>;

struct Plan {
  std::string name;
  std::vector<graph::Symbol> symbols;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;  ///< may repeat, may be inputs, may be none
  std::vector<Step> steps;
  std::size_t arena_bytes = 0;  ///< static plans only; symbolic plans allocate tensors
  std::vector<std::shared_ptr<void>> opaques;
};

std::string to_text(const Plan& p);
void verify(const Plan& p, std::string_view after);

}  // namespace braze::plan
