"""The training state that the workers share: weights, gradients, optimiser state; and its file.

Everything is a view into few flat tensors in shared memory. The file is one safetensors file with the
counters in its metadata, replaced atomically.
"""
import json
import os

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from optimiser import state_names
from weights import initial_weights, shapes


class Shared:
    def __init__(self, workers):
        self.shapes = shapes()
        self.state_shapes = {s: shape for name, shape in self.shapes.items() for s in state_names(name, shape)}
        size, state_size = (sum(torch.Size(s).numel() for s in x.values()) for x in (self.shapes, self.state_shapes))
        self.flat_weights = torch.zeros(size).share_memory_()
        self.flat_gradients = torch.zeros(workers, size).share_memory_()
        self.flat_state = torch.zeros(state_size).share_memory_()
        self.numbers = torch.zeros(workers, 64, dtype=torch.float64).share_memory_()

    def weights(self):
        return views(self.flat_weights, self.shapes)

    def gradients(self, worker):
        return views(self.flat_gradients[worker], self.shapes)

    def state(self):
        return views(self.flat_state, self.state_shapes)

    def start(self, seed, model_dir=None):
        """Random weights, or those of an exported model."""
        if model_dir:
            with safe_open(os.path.join(model_dir, "model.safetensors"), "pt") as file:
                for name, target in self.weights().items():
                    target.copy_(file.get_tensor(name))
            return
        for name, value in initial_weights(seed).items():
            self.weights()[name].copy_(value)

    def save(self, path, counters):
        tensors = {**self.weights(), **self.state()}
        save_file(tensors, path + ".part", {"counters": json.dumps(counters)})
        os.replace(path + ".part", path)

    def load(self, path):
        """Fills weights and state, returns the counters."""
        targets = {**self.weights(), **self.state()}
        with safe_open(path, "pt") as file:
            assert set(file.keys()) == set(targets), path
            for name, target in targets.items():
                target.copy_(file.get_tensor(name))
            return json.loads(file.metadata()["counters"])


def views(flat, shapes_by_name):
    parts = flat.split([torch.Size(shape).numel() for shape in shapes_by_name.values()])
    return {name: part.view(shape) for (name, shape), part in zip(shapes_by_name.items(), parts)}


def shares_of(shapes_by_name, workers):
    """The names that each worker updates: about equal work, the largest first."""
    loads, out = [0] * workers, [[] for _ in range(workers)]
    for name in sorted(shapes_by_name, key=lambda n: -torch.Size(shapes_by_name[n]).numel()):
        least = loads.index(min(loads))
        loads[least] += torch.Size(shapes_by_name[name]).numel()
        out[least].append(name)
    return out
