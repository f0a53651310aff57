"""Faults that user programs showed, each at its smallest: values, strides, order of effects, tracebacks."""

import collections
import gc
import traceback
import weakref

import pytest
import torch

import braze


def dense(shape):
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


def both(f, make, calls=2):
    """Eager's and the compiled function's results and arguments, for equal fresh arguments."""
    compiled = braze.compile(f)
    for _ in range(calls):
        plain, ours = make(), make()
        yield f(*plain), compiled(*ours), plain, ours


STRIDES = {
    "transposed": lambda: dense((3, 6)).t(),
    "every_second_column": lambda: dense((6, 6))[:, ::2],
    "rows_with_gaps": lambda: dense((6, 4))[:, :3],
    "channels_last": lambda: dense((1, 6, 3, 1)).contiguous(memory_format=torch.channels_last)[0, :, :, 0],
}


@pytest.mark.parametrize("layout", STRIDES)
@pytest.mark.parametrize("write", ["add", "index_add", "copy", "masked_fill"])
def test_in_place_operators_keep_strides(layout, write):
    def f(x):
        rows = torch.tensor([0, 2, 0])
        if write == "add":
            x.add_(1)
        elif write == "index_add":
            x.index_add_(0, rows, torch.ones(3, 3))
        elif write == "copy":
            x[1:3].copy_(x[3:5] * 2)
        else:
            x.masked_fill_(x > 4, -1.0)
        return x, x[:, 1:], x.t(), x.stride()

    for want, got, plain, ours in both(f, lambda: [STRIDES[layout]()]):
        assert got[0] is ours[0]
        assert got[3] == want[3]
        for a, b in zip(got[:3], want[:3]):
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b)
        torch.testing.assert_close(ours[0], plain[0])


@pytest.mark.parametrize(
    "extremum",
    [
        lambda x: x.max(0).values,
        lambda x: x.min(0).indices,
        lambda x: x.amax(0),
        lambda x: x.argmax(0),
        lambda x: x.kthvalue(1, 0).values,
        lambda x: x.mode(0).values,
    ],
)
def test_an_extremum_over_nothing_raises(extremum):
    with pytest.raises(IndexError):
        braze.compile(extremum)(torch.rand(0, 2))


def test_concatenation_with_an_empty_part():
    def f(x):
        return torch.cat((x, x[:0] + 1, x * 2))

    for want, got, _, _ in both(f, lambda: [dense((2, 3))]):
        torch.testing.assert_close(got, want)


class Noted:
    log = []

    def __init__(self, name):
        self.name = name

    def __del__(self):
        Noted.log.append(self.name)


def test_a_finaliser_runs_where_the_object_is_dropped():
    def f(x):
        first = Noted("deleted")
        y = x + 1
        del first
        a = len(Noted.log)
        second = Noted("replaced")
        y = y * 2
        second = None
        b = len(Noted.log)
        Noted("never kept")
        return y, a, b, len(Noted.log), second

    compiled = braze.compile(f)
    for _ in range(3):
        results = []
        for g in (f, compiled):
            Noted.log.clear()
            results.append((g(torch.ones(2))[1:], list(Noted.log)))
        assert results[0] == results[1]


def test_the_callback_of_a_weak_reference_runs_where_the_object_is_dropped():
    class Plain:
        pass

    gone = []

    def make():
        thing = Plain()
        return thing, weakref.ref(thing, lambda _: gone.append(1))

    def f(x, things):
        thing = things.pop()
        y = x + 1
        thing = None
        return y, len(gone), thing

    counts = []
    for g in (f, braze.compile(f)):
        gone.clear()
        for _ in range(2):
            thing, reference = make()
            things = [thing]
            del thing
            counts.append(g(torch.ones(2), things)[1])
            del reference
    gc.collect()
    assert counts[:2] == counts[2:]


def test_a_deque_of_tuples_changes():
    def f(x, q):
        q.append((1, 2))
        return x + q[0][0]

    for want, got, plain, ours in both(f, lambda: [torch.ones(2), collections.deque([(3, 4)], maxlen=3)]):
        torch.testing.assert_close(got, want)
        assert ours[1] == plain[1]


def test_a_set_is_seen_in_its_own_order():
    def f(x, s):
        s.discard(5)
        return x + 1, [v for v in s], 8 in s

    def make():
        s = {8, 0, 5, 16, 1}
        s.discard(1)
        return [torch.ones(2), s]

    for want, got, plain, ours in both(f, make):
        assert got[1:] == want[1:]
        assert list(ours[1]) == list(plain[1])


def test_a_caught_exception_that_leaves_has_the_traceback_of_its_first_raise():
    def deep(x):
        return x.nonsense

    def f(x, log):
        try:
            try:
                return deep(x)
            finally:
                log.append(1)
        except AttributeError as error:
            log.append(2)
            raise error

    def where(g):
        log = []
        with pytest.raises(AttributeError) as caught:
            g(torch.ones(2), log)
        names = [(frame.name, frame.lineno) for frame in traceback.extract_tb(caught.value.__traceback__)]
        return [n for n in names if n[0] in ("deep", "f")], log

    compiled = braze.compile(f)
    for _ in range(2):
        assert where(compiled) == where(f)
