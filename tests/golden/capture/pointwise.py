"""Plain tensor code: one graph, guards on the two arguments."""

import torch

args = (torch.ones(2, 3), torch.ones(3))


def program(x, y):
    return (x * y).relu().sum(dim=1)
