"""NumPy oracle of the qwen3_5 dense hybrid family: slow, short and exact.

The arithmetic is float64 unless told otherwise, one sequence at a time.  It needs nothing but
NumPy and shares no code with the engine: what the two agree on was written twice.
"""
from .config import Config
from .model import Cache, Model
from .safetensors import load_checkpoint, read_safetensors, write_safetensors

__all__ = ["Cache", "Config", "Model", "load_checkpoint", "read_safetensors", "write_safetensors"]
