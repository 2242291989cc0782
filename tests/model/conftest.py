"""NumPy with one thread: on matrices this small, more threads only wait for each other."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
