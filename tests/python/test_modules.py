"""A compiled module is the module: state, class, hooks, copies and files mean the same on either object."""

import copy
import inspect
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

import braze
from braze.modules import CompiledModule, original_of


class Net(nn.Module):
    """Two layers, a buffer and a plain attribute."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("scale", torch.tensor(2.0))
        self.gain = 1.0

    def forward(self, x, shift: float = 0.0):
        """Scaled two-layer perceptron."""
        return self.second(self.first(x).relu()) * self.scale * self.gain + shift


class Counted(Net):
    """Overrides __call__ and goes on to Module's."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return super().__call__(*args, **kwargs)


class Doubled(nn.Module):
    def forward(self, w):
        return w * 2


@pytest.fixture
def pair():
    torch.manual_seed(0)
    model = Net()
    return model, braze.compile(model)


X = torch.linspace(-1, 1, 12).view(3, 4)


def close(a, b):
    torch.testing.assert_close(a, b)


def test_is_the_module_in_every_respect(pair):
    model, compiled = pair
    assert isinstance(compiled, Net) and isinstance(compiled, nn.Module) and isinstance(compiled, CompiledModule)
    assert compiled.__class__ is Net and original_of(compiled) is model
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert compiled.first is model.first and list(compiled.parameters())[0] is list(model.parameters())[0]
    close(compiled(X), model(X))
    close(compiled(X, shift=1.5), model(X, shift=1.5))


def test_attributes_and_modes_are_shared(pair):
    model, compiled = pair
    compiled(X)
    compiled.gain = 3.0
    assert model.gain == 3.0
    close(compiled(X), model(X))
    model.gain = -1.0
    close(compiled(X), model(X))
    compiled.eval()
    assert not model.training and not model.first.training
    assert compiled.double() is compiled and model.first.weight.dtype == torch.float64
    close(compiled(X.double()), model(X.double()))


def test_modules_put_on_either_object(pair):
    model, compiled = pair
    compiled(X)
    compiled.second = nn.Linear(8, 5)
    assert model.second.out_features == 5
    close(compiled(X), model(X))
    model.second = nn.Linear(8, 3)
    close(compiled(X), model(X))


def test_deepcopy_pickle_and_save(pair):
    model, compiled = pair
    want = compiled(X)
    copied = copy.deepcopy(compiled)
    assert isinstance(copied, CompiledModule) and copied.first is not compiled.first
    close(copied(X), want)
    close(pickle.loads(pickle.dumps(compiled))(X), want)
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert isinstance(loaded, CompiledModule)
    close(loaded(X), want)
    file = io.BytesIO()
    torch.save(compiled.state_dict(), file)
    file.seek(0)
    fresh = Net()
    fresh.load_state_dict(torch.load(file))
    close(fresh(X), want)


def test_parametrized_before():
    torch.manual_seed(0)
    model = Net()
    parametrize.register_parametrization(model.first, "weight", Doubled())
    close(braze.compile(model)(X), model(X))


@pytest.mark.parametrize("where", ["original", "compiled"])
def test_parametrized_after(pair, where):
    model, compiled = pair
    compiled(X)
    plain = Linear = nn.Linear(4, 2)
    wrapped = braze.compile(plain)
    before = wrapped(X)
    parametrize.register_parametrization(plain if where == "original" else wrapped, "weight", Doubled())
    close(wrapped(X), plain(X))
    assert isinstance(wrapped, nn.Linear) and parametrize.is_parametrized(plain) and not torch.equal(before, wrapped(X))
    parametrize.remove_parametrizations(wrapped, "weight", leave_parametrized=False)
    close(wrapped(X), before)
    assert type(Linear) is nn.Linear


def test_overridden_call_counts_once():
    torch.manual_seed(0)
    model = Counted()
    compiled = braze.compile(model)
    for n in range(1, 4):
        close(compiled(X), Net.forward(model, X))
        assert model.calls == compiled.calls == n


def test_forward_patched_on_the_instance(pair):
    model, compiled = pair
    compiled(X)
    model.forward = lambda x: x + 1
    close(compiled(X), X + 1)
    compiled.forward = lambda x: x + 2
    close(model(X), X + 2)
    close(compiled(X), X + 2)
    del model.forward
    close(compiled(X), Net.forward(model, X))


@pytest.mark.parametrize("where", ["original", "compiled"])
def test_hooks_added_later(pair, where):
    model, compiled = pair
    compiled(X)
    seen = []
    target = model if where == "original" else compiled
    handle = target.register_forward_hook(lambda m, args, out: (seen.append(m is model), out * 10)[1])
    before = target.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    close(compiled(X), Net.forward(model, X + 1) * 10)
    assert seen == [True]
    handle.remove()
    before.remove()
    close(compiled(X), Net.forward(model, X))


def test_signature_of_forward_as_trainers_read_it(pair):
    model, compiled = pair
    assert inspect.signature(compiled.forward) == inspect.signature(model.forward)
    assert list(inspect.signature(type(compiled).forward).parameters) == ["self", "x", "shift"]


def test_compile_twice_and_inplace(pair):
    model, compiled = pair
    again = braze.compile(compiled)
    assert original_of(again) is model
    close(again(X), model(X))
    other = copy.deepcopy(model)
    assert braze.compile(other, inplace=True) is other and type(other) is Net
    close(other(X), model(X))
    close(copy.deepcopy(other)(X), model(X))


@pytest.fixture
def group(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def gradients(model, run):
    model.zero_grad()
    run(X).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


def test_ddp_around_and_inside(pair, group):
    from torch.nn.parallel import DistributedDataParallel as Ddp

    model, compiled = pair
    want = gradients(model, model)
    for parallel in (Ddp(compiled), braze.compile(Ddp(model))):
        for _ in range(2):
            close(parallel(X), model(X))
            for got, expected in zip(gradients(model, parallel), want, strict=True):
                close(got, expected)


@pytest.mark.parametrize("order", ["before", "after"])
def test_fully_shard(group, order):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = Net()
    want = model(X)
    if order == "before":
        fully_shard(model)
        compiled = braze.compile(model)
    else:
        compiled = braze.compile(model)
        fully_shard(compiled)
    for _ in range(2):
        out = compiled(X)
        close(out, want)
        out.sum().backward()
    assert model.first.weight.grad is not None
