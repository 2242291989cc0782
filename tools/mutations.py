#!/usr/bin/env python3
"""Plants known mistakes in a copy of the sources and expects a named test to fail on each.

    tools/mutations.py            all mutations (a few minutes)
    tools/mutations.py NAME ...   some of them
    tools/mutations.py --list

The list is docs/NUMERICS.md's "Mistakes that must be caught". A mutation whose text is no longer found is
an error: the source moved on and the list must follow.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutations" / "source"
BUILD = ROOT / "build" / "mutations" / "build"


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    before: str
    after: str
    program: str
    test: str  # a filter of GoogleTest; of the program sluice: its arguments


MUTATIONS = [
    Mutation("sequential-chain", "src/kernels/simd/product.inl",
             "odd_sum[r][h] = fma(a_odd, w_odd[h], odd_sum[r][h]);",
             "even_sum[r][h] = fma(a_odd, w_odd[h], even_sum[r][h]);",
             "kernels_test", "*GemmEqualsReference*"),
    Mutation("slices-in-a-row", "src/kernels/ref/gemm.cpp",
             "(slices[0] + slices[1]) + (slices[2] + slices[3])",
             "slices[0] + slices[1] + slices[2] + slices[3]",
             "kernels_test", "*GemmEqualsReference*"),
    Mutation("amx-ignores-slices", "src/kernels/amx/gemm.inl",
             "add(load(third + at), sum)", "add(sum, sum)",
             "kernels_test", "AmxModelTest*"),
    Mutation("int4-flip-ignored", "src/kernels/simd/int_weights.inl",
             "sub_bytes(times_eight(scale), keep_where_negative(scale, stored))", "times_eight(scale)",
             "kernels_test", "*IntKernelTest*"),
    Mutation("fp8-subnormals-as-normal", "src/kernels/simd/float_weights.inl",
             "where_zero(above, look_up(first.high, index), look_up(next.high, index))", "look_up(next.high, index)",
             "kernels_test", "*Fp8Test*"),
    Mutation("fp8-rounded-again", "src/weights/matrix_rows.cpp",
             "format == kernels::WeightFormat::fp8 &&", "false && format == kernels::WeightFormat::fp8 &&",
             "weights_test", "*BlocksOfFp8AreKept*"),
    Mutation("row-scale-first", "src/kernels/simd/gemm_int.inl",
             "mul(mul(sum, load(column_scales + half)), row_scale)",
             "mul(sum, mul(load(column_scales + half), row_scale))",
             "kernels_test", "*IntKernelTest*"),
    Mutation("fold-neighbours", "src/kernels/ref/canonical.h",
             "lanes[i] = lanes[i] + lanes[i + width];", "lanes[i] = lanes[2 * i] + lanes[2 * i + 1];",
             "kernels_test", "*NormsOfManyRowsEqualReference*"),
    Mutation("hi-before-lo", "src/kernels/simd/gdn.inl",
             "state_product(k, k_width, lo + at, hi + at,", "state_product(k, k_width, hi + at, lo + at,",
             "kernels_test", "*DeltaRuleEqualsReference*"),
    Mutation("decay-off-by-one", "src/kernels/ref/gdn.cpp",
             "const float d = decay(head.tail_g[t], head.tail_g[j]);",
             "const float d = decay(head.tail_g[t], j == 0 ? 0.0 : head.tail_g[j - 1]);",
             "kernels_test", "*DeltaRuleMatchesTheRecurrence*"),
    Mutation("fold-early", "src/ops/gated_delta.cpp",
             "if (tail_rows == kernels::kGdnChunk) {", "if (tail_rows >= kernels::kGdnChunk - 1) {",
             "model_test", "*LogitsDoNotDependOnStepSize*"),
    Mutation("segment-maximum", "src/kernels/ref/attention.cpp",
             "const float b = exp_f32(next.max - max);", "const float b = 1.0F;",
             "kernels_test", "*AttentionMatchesDoubleSoftmax*"),
    Mutation("rope-neighbours", "src/kernels/simd/rows.inl",
             "const V16 sin = load_first(args.sin + i, left);",
             "const V16 sin = load_first(args.sin + (i ^ 16), left);",
             "model_test", "*LogitsMatchTheOracle*"),
    Mutation("picture-rows-shifted", "src/model/qwen3_5.cpp",
             "act.x + picture.token_begin * config_.hidden_size",
             "act.x + (picture.token_begin == 0 ? 0 : picture.token_begin - 1) * config_.hidden_size",
             "model_test", "*EmbeddingRowsReplaceThoseOfTheirTokens*"),
    Mutation("picture-shorter-side", "src/model/mrope.cpp",
             "position + std::max(rows, columns)", "position + std::min(rows, columns)",
             "model_test", "MropeTest*"),
    Mutation("vision-axes-swapped", "src/model/vision_grid.cpp",
             "{at.row, at.column}", "{at.column, at.row}",
             "model_test", "VisionGoldenTest.Features*"),
    Mutation("vision-positions-not-corner-on-corner", "src/model/vision_grid.cpp",
             "static_cast<float>(count - 1)", "static_cast<float>(count)",
             "model_test", "VisionGoldenTest.Features*"),
    Mutation("vision-second-frame-ignored", "src/model/vision_embedding.cpp",
             "std::min(frame, input.frame_count - 1)", "std::min(frame, input.frame_count - input.frame_count)",
             "model_test", "VisionGoldenTest.FeaturesOfAVideo*"),
    Mutation("vision-keys-beyond-the-picture", "src/kernels/amx/attention.inl",
             "if (seen < kAttentionBlock) {", "if (seen < 0) {",
             "kernels_test", "*FullAttentionEqualsReference*"),
    Mutation("layer-norm-counts-its-padding", "src/kernels/simd/encoder.inl",
             "keep_first(sub(load_first(args.x + i, left), mean), left, zero())",
             "sub(load_first(args.x + i, left), mean)",
             "kernels_test", "*EncoderKernelTest.RowKernels*"),
    Mutation("norm-without-one", "src/model/weight_loader.cpp", "w = 1.0F + w;", "w = 0.0F + w;",
             "model_test", "*LogitsMatchTheOracle*"),
    Mutation("gated-norm-with-one", "src/model/gdn_layer.cpp",
             'layer.norm_weight_ = SLUICE_TRY(loader.vector(prefix + "norm.weight"));',
             'layer.norm_weight_ = SLUICE_TRY(loader.norm_weight(prefix + "norm.weight"));',
             "model_test", "*LogitsMatchTheOracle*"),
    Mutation("gate-before-norm", "src/ops/gated_delta.cpp",
             ".z = args.z + at,", ".z = args.o + at,", "model_test", "*LogitsMatchTheOracle*"),
    Mutation("tiled-heads", "src/ops/gated_delta.cpp",
             "const std::int64_t head = key_head * shape.heads_per_key() + j;",
             "const std::int64_t head = j * shape.key_heads + key_head;",
             "model_test", "*LogitsMatchTheOracle*"),
    Mutation("stale-conv-history", "src/ops/gated_delta.cpp",
             "const std::int64_t source = rows + row - kHistory;",
             "const std::int64_t source = std::max<std::int64_t>(0, rows + row - kHistory);",
             "model_test", "*LogitsDoNotDependOnStepSize*"),
    Mutation("checkpoint-one-row-early", "src/ops/gated_delta.cpp",
             "keep_history(u, channels, history, checkpoint.rows, begin, end,",
             "keep_history(u, channels, history, checkpoint.rows - 1, begin, end,",
             "model_test", "*ACheckpointIsTheState*"),
    Mutation("resume-without-state", "src/cache/hybrid_cache.cpp",
             "std::copy_n(slot(*tree_.checkpoint(match.node)), shape_.slot_bytes, state);",
             "std::fill_n(state, shape_.slot_bytes, std::byte{0});",
             "engine_test", "*TheSamePromptAgain*"),
    Mutation("salt-forgotten", "src/cache/prefix_tree.cpp",
             "roots_.try_emplace(std::string(salt), 0)", "roots_.try_emplace(std::string(salt.substr(0, 0)), 0)",
             "cache_test", "*SaltsNeverMeet*"),
    # What `sluice validate` must find by itself, without any test.
    Mutation("validate-stale-conv-history", "src/ops/gated_delta.cpp",
             "const std::int64_t source = rows + row - kHistory;",
             "const std::int64_t source = std::max<std::int64_t>(0, rows + row - kHistory);",
             "sluice", "validate tests/goldens/tiny08 --only cuts --quiet"),
    Mutation("validate-wrong-state-restored", "src/cache/hybrid_cache.cpp",
             "std::copy_n(slot(*tree_.checkpoint(match.node)), shape_.slot_bytes, state);",
             "std::fill_n(state, shape_.slot_bytes, std::byte{0});",
             "sluice", "validate tests/goldens/tiny08 --only batch --rounds 3 --quiet"),
    Mutation("validate-swapped-layers", "src/model/qwen3_5.cpp",
             'prefix + "layers." + std::to_string(i) + ".", layout.layer_offset[i], loader',
             'prefix + "layers." + std::to_string(i < 2 ? 1 - i : i) + ".", layout.layer_offset[i], loader',
             "sluice", "validate tests/goldens/hf_flat --only golden --golden tests/goldens/validation_hf_flat.json --quiet"),
    Mutation("validate-int4-flip-lost", "src/kernels/weight_format.cpp",
             "static_cast<std::byte>(scale.stored())", "static_cast<std::byte>(scale.size)",
             "sluice", "validate models/tiny --preset int4 --only reference --reference models/tiny --quick --quiet"),
]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)


def build(program):
    done = run("ninja", "-C", str(BUILD), program)
    if done.returncode != 0:
        sys.exit(f"build of {program} failed:\n{done.stdout[-3000:]}")


def passes(program, tests):
    """Whether all of these tests of the program do."""
    if program == "sluice":
        commands = [[*test.split()] for test in tests]
    else:
        commands = [[f"--gtest_filter={':'.join(tests)}"]]
    return all(run(str(BUILD / program), *arguments).returncode == 0 for arguments in commands)


def prepare():
    shutil.rmtree(COPY, ignore_errors=True)
    ignore = shutil.ignore_patterns("build", ".git", ".venv", "__pycache__", "target")
    # New times, so that no object of an earlier, mutated copy is taken for current.
    shutil.copytree(ROOT, COPY, ignore=ignore, copy_function=shutil.copyfile)
    done = run("cmake", "-S", str(COPY), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG")
    if done.returncode != 0:
        sys.exit(done.stdout)


def caught(mutation):
    """Whether the named test passes on the sources as they are and fails on the mutated ones."""
    path = COPY / mutation.file
    original = path.read_text()
    if original.count(mutation.before) != 1:
        sys.exit(f"{mutation.name}: {mutation.file} holds the text {original.count(mutation.before)} times, want 1:\n"
                 f"  {mutation.before}")
    path.write_text(original.replace(mutation.before, mutation.after))
    try:
        build(mutation.program)
        return not passes(mutation.program, [mutation.test])
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="mutations to try; all when none is given")
    parser.add_argument("--list", action="store_true", help="print the mutations and stop")
    options = parser.parse_args()
    known = {m.name: m for m in MUTATIONS}
    if options.list:
        for m in MUTATIONS:
            print(f"{m.name:22} {m.file}  ->  {m.program} {m.test}")
        return 0
    unknown = [n for n in options.names if n not in known]
    if unknown:
        sys.exit(f"unknown mutation {unknown[0]}; see --list")
    chosen = [known[n] for n in options.names] or MUTATIONS
    prepare()
    for program in sorted({m.program for m in chosen}):
        build(program)
        if not passes(program, sorted({m.test for m in chosen if m.program == program})):
            sys.exit(f"{program} fails without any mutation")
    missed = 0
    for m in chosen:
        ok = caught(m)
        missed += not ok
        print(f"{'caught' if ok else 'MISSED'}  {m.name:22} {m.program} {m.test}", flush=True)
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
