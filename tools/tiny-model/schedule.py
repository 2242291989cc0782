"""What is trained when: lengths and learning rate, by the share of the budget that is used (0..1)."""
import random

BATCH_TOKENS = 2048   # at once in one worker

# Until this share of the budget: tokens of an optimiser step, all workers together. A longer sequence is
# a step of its own.
STEP_TOKENS = [(0.40, 4096), (1.00, 8192)]

# Until this share of the budget: {bucket of length: share of the tokens}.
LENGTHS = [
    (0.10, {256: 1.0}),
    (0.40, {256: 0.3, 512: 0.4, 1024: 0.3}),
    (0.65, {512: 0.5, 1024: 0.3, 2048: 0.2}),
    (0.82, {512: 0.45, 1024: 0.2, 2048: 0.15, 4096: 0.12, 8192: 0.08}),
    (1.00, {512: 0.45, 1024: 0.15, 2048: 0.1, 4096: 0.08, 8192: 0.07, 16384: 0.06, 32768: 0.05, 65536: 0.04}),
]
WARM_UP, DECAY_FROM = 0.01, 0.5
SKIPPED_WHEN_STARTED = 0.10  # of LENGTHS, by a run that begins with trained weights
SECOND_DRAFT_FROM, SECOND_DRAFT_MAX = 0.5, 512  # share of the budget, longest bucket
DRAFT_WEIGHTS = 0.2, 0.1


def rate(used):
    """Of the learning rates: warm-up, stable, linear to zero."""
    return max(0.0, min(1.0, (used + 0.001) / WARM_UP, (1 - used) / (1 - DECAY_FROM)))


def until(table, used):
    """The table's entry for this share of the budget."""
    return next(value for end, value in table if used < end or end == 1)


def lengths_of_step(seed, step, used, workers):
    """The buckets of one worker's batches in this step; the same for all workers."""
    rng = random.Random(f"{seed} {step}")
    mix, each = until(LENGTHS, used), until(STEP_TOKENS, used) // workers
    out, tokens = [], 0
    while tokens < each:
        length = draw(rng, mix, each)
        if length > each:
            return [length]
        out.append(length)
        tokens += max(length, BATCH_TOKENS)
    return out


def draw(rng, mix, each):
    """A bucket, drawn so that its share of all tokens comes out right."""
    chances = [share / max(length, BATCH_TOKENS) for length, share in mix.items()]
    return rng.choices(list(mix), chances)[0]


def examples_in_batch(length):
    return max(1, BATCH_TOKENS // length)


def drafts(used, length):
    return 2 if used >= SECOND_DRAFT_FROM and length <= SECOND_DRAFT_MAX else 1
