"""A value is needed: the segment ends before the call and yields the frame's slots."""

import torch

args = (torch.ones(2),)


def program(x):
    y = x * 2
    n = y.sum().item()
    return y + n
