"""Checks many files on all cores, as far as there is time."""
import concurrent.futures
import os
import sys
import time


def seconds_allowed():
    """Returns the number behind --seconds on the command line; infinity without it."""
    return float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else float("inf")


def checked_in_time(check, items, seconds):
    """Yields (item, check(item)) in order, or (item, None) for a check that could not begin within so many seconds."""
    ends = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(items, pool.map(lambda item: check(item) if time.monotonic() < ends else None, items))


def told(left):
    """Returns the words about the files that had no time."""
    return f"; {left} more had no time" if left else ""
