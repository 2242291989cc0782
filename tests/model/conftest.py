"""NumPy with one thread: on matrices this small, more threads only wait for each other."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
