"""Triton kernels of the attention statistics will live here; there are none yet."""
