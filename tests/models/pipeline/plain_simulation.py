"""An event simulation in plain loops: ranks wait for messages and for themselves.

Takes an order's slots and its paths, and shares nothing else with the product.
"""

import itertools


def plain_ends(order, forward, backward, weight, hop):
    """Return the end of every slot; times are nested lists [rank][chunk]."""
    ahead, behind = {}, {}
    for path in order.placement.paths:
        for here, there in itertools.pairwise(path):
            ahead[there] = here
            behind[here] = there
    slots = [order.of_rank(r).tolist() for r in range(order.pp)]
    at = [0] * order.pp
    clock = [0.0] * order.pp
    sent = {}
    ends = [[] for _ in slots]
    while any(i < len(s) for i, s in zip(at, slots, strict=True)):
        moved = False
        for rank, ops in enumerate(slots):
            while at[rank] < len(ops):
                f_chunk, f, b_chunk, b, w_chunk, _ = ops[at[rank]]
                waits, took = [], 0.0
                if f_chunk >= 0:
                    waits.append(("F", ahead.get((rank, f_chunk)), f))
                    took += forward[rank][f_chunk]
                if b_chunk >= 0:
                    waits.append(("B", behind.get((rank, b_chunk)), b))
                    took += backward[rank][b_chunk]
                if w_chunk >= 0 and weight is not None:
                    took += weight[rank][w_chunk]
                waits = [w for w in waits if w[1] is not None]
                if not all(w in sent for w in waits):
                    break
                came = [sent[w] + hop * (w[1][0] != rank) for w in waits]
                clock[rank] = max([clock[rank], *came]) + took
                ends[rank].append(clock[rank])
                if f_chunk >= 0:
                    sent["F", (rank, f_chunk), f] = clock[rank]
                if b_chunk >= 0:
                    sent["B", (rank, b_chunk), b] = clock[rank]
                at[rank] += 1
                moved = True
        assert moved, "deadlock"
    return ends
