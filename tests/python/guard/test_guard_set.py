"""Guard sets as a whole: lifetime, identity, reused addresses, texts, torch state, what comes back, cost of stores."""

import gc
import random
import types
import weakref

import pytest
import torch
from guard_reader import EMPTY, Reader, read_module
from torch import nn

from braze import _C


class Box:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_fetched_values_are_the_present_ones():
    m = nn.Linear(3, 2)
    r = Reader(m, torch.ones(1, 3))
    read_module(r.slot(0))
    r.slot(1).tensor().fetch()
    r.build()
    x = torch.zeros(1, 3)
    out = r.check(m, x)
    assert [id(o) for o in out] == [id(m.weight), id(m.bias), id(x)]
    m.weight = nn.Parameter(torch.zeros(2, 3))
    out = r.check(m, x)
    assert out[0] is m.weight and out[1] is m.bias


def test_empty_and_none_slots_are_fetched():
    r = Reader(None, EMPTY)
    r.slot(0).const().fetch()
    r.slot(1).require("null").fetch()
    assert r.build().check() == [None, EMPTY]


def test_another_module_of_the_same_structure_passes_and_back():
    a, b = (nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(2))
    r = Reader(a)
    read_module(r.slot(0))
    r.build()
    for m in (a, b, a, a, b):
        out = r.check(m)
        assert out[0] is m[0].weight
    b[0].bias = None
    assert r.check(b) is None
    assert r.check(a)[1] is a[0].bias
    assert r.check(b) is None
    assert "bias" in r.guards.explain([b], None)


@pytest.mark.parametrize("seed", range(20))
def test_changes_and_their_undoing_in_any_order(seed):
    """A model of what must hold: all values as they were."""
    rng = random.Random(seed)
    tree = {i: [Box(v=1.5, w={"k": (1, "a")}), i] for i in range(4)}
    boxes = [tree[i][0] for i in range(4)]
    r = Reader(tree)
    root = r.slot(0).typed()
    for i in range(4):
        pair = root.key(i).typed().length()
        pair.item(1).const()
        box = pair.item(0)
        box.attr("v").const()
        box.attr("w").typed().key("k").const()
    r.build()
    state = {}

    def put(i, kind, right):
        box = tree[i][0] if isinstance(tree[i][0], Box) else boxes[i]
        if kind == "v":
            box.v = float("1.5") if right else 2.5
        elif kind == "w":
            box.w = {"k": eval("(1, 'a')") if right else (1, "b")}
        elif kind == "k":
            box.w = {"k": (1, "a")} if right else {}
        elif kind == "item":
            tree[i][0] = boxes[i] if right else [1]
        elif kind == "length":
            tree[i][2:] = [] if right else [3]
        elif kind == "pair":
            tree[i] = [tree[i][0], i if right else -1] + tree[i][2:]
        state[i, "w" if kind == "k" else kind] = right

    for _ in range(60):
        put(rng.randrange(4), rng.choice(["v", "w", "k", "item", "length", "pair"]), rng.random() < 0.7)
        expected = all(state.values())
        assert r.holds() == expected, (state, r.explain())
        assert (r.explain() == "") == expected


def test_identity_guards_do_not_keep_objects_alive_and_die_with_them():
    o = Box(v=1)
    r = Reader(o)
    r.slot(0).same().attr("v").const()
    r.build()
    assert r.holds() and not r.guards.is_dead()
    gone = weakref.ref(o)
    r.slots[0] = None
    del o
    gc.collect()
    assert gone() is None
    assert r.guards.is_dead()
    for _ in range(50):  # the address is used again, by the same class
        r.slots[0] = Box(v=1)
        assert not r.holds()
    assert "gone" in r.explain()


def test_parameters_are_not_kept_alive():
    m = nn.Linear(3, 3)
    r = Reader(m)
    read_module(r.slot(0))
    r.fetched.clear()
    r.build()
    assert r.holds()
    gone = weakref.ref(m), weakref.ref(m.weight)
    r.slots[0] = None
    guards = r.guards
    del m, r
    gc.collect()
    assert not any(isinstance(o, (nn.Parameter, nn.Linear)) for o in guards.referents())
    del guards
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_functions_and_modules_are_held_weakly_types_strongly():
    class Local:
        pass

    def f():
        return 1

    m = types.ModuleType("m")
    r = Reader(Local(), f, m, Local)
    r.slot(0).typed()
    for i in (1, 2, 3):
        r.slot(i).same()
    seen = r.build().guards.referents()
    assert any(o is Local for o in seen)
    assert not any(o is f or o is m for o in seen)


def test_a_reused_address_with_other_content_is_seen():
    c = [None]
    for kind in range(40):
        c[0] = [float(kind % 2)]
        r = Reader(c)
        r.slot(0).typed().item(0).typed().item(0).const()
        r.build()
        assert r.holds()
        for _ in range(5):
            c[0] = None
            c[0] = [float(kind % 2) + 1]
            assert not r.holds()
            c[0] = None
            c[0] = [float(kind % 2)]
            assert r.holds()


def test_texts_name_sources_as_users_do():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 2))
            self.gain = 2

        def forward(self, x):
            return self.layers(x) * self.gain

    net = Net()
    r = Reader(net, torch.ones(1, 2))
    r.guards.name_slots(Net.forward.__code__)
    r.slot(1).tensor()
    self = r.slot(0)
    self.attr("gain").const()
    self.module("layers").module("0").param("weight").tensor()
    r.build()
    texts = r.guards.texts()
    assert "self.gain == 2" in texts
    assert any(t.startswith("self.layers[0].weight is like Parameter float[2, 2]") for t in texts)
    assert r.holds()
    net.gain = 5
    assert r.explain() == "self.gain == 2: it is 5"
    net.gain = 2
    r.slots[1] = torch.ones(3, 2)
    assert r.explain() == "x: expected sizes [1, 2], has [3, 2]"


TORCH_STATES = {
    "grad mode": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast on cpu": lambda: torch.autocast("cpu", torch.bfloat16),
    "anomaly detection": lambda: torch.autograd.detect_anomaly(check_nan=False),
    "saved-tensor hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "torch function modes": lambda: torch.device("cpu"),
}
TORCH_SETTINGS = {
    "default dtype": (torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic algorithms": (torch.use_deterministic_algorithms, True, False),
    "float32 matmul precision of oneDNN": (torch.set_float32_matmul_precision, "medium", "highest"),
    "number of threads": (torch.set_num_threads, torch.get_num_threads() + 1, torch.get_num_threads()),
    "oneDNN": (lambda on: setattr(torch.backends.mkldnn, "enabled", on), False, True),
    "cuDNN benchmark": (lambda on: setattr(torch.backends.cudnn, "benchmark", on), True, False),
    "flash attention": (torch.backends.cuda.enable_flash_sdp, False, True),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TORCH_STATES)
def test_torch_state_of_the_thread(name):
    r = Reader(1)
    r.slot(0).const()
    r.build()
    assert r.holds()
    with TORCH_STATES[name]():
        assert not r.holds()
        assert name in r.explain()
        assert _C.torch_state_is_foreign() == (name in ("saved-tensor hooks", "torch function modes"))
    assert r.holds(), r.explain()


@pytest.mark.parametrize("name", TORCH_SETTINGS)
def test_torch_state_of_the_process(name):
    put, other, usual = TORCH_SETTINGS[name]
    put(usual)  # set explicitly: "never set" is a state of its own
    r = Reader(1)
    r.slot(0).const()
    r.build()
    assert r.holds()
    put(other)
    try:
        assert not r.holds()
        assert name in r.explain()
    finally:
        put(usual)
    assert r.holds(), r.explain()


def test_autocast_dtype_counts_only_under_autocast():
    before = _C.torch_state()
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert _C.torch_state_difference(before) == ""
        with torch.autocast("cpu", torch.bfloat16):
            inside = _C.torch_state()
        with torch.autocast("cpu", torch.float16):
            assert "autocast dtype" in _C.torch_state_difference(inside)
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)


def test_modes_are_foreign():
    from torch.utils._python_dispatch import TorchDispatchMode

    assert not _C.torch_state_is_foreign()
    with TorchDispatchMode():
        assert _C.torch_state_is_foreign()
    seen = []

    def f(x):
        seen.append(_C.torch_state_is_foreign())
        return x.sum()

    torch.func.grad(f)(torch.ones(2))
    torch.vmap(f)(torch.ones(2, 2))
    assert seen == [True, True]
    with torch.no_grad(), torch.autocast("cpu"):
        assert not _C.torch_state_is_foreign()


def test_what_cannot_be_guarded_is_refused():
    class Sub(torch.Tensor):
        pass

    for t in (
        torch.ones(2).as_subclass(Sub),
        torch.ones(2).to_sparse(),
        torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
    ):
        r = Reader(t)
        r.slot(0).tensor()
        with pytest.raises(RuntimeError, match="is_plain_tensor"):
            r.build()
    r = Reader([1])
    r.slot(0).require("constant", [1])
    with pytest.raises(RuntimeError, match="not a constant"):
        r.build()

    class Key:
        def __hash__(self):
            return 1

    key = Key()
    r = Reader({key: 1})
    r.slot(0).key(key).const()
    with pytest.raises(RuntimeError, match="hash"):
        r.build()


def test_check_creates_a_dict_for_an_object_without_and_sees_later_stores():
    class Fresh:
        def __init__(self):
            self.v = 1

    r = Reader(Fresh())
    r.slot(0).attr("v").const()
    r.build()
    for _ in range(3):
        o = Fresh()  # attributes are still inline
        r.slots[0] = o
        assert r.holds() and r.holds()
        o.v = 2
        assert not r.holds()
        o.v = 1
        assert r.holds()
        o.u = 3
        assert r.holds()


def test_many_unrelated_stores_stay_cheap():
    """A store beside what was read costs a look-up per key that was read in that dict, not a walk of the model."""
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)])
    r = Reader(model)
    read_module(r.slot(0))
    r.build()
    assert r.holds()
    quiet = min(r.guards.nanoseconds([model], repeats=200) for _ in range(5))
    noisy = []
    for i in range(50):
        model.counter = i
        noisy.append(r.guards.nanoseconds([model], repeats=1))
    assert min(noisy) < 4 * quiet + 3000
