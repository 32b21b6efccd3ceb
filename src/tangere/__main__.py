"""`python -m tangere` and the command `tangere`: Ctrl-C is an end and no fault, from the first import on."""

import os
import sys


def _open() -> None:
    """Streams that whoever started us has closed lead nowhere: the next file would have their number and their text."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def main() -> int:
    """The command line (cli.main), which takes a moment to load."""
    _open()
    # our matrices are small: threads of linear algebra wait for each other, and took 3 to 6 times the computing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from tangere.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, what a shell expects


if __name__ == "__main__":
    raise SystemExit(main())
