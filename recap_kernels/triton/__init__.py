"""Triton kernels of the attention statistics; ``backend`` is where calls come in."""
