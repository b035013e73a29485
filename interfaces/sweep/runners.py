"""Where chunks are worked on: processes here, Ray, or Slurm through submitit.

A runner gets chunks and yields answers in any order; the sweep keeps each as it comes.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol

from ...models.errors import InputError, unknown_name
from .chunks import Chunk, answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Done = tuple[Chunk, dict[str, Any]]
#: Times a chunk may take its worker with it before the sweep gives up.
ATTEMPTS = 3
_POLL = 2.0


class Runner(Protocol):
    """Works on chunks."""

    def __call__(
        self, chunks: Sequence[Chunk], workers: int, folder: Path
    ) -> Iterator[Done]:
        """Yield each chunk with its answer, as they are done."""


def local(chunks: Sequence[Chunk], workers: int, folder: Path) -> Iterator[Done]:
    """Work in processes on this machine; a worker that dies is replaced."""
    waiting, left = list(chunks), ATTEMPTS
    while waiting:
        # Threads of the parent must not be forked: workers start afresh.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(answer_of, chunk): chunk for chunk in waiting}
            try:
                for future in as_completed(futures):
                    done = futures[future]
                    answer = future.result()
                    waiting.remove(done)
                    yield done, answer
            except BrokenProcessPool:
                left -= 1
                if not left:
                    raise InputError(
                        f"workers died {ATTEMPTS} times, most likely for want of "
                        "memory; give fewer --workers"
                    ) from None
            except GeneratorExit:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def on_ray(chunks: Sequence[Chunk], workers: int, folder: Path) -> Iterator[Done]:
    """Work on Ray: the cluster of ``RAY_ADDRESS``, or one on this machine."""
    try:
        import ray
    except ImportError:
        raise InputError(
            "--runner ray needs Ray; install shardproof[ray], or use --runner local"
        ) from None
    started = not ray.is_initialized()
    if started:
        _start_ray(ray, workers)
    try:
        work = ray.remote(max_retries=ATTEMPTS, num_cpus=1)(answer_of)
        waiting = {work.remote(chunk): chunk for chunk in chunks}
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()


def _start_ray(ray: Any, workers: int) -> None:
    import os

    there = os.environ.get("RAY_ADDRESS")
    size = {} if there else {"num_cpus": workers, "include_dashboard": False}
    ray.init(address=there, log_to_driver=False, logging_level="ERROR", **size)


def on_slurm(chunks: Sequence[Chunk], workers: int, folder: Path) -> Iterator[Done]:
    """Work in one Slurm job array, at most ``workers`` jobs at a time.

    The folder must be on a file system that the nodes share, and Python and shardproof
    at the same place there.
    """
    try:
        import submitit
    except ImportError:
        raise InputError(
            "--runner slurm needs submitit; install shardproof[slurm], or use "
            "--runner local"
        ) from None
    executor = submitit.AutoExecutor(folder=folder / "slurm", cluster="slurm")
    executor.update_parameters(
        name="shardproof-sweep",
        slurm_array_parallelism=workers,
        cpus_per_task=1,
        timeout_min=60,
    )
    jobs = dict(zip(executor.map_array(answer_of, chunks), chunks, strict=True))
    try:
        while jobs:
            done = [job for job in jobs if job.done()]
            for job in done:
                yield jobs.pop(job), job.result()
            if jobs and not done:
                time.sleep(_POLL)
    finally:
        for job in jobs:
            job.cancel(check=False)


RUNNERS: dict[str, Runner] = {"local": local, "ray": on_ray, "slurm": on_slurm}


def runner(name: str) -> Runner:
    """Look up a runner by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in RUNNERS:
        raise unknown_name("runner", name, RUNNERS)
    return RUNNERS[name]
