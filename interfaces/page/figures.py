"""The figures of the page, as plotly specifications.

They are plain data: plotly's own Python objects would only be turned into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...models.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...models.pipeline.timeline import Event, Timeline

Spec = dict[str, Any]
COLOURS = {
    "F": "#1f77b4",
    "B": "#2ca02c",
    "BW": "#2ca02c",
    "W": "#9467bd",
    "F&BW": "#ff7f0e",
}
#: Slots drawn at most; a trace file holds them all.
MOST_SLOTS = 3000
_MARGIN = {"l": 60, "r": 15, "t": 30, "b": 50}


def _layout(**more: Any) -> Spec:
    return {
        "template": None,
        "margin": _MARGIN,
        "font": {"size": 12},
        "legend": {"orientation": "h", "y": -0.25},
        "plot_bgcolor": "#fff",
        **more,
    }


def _axis(title: str, **more: Any) -> Spec:
    return {"title": {"text": title}, "gridcolor": "#e6e9ec", **more}


def front(points: Sequence[Mapping[str, Any]], limit: int) -> Spec:
    """Draw peak memory against tokens/s/GPU, the band as error bars.

    Parameters
    ----------
    points
        Configurations of an answer or a front document.
    limit
        What a process can use on the device, in bytes.
    """
    rate = [p["projection"]["tokens_per_s_per_gpu"] for p in points]
    bands = [
        [p["projection"]["step_time_s"] / edge for edge in p["projection"]["band"]]
        for p in points
    ]
    roles = [p.get("role", "") for p in points]
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [p["memory"]["peak_bytes"] / GIB for p in points],
        "y": rate,
        "text": [", ".join(f"{k}={v}" for k, v in p["layout"].items()) for p in points],
        "hovertemplate": "%{x:.2f} GiB, %{y:,.0f} tokens/s/GPU<br>%{text}"
        "<extra></extra>",
        "line": {"shape": "hv", "dash": "dot", "width": 1},
        "marker": {
            "size": [12 if r else 7 for r in roles],
            "symbol": [
                {"knee": "star", "end": "diamond"}.get(r, "circle") for r in roles
            ],
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [r * (b[0] - 1) for r, b in zip(rate, bands, strict=True)],
            "arrayminus": [r * (1 - b[1]) for r, b in zip(rate, bands, strict=True)],
            "thickness": 0.6,
            "color": "#8c959f",
        },
    }
    edge = {
        "type": "line",
        "x0": limit / GIB,
        "x1": limit / GIB,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": "#cf222e", "dash": "dash"},
    }
    layout = _layout(
        xaxis=_axis("peak memory of the fullest rank, GiB"),
        yaxis=_axis("tokens/s/GPU", rangemode="tozero"),
        shapes=[edge],
        showlegend=False,
    )
    return {"data": [trace], "layout": layout}


def memory(ranks: Sequence[Mapping[str, int]], numbers: Sequence[int]) -> Spec:
    """Draw what lies in memory at the peak of each rank, stacked by group.

    Parameters
    ----------
    ranks
        Bytes by group, for each rank that is drawn.
    numbers
        The numbers of those ranks.
    """
    groups = list(dict.fromkeys(g for rank in ranks for g in rank))
    data = [
        {
            "type": "bar",
            "name": group,
            "x": [f"rank {n}" for n in numbers],
            "y": [rank.get(group, 0) / GIB for rank in ranks],
            "hovertemplate": "%{y:.2f} GiB "
            + group.replace("<", "")
            + "<extra></extra>",
        }
        for group in groups
    ]
    layout = _layout(
        barmode="stack",
        yaxis=_axis("GiB"),
        height=560,
        legend={"orientation": "h", "y": -0.1, "yanchor": "top"},
    )
    return {"data": data, "layout": layout}


def breakdown(parts: Mapping[str, float]) -> Spec:
    """Draw the parts of the step time, in seconds, the longest on top."""
    shown = sorted(((s, n) for n, s in parts.items() if s > 0), reverse=False)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [s for s, _ in shown],
            "y": [n for _, n in shown],
            "hovertemplate": "%{y}: %{x:.4g} s<extra></extra>",
        }
    ]
    return {
        "data": data,
        "layout": _layout(
            xaxis=_axis("seconds of the step"),
            yaxis={"automargin": True},
            showlegend=False,
        ),
    }


def pipeline(step: Timeline) -> tuple[Spec, bool]:
    """Draw a simulated step, rank under rank; say whether all of it is drawn."""
    events = list(step.events())
    shown = sorted(events, key=lambda e: e.start)[:MOST_SLOTS]
    kinds = dict.fromkeys(e.label for e in shown)
    data = [_slots(kind, [e for e in shown if e.label == kind]) for kind in kinds]
    ranks = step.order.pp
    layout = _layout(
        barmode="overlay",
        xaxis=_axis("seconds"),
        yaxis=_axis(
            "pipeline rank", range=[ranks - 0.4, -0.6], dtick=max(1, ranks // 8)
        ),
    )
    return {"data": data, "layout": layout}, len(shown) == len(events)


def _slots(kind: str, events: Sequence[Event]) -> Spec:
    names = {"F": "forward", "BW": "backward", "B": "input gradients"}
    names |= {"W": "weight gradients", "F&BW": "forward beside backward"}
    return {
        "type": "bar",
        "orientation": "h",
        "name": names.get(kind, kind),
        "base": [e.start for e in events],
        "x": [e.end - e.start for e in events],
        "y": [e.rank for e in events],
        "marker": {
            "color": COLOURS.get(kind, "#8c959f"),
            "line": {"color": "#fff", "width": 0.3},
        },
        "hovertemplate": "rank %{y}: %{x:.4g} s<extra>"
        + names.get(kind, kind)
        + "</extra>",
    }
