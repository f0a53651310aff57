"""The demo: trains three models, eager and compiled from the same seed, and shows what compiling cost and gained.

    (a) a ConvNet and a ViT on scikit-learn's handwritten digits, (b) a GPT-2 on Python's own docstrings

Prints a table (cold compile, step time, break-even, final loss), the accuracy of each classifier, and the largest
relative difference of the loss curves; draws both curves into build/demo.png.
"""

from __future__ import annotations

import copy
import math
import pydoc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor, nn

import braze

Batch = tuple[Tensor, Tensor]


class ConvNet(nn.Module):
    """Two convolutions with batch norm, for 8x8 images in 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Linear(64 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).flatten(1))


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A vision transformer on overlapping 3x3 patches of 8x8 images."""

    def __init__(self, width: int = 64, depth: int = 3, heads: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.position = nn.Parameter(torch.randn(16, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(patches + self.position)).mean(1))


@dataclass
class Job:
    """One model with its data: ``batches`` are fixed, so that both runs see the same."""

    name: str
    model: nn.Module
    loss: Callable[[nn.Module, Batch], Tensor]
    batches: list[Batch]
    rate: float
    accuracy: Callable[[nn.Module], float] | None = None


@dataclass
class Run:
    """What one training run gave."""

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracy: float = math.nan

    @property
    def step(self) -> float:
        return statistics.median(self.seconds[5:])

    @property
    def cold(self) -> float:
        return max(sum(self.seconds[:5]) - 5 * self.step, 0.0)


def digits_jobs(epochs: int, seed: int) -> list[Job]:
    """The two classifiers on scikit-learn's digits, a fifth of them held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32)[:, None] / 8 - 1
    y = torch.tensor(data.target)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    train, test = order[: len(x) * 4 // 5], order[len(x) * 4 // 5 :]
    generator = torch.Generator().manual_seed(seed + 1)
    batches = []
    for _ in range(epochs):
        shuffled = train[torch.randperm(len(train), generator=generator)]
        batches += [(x[i], y[i]) for i in shuffled.split(64) if len(i) == 64]

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1])

    def accuracy(model: nn.Module) -> float:
        model.eval()
        with torch.no_grad():
            right = (model(x[test]).argmax(1) == y[test]).float().mean().item()
        model.train()
        return 100 * right

    torch.manual_seed(seed)
    return [Job("ConvNet", ConvNet(), loss, batches, 2e-3, accuracy), Job("ViT", ViT(), loss, batches, 3e-3, accuracy)]


def gpt2_job(steps: int, seed: int) -> Job:
    """A small GPT-2 of transformers that learns the text of Python's documentation strings, byte by byte."""
    from transformers import GPT2Config, GPT2LMHeadModel

    topics = ("builtins", "collections", "itertools", "functools", "os.path", "string", "random", "statistics", "json")
    text = "\n".join(pydoc.plain(pydoc.render_doc(topic)) for topic in topics)
    data = torch.tensor(list(text.encode("utf-8", "replace")))
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(steps):
        at = torch.randint(0, len(data) - 129, (8,), generator=generator)
        ids = torch.stack([data[i : i + 128] for i in at.tolist()])
        batches.append((ids, ids))
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=256, n_positions=128, n_embd=128, n_layer=4, n_head=4, use_cache=False,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return Job("GPT-2", GPT2LMHeadModel(config), lambda m, b: m(input_ids=b[0], labels=b[1]).loss, batches, 1e-3)


def train(job: Job, compiled: bool, progress: Progress) -> Run:
    """Train a copy of the job's model from its initial state."""
    run, owner = Run(), copy.deepcopy(job.model).train()
    model = braze.compile(owner) if compiled else owner
    optimizer = torch.optim.AdamW(owner.parameters(), lr=job.rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, job.rate, total_steps=len(job.batches))
    task = progress.add_task(f"{job.name} {'compiled' if compiled else 'eager'}", total=len(job.batches))
    for batch in job.batches:
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = job.loss(model, batch)
        loss.backward()
        optimizer.step()
        schedule.step()
        run.seconds.append(time.perf_counter() - start)
        run.losses.append(loss.item())
        progress.advance(task)
    if job.accuracy:
        run.accuracy = job.accuracy(model)
    return run


def difference(a: Run, b: Run) -> float:
    """Largest relative difference of two loss curves, each step against the larger of the two and 5 % of the start."""
    floor = 0.05 * max(a.losses[0], b.losses[0])
    return max(abs(p - q) / max(p, q, floor) for p, q in zip(a.losses, b.losses, strict=True))


def draw(results: dict[str, tuple[Run, Run]], path: Path) -> None:
    """Both loss curves of every job, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(5 * len(results), 3.6))
    for axis, (name, (eager, compiled)) in zip(axes, results.items(), strict=True):
        axis.plot(eager.losses, label="eager", linewidth=3, alpha=0.4)
        axis.plot(compiled.losses, label="braze", linewidth=1)
        axis.set(title=name, xlabel="step", ylabel="loss", yscale="log")
        axis.legend()
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def table(results: dict[str, tuple[Run, Run]]) -> Table:
    """Cold compile, step time, break-even and final loss of both runs."""
    out = Table(title="eager and compiled, same seed")
    for head in ("model", "cold compile s", "eager ms", "braze ms", "break-even", "loss eager", "loss braze"):
        out.add_column(head, justify="left" if head == "model" else "right")
    for name, (eager, compiled) in results.items():
        gain = eager.step - compiled.step
        even = f"{compiled.cold / gain:.0f} steps" if gain > 0.03 * eager.step else "-"
        row = (f"{compiled.cold:.2f}", f"{eager.step * 1e3:.2f}", f"{compiled.step * 1e3:.2f}", even)
        out.add_row(name, *row, f"{eager.losses[-1]:.5f}", f"{compiled.losses[-1]:.5f}")
    return out


def main() -> int:
    """Run the jobs; the exit status says whether the curves agree and the classifiers learned."""
    console = Console(width=110)
    quick = "--quick" in sys.argv
    jobs = [*digits_jobs(epochs=3 if quick else 20, seed=0), gpt2_job(steps=12 if quick else 120, seed=0)]
    results: dict[str, tuple[Run, Run]] = {}
    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for job in jobs:
            results[job.name] = (train(job, False, progress), train(job, True, progress))
    console.print(table(results))
    worst = 0.0
    for name, (eager, compiled) in results.items():
        if not math.isnan(compiled.accuracy):
            console.print(f"{name}: accuracy {compiled.accuracy:.2f} % (eager {eager.accuracy:.2f} %)")
        apart = difference(eager, compiled)
        worst = max(worst, apart)
        console.print(f"{name}: largest relative difference of the loss curves {apart:.1e}")
    draw(results, Path("build/demo.png"))
    console.print("curves: build/demo.png")
    learned = all(c.accuracy > 97 for _, c in results.values() if not math.isnan(c.accuracy))
    return 0 if quick or (worst < 1e-3 and learned) else 1


if __name__ == "__main__":
    sys.exit(main())
