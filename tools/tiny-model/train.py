"""Trains the tiny model on generated conversations.

    python tools/tiny-model/train.py --out DIR (--minutes M | --tokens MILLIONS) [--seed N] [--resume | --start MODEL]

Needs the tokenizer in models/tiny (or --model-dir). Writes DIR/training.safetensors every five minutes
and at the end; with --resume a stopped run goes on from it. --start begins a new run from the weights of an
exported model. One process per core works on its own batches; gradients are summed in shared memory and
each process updates its share of the weights.

With --tokens a run on the same kind of machine and number of workers gives the same bits, unless it was
resumed: the streams of examples start anew then, with another seed. With --minutes the learning rate
depends on the clock.
"""
import argparse
import collections
import ctypes
import os
import signal
import time

import torch
import torch.multiprocessing as mp

import model
import native
import optimiser
import reference
import schedule
from batches import Source, batch_of
from render import TINY
from shared import Shared, shares_of

LIBC = ctypes.CDLL("libc.so.6")
STEPS_PER_TRIM = 16
SAVE_SECONDS, LINE_SECONDS, SKILLS_SECONDS = 300, 10, 60
GRADIENT_NORM_MAX = 1.0
ANSWER_WEIGHT = 0.5  # from this weight on a place counts as answer in the losses by skill
TYPICAL_WEIGHT_MEMORY = 0.98
WEIGHT, NORM, TOKENS, LOSSES = 0, 1, 2, 3  # columns of Shared.numbers; three losses, then their weights


class Worker:
    def __init__(self, rank, shared, barrier, counters, options):
        self.rank, self.shared, self.barrier, self.counters, self.options = rank, shared, barrier, counters, options
        self.w = shared.weights()
        self.gradients = shared.gradients(rank)
        for name, tensor in self.w.items():
            tensor.requires_grad_().grad = self.gradients[name]
        self.everyones = [shared.gradients(k) for k in range(options.workers)]
        self.state = shared.state()
        self.names = shares_of(shared.shapes, options.workers)[rank]
        self.ops = native if native.available() else reference
        self.sources = {}
        self.skills = collections.defaultdict(lambda: [0.0, 0])

    def batch(self, length):
        if length not in self.sources:
            seed = f"{self.options.seed} {self.rank} {length} {self.counters['step']}"
            self.sources[length] = Source(seed, length, self.options.model_dir)
        return self.sources[length].take(schedule.examples_in_batch(length))

    def step(self, used):
        """Gradients of this worker's batches, then everyone's sum, then this worker's share of the update."""
        numbers = self.shared.numbers[self.rank]
        numbers.zero_()
        self.shared.flat_gradients[self.rank].zero_()
        along = max(used, schedule.SKIPPED_WHEN_STARTED) if self.options.start else used
        lengths = schedule.lengths_of_step(self.options.seed, self.counters["step"], along, self.options.workers)
        for length in lengths:
            self.add(length, used, numbers)
        self.barrier.wait()
        total = self.shared.numbers[:, WEIGHT].sum().item()
        typical = self.counters["typical_weight"] or total
        self.counters["typical_weight"] = typical + (total - typical) * (1 - TYPICAL_WEIGHT_MEMORY)
        with torch.no_grad():
            own = {name: sum_of([g[name] for g in self.everyones]) for name in self.names}
            # A step with few weighted places would otherwise be as large as its noise.
            scale = 1 / max(1.0, (total * self.counters["typical_weight"]) ** 0.5)
            norms = torch._foreach_norm(list(own.values()))
            numbers[NORM] = torch.stack(norms).square().sum().item() * scale ** 2
            self.barrier.wait()
            norm = self.shared.numbers[:, NORM].sum().sqrt().item()
            torch._foreach_mul_(list(own.values()), scale * min(1.0, GRADIENT_NORM_MAX / (norm + 1e-9)))
            optimiser.step(self.w, own, self.state, self.names, self.counters["step"] + 1, schedule.rate(used))
        native.weights_changed()
        self.barrier.wait()
        self.counters["step"] += 1
        if self.counters["step"] % STEPS_PER_TRIM == 0 or max(lengths) > schedule.BATCH_TOKENS:
            LIBC.malloc_trim(0)  # sizes vary, so freed memory breaks up
        self.counters["tokens"] += int(self.shared.numbers[:, TOKENS].sum())
        return norm

    def add(self, length, used, numbers):
        skills, examples = zip(*self.batch(length))
        batch = batch_of(examples)
        results = model.losses(self.ops, self.w, batch, schedule.drafts(used, length))
        parts = zip((1, *schedule.DRAFT_WEIGHTS), results)
        sum(weight * loss for weight, (loss, _) in parts).backward()
        numbers[TOKENS] += sum(len(e.ids) for e in examples)
        for i, (loss, _) in enumerate(results):
            weight = batch.weights[:, i + 1:].sum()
            numbers[LOSSES + i] += loss.item()
            numbers[LOSSES + 3 + i] += weight
        numbers[WEIGHT] += batch.weights.sum()
        rows, columns = torch.nonzero(batch.weights[:, 1:], as_tuple=True)
        answers = batch.weights[rows, columns + 1] > ANSWER_WEIGHT
        for row, loss in zip(rows[answers].tolist(), results[0][1][answers].tolist()):
            entry = self.skills[skills[row]]
            entry[0] += loss
            entry[1] += 1


def sum_of(tensors):
    out = tensors[0].clone()
    for t in tensors[1:]:
        out += t
    return out


class Progress:
    """What worker 0 knows beside the others: the clock, the log and the file."""

    def __init__(self, shared, counters, options):
        self.shared, self.counters, self.options = shared, counters, options
        self.path = os.path.join(options.out, "training.safetensors")
        self.began = time.monotonic() - counters["seconds"]
        self.saved = self.line = self.by_skill = time.monotonic()
        self.tokens_then = counters["tokens"]
        self.sums = torch.zeros(64, dtype=torch.float64)

    def used(self):
        if self.options.tokens:
            return self.counters["tokens"] / (self.options.tokens * 1e6)
        return (time.monotonic() - self.began) / (self.options.minutes * 60)

    def after_step(self, norm, used, skills):
        self.sums += self.shared.numbers.sum(0)
        now = time.monotonic()
        if now - self.line >= LINE_SECONDS:
            speed = (self.counters["tokens"] - self.tokens_then) / (now - self.line)
            losses = self.sums[LOSSES:LOSSES + 3] / self.sums[LOSSES + 3:LOSSES + 6].clamp(min=1)
            left = (now - self.began) / max(used, 1e-9) * (1 - used)
            print(f"step {self.counters['step']} {100 * used:.1f} % {self.counters['tokens'] / 1e6:.2f} M tokens "
                  f"{speed:.0f}/s loss {losses[0]:.3f} drafts {losses[1]:.3f} {losses[2]:.3f} norm {norm:.2f} "
                  f"rate {schedule.rate(used):.3f} left {left / 60:.0f} min", flush=True)
            self.line, self.tokens_then = now, self.counters["tokens"]
            self.sums.zero_()
        if now - self.by_skill >= SKILLS_SECONDS:
            print("  " + "  ".join(f"{name} {total / count:.3f}" for name, (total, count) in sorted(skills.items())),
                  flush=True)
            skills.clear()
            self.by_skill = now
        if now - self.saved >= SAVE_SECONDS:
            self.save()

    def save(self):
        self.counters["seconds"] = time.monotonic() - self.began
        self.shared.save(self.path, self.counters)
        self.saved = time.monotonic()


def work(rank, shared, barrier, used, counters, options):
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent, however it ends
    keep_freed_memory()
    torch.set_num_threads(1)
    worker = Worker(rank, shared, barrier, counters, options)
    progress = Progress(shared, counters, options) if rank == 0 else None
    while True:
        if progress:
            used[0] = progress.used()
        barrier.wait()
        now = used[0].item()
        if now >= 1:
            break
        norm = worker.step(now)
        if progress:
            progress.after_step(norm, now, worker.skills)
    if progress:
        progress.save()


def keep_freed_memory():
    """Tensors of a layer come and go; without this each one is new, zeroed pages."""
    M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
    for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 64 << 20)):
        LIBC.mallopt(option, value)


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    budget = ap.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float)
    budget.add_argument("--tokens", type=float, help="millions")
    ap.add_argument("--seed", type=int, default=1)
    beginning = ap.add_mutually_exclusive_group()
    beginning.add_argument("--resume", action="store_true")
    beginning.add_argument("--start", metavar="MODEL", help="directory of an exported model")
    ap.add_argument("--model-dir", default=TINY)
    ap.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    return ap.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(1)
    os.makedirs(options.out, exist_ok=True)
    shared = Shared(options.workers)
    counters = dict(step=0, tokens=0, seconds=0.0, typical_weight=0.0)
    if options.resume:
        counters = shared.load(os.path.join(options.out, "training.safetensors"))
    else:
        shared.start(options.seed, options.start)
    if native.available():
        native.library()  # compiled once, before the workers start
    os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"  # of the workers: a third faster with large pages
    context = mp.get_context("spawn")
    used = torch.zeros(1, dtype=torch.float64).share_memory_()
    barrier = context.Barrier(options.workers)
    processes = [context.Process(target=work, args=(rank, shared, barrier, used, dict(counters), options), daemon=True)
                 for rank in range(options.workers)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        time.sleep(1)
        if any(process.exitcode for process in processes):
            raise SystemExit("a worker failed")


if __name__ == "__main__":
    main()
