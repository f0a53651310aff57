"""Time to trace a GPT-2 training step (12 layers, 128 tokens): forward, and backward through PyTorch's engine."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from braze import _C


def main() -> None:
    """Print nodes and the least time of five traces, in milliseconds."""
    config = GPT2Config(use_cache=False, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = GPT2LMHeadModel(config).train()
    torch.compiler.is_compiling = lambda: True  # the mask code reads values otherwise
    ids = torch.randint(0, config.vocab_size, (1, 128))
    names = {id(t): n for n, t in [*model.named_parameters(), *model.named_buffers()]}
    own = {n: t for t_id, n in names.items() for t in model.state_dict(keep_vars=True).values() if id(t) == t_id}

    def program(*fakes: torch.Tensor) -> torch.Tensor:
        parts = dict(zip(own, fakes, strict=False))
        inputs = {"input_ids": fakes[-1], "labels": fakes[-1]}
        return torch.func.functional_call(model, parts, (), inputs).loss

    traces = [_C.trace(program, [*own.values(), ids]) for _ in range(5)]
    if traces[0].poison:
        raise RuntimeError(traces[0].poison)
    best = min(traces, key=lambda t: t.forward_ms + t.finish_ms)
    print(f"{best.nodes} nodes, forward {best.forward_ms:.1f} ms, backward {best.finish_ms:.1f} ms")


if __name__ == "__main__":
    main()
