// Aliasing is read off the storages that functionalization gives to what the program sees as one memory.
#include "braze/trace/outputs.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>

#include "braze/aten/types.h"
#include "braze/trace/fake_tensor.h"

namespace braze::trace {

using autograd::Output;

namespace {

namespace fn = at::functionalization::impl;

const c10::StorageImpl* storage_of(const at::Tensor& t) {
  return t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// Elements of the storage that a tensor touches: [first, last].
struct Extent {
  std::int64_t first = 0, last = -1;
};

Extent extent_of(const at::Tensor& t) {
  Extent e{t.storage_offset(), t.storage_offset()};
  for (std::int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) == 0) return {};
    e.last += (t.size(d) - 1) * t.stride(d);
  }
  return e;
}

bool covers(const at::Tensor& base, const at::Tensor& t) {
  const Extent outer = extent_of(base), inner = extent_of(t);
  if (inner.last < inner.first) return true;
  return base.is_non_overlapping_and_dense() && outer.first <= inner.first && inner.last <= outer.last;
}

bool has_history(const at::Tensor& t) { return t.requires_grad() && !t.is_leaf(); }

/// True if autograd sees t as a view of what base is (a view of).
bool is_view_of(const at::Tensor& t, const at::Tensor& base) {
  if (!t.is_view()) return false;
  const at::Tensor root(t._base());
  return root.is_same(base) || (base.is_view() && base._base().is_same(root));
}

class Classifier {
 public:
  Classifier(Recorder& r, Inputs& inputs, std::span<const at::Tensor> tensors)
      : r_(r), inputs_(inputs), tensors_(tensors) {}

  Outputs run() {
    out_.outputs.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) place(i);
    for (const auto& [first, members] : groups()) place_group(members);
    return std::move(out_);
  }

 private:
  Output describe(const at::Tensor& t, Output::Kind kind, std::uint32_t index, std::int64_t base_offset) {
    Output o;
    o.kind = kind;
    o.index = index;
    o.type = aten::type_of(t);
    o.offset = t.storage_offset() - base_offset;
    o.requires_grad = t.requires_grad();
    o.is_leaf = t.is_leaf();
    return o;
  }

  void place(std::size_t i) {
    const at::Tensor& t = tensors_[i];
    if (!fn::isFunctionalTensor(t)) r_.fail("an output inside a transform of torch.func");
    fn::sync(t);
    if (t.is_inference() != c10::InferenceMode::is_enabled() && !inputs_.find_fake(t))
      r_.fail("an output made under another inference mode");
    if (const Input* input = inputs_.find_fake(t)) {
      out_.outputs[i] = describe(t, Output::Kind::kInput, input->primal, input->wrapper.storage_offset());
    } else if (const Input* base = inputs_.find_storage(storage_of(t))) {
      place_view_of_input(i, *base);
    } else {
      loose_.push_back(i);
    }
  }

  void place_view_of_input(std::size_t i, const Input& base) {
    const at::Tensor& t = tensors_[i];
    if (t.scalar_type() != base.wrapper.scalar_type()) r_.fail("an output that views an input as another type");
    if (has_history(t) && !is_view_of(t, base.wrapper))
      r_.fail("an output that shares an input's memory but has a history of its own");
    out_.outputs[i] = describe(t, Output::Kind::kViewOfInput, base.primal, base.wrapper.storage_offset());
  }

  /// Outputs by storage, ordered by their first member.
  std::map<std::size_t, std::vector<std::size_t>> groups() const {
    std::map<const void*, std::size_t> first;
    std::map<std::size_t, std::vector<std::size_t>> result;
    for (const std::size_t i : loose_) result[first.emplace(storage_of(tensors_[i]), i).first->second].push_back(i);
    return result;
  }

  bool is_base_for(const at::Tensor& base, const std::vector<std::size_t>& members) const {
    return std::all_of(members.begin(), members.end(), [&](std::size_t i) {
      const at::Tensor& t = tensors_[i];
      if (t.is_same(base)) return true;
      if (t.scalar_type() != base.scalar_type() || !covers(base, t)) return false;
      return !has_history(t) || (has_history(base) && is_view_of(t, base));
    });
  }

  void place_group(const std::vector<std::size_t>& members) {
    if (members.size() == 1) {
      add_graph_output(out_.outputs[members[0]], tensors_[members[0]]);
      return;
    }
    for (const std::size_t i : members) {
      if (!is_base_for(tensors_[i], members)) continue;
      add_graph_output(out_.outputs[i], tensors_[i]);
      return place_views(members, tensors_[i], i);
    }
    place_on_hidden_base(members);
  }

  void place_views(const std::vector<std::size_t>& members, const at::Tensor& base, std::size_t base_index) {
    for (const std::size_t i : members) {
      if (i == base_index) continue;
      out_.outputs[i] = describe(tensors_[i], Output::Kind::kViewOfOutput, static_cast<std::uint32_t>(base_index),
                                 base.storage_offset());
    }
  }

  void place_on_hidden_base(const std::vector<std::size_t>& members) {
    const at::Tensor base = hidden_base(members);
    const std::size_t index = out_.outputs.size();
    out_.outputs.emplace_back();
    if (fn::isFunctionalTensor(base)) add_graph_output(out_.outputs[index], base);
    else add_fake_output(out_.outputs[index], {}, base);
    place_views(members, base, index);
  }

  /// The tensor that all are views of: autograd's if they have one, else functionalization's.
  at::Tensor hidden_base(const std::vector<std::size_t>& members) {
    for (const std::size_t i : members) {
      if (!tensors_[i].is_view()) continue;
      const at::Tensor base(tensors_[i]._base());
      if (fn::isFunctionalTensor(base) && is_base_for(base, members)) return base;
    }
    auto* storage = static_cast<at::functionalization::FunctionalStorageImpl*>(
        tensors_[members[0]].unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
    const at::Tensor base = storage->base();
    if (!as_fake(base) || !is_base_for(base, members)) r_.fail("outputs that overlap in a way that no view describes");
    return base;
  }

  void add_graph_output(Output& o, const at::Tensor& t) { add_fake_output(o, t, final_fake(r_, t)); }

  void add_fake_output(Output& o, const at::Tensor& wrapper, at::Tensor fake) {
    o = describe(wrapper.defined() ? wrapper : fake, Output::Kind::kGraph,
                 static_cast<std::uint32_t>(out_.graph.size()), 0);
    o.offset = 0;
    if (wrapper.defined() == false) o.requires_grad = false, o.is_leaf = true;
    if (r_.input_storages.contains(storage_of(fake)) || !seen_.insert(storage_of(fake)).second)
      fake = own_copy(r_, fake);
    out_.graph.push_back({wrapper, fake});
  }

  Recorder& r_;
  Inputs& inputs_;
  std::span<const at::Tensor> tensors_;
  std::vector<std::size_t> loose_;
  std::unordered_set<const void*> seen_;  ///< storages of graph outputs: each owns its memory
  Outputs out_;
};

}  // namespace

at::Tensor final_fake(Recorder& r, const at::Tensor& wrapper) {
  fn::sync(wrapper);
  at::Tensor fake = fn::from_functional_tensor(wrapper);
  if (!as_fake(fake)) r.fail("a tensor that the trace did not make", fake);
  return fake;
}

at::Tensor own_copy(Recorder& r, const at::Tensor& fake) {
  if (!fake.is_non_overlapping_and_dense()) r.fail("an output with gaps that shares memory unseen");
  return record(r, "aten::clone", {as_fake(fake)->value(), graph::MemoryFormat::kPreserve}, fake);
}

Outputs classify_outputs(Recorder& r, Inputs& inputs, std::span<const at::Tensor> tensors) {
  return Classifier(r, inputs, tensors).run();
}

}  // namespace braze::trace
