"""What prices the pieces of a model over distinct layouts of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .work import Work

if TYPE_CHECKING:
    from ..profiles import Profile
    from .kernels import Kernels
    from .run import Run
    from .shape import Shape


@dataclass(frozen=True)
class Pricer:
    """What prices a layer: kernels and the profile's stack, over the layouts."""

    kernels: Kernels
    profile: Profile
    shape: Shape
    hidden: int
    run: Run

    def crossing(self, enter: float, leave: float) -> Work:
        """Price one tensor-parallel region.

        Parameters
        ----------
        enter, leave
            Widths of what enters and leaves it, in numbers a token.

        Notes
        -----
        The backward scatters the gradient of what entered and gathers that of what
        left; without sequence parallelism each direction has one all-reduce.
        """
        shape, stack = self.shape, self.profile.stack
        ahead = shape.enter(enter) + shape.leave(leave)
        back = np.where(
            shape.sp > 0, shape.enter(leave) + shape.leave(enter), shape.leave(enter)
        )
        left = 1 - stack.tp_hidden if self.run.tp_overlap else 1.0
        return Work(
            {"tp": ahead * (stack.tp_forward * left)},
            {"tp": back * (stack.tp_backward * left)},
        )
