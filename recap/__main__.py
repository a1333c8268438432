"""The program: ``recap`` and ``python -m recap``.

Until the command line can answer it, an interrupt ends the program as it ends any other, without a
trace of half-loaded modules.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from recap.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
