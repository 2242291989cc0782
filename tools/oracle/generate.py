"""Greedy token ids from token ids with the oracle, for comparison by eye.

    python3 tools/oracle/generate.py DIR --token-ids 1,2,3 [-n 16]
"""
import argparse

from qwen3_5_oracle.model import Model


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("directory")
    ap.add_argument("--token-ids", required=True, help="comma-separated prompt")
    ap.add_argument("-n", type=int, default=16, help="tokens to generate")
    args = ap.parse_args()
    ids = [int(t) for t in args.token_ids.split(",")]
    print(*Model.load(args.directory).greedy(ids, args.n)[0], sep=",")


if __name__ == "__main__":
    main()
