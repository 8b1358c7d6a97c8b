"""A timeline as arrays, one entry for each span; numpy.asarray(timeline.start_s) copies nothing."""

import array
import dataclasses
import gzip
import json


@dataclasses.dataclass
class Timeline:
    """Spans in the order of the trace: `rank[k]` did `action[k]` from `start_s[k]` for `duration_s[k]` on `lane[k]`.

    Stage and micro-batch are -1 where a span has none. `title` says what was predicted or measured.
    """

    title: str
    rank: "array.array[int]"
    stage: "array.array[int]"
    microbatch: "array.array[int]"
    start_s: "array.array[float]"
    duration_s: "array.array[float]"
    action: "list[str]"
    lane: "list[str]"

    def __len__(self):
        return len(self.start_s)


def read_timeline(path):
    """Reads a Chrome trace that Plumb wrote; a name that ends in .gz is unpacked."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    if "plumb_timeline" not in trace.get("otherData", {}):
        raise ValueError(f"{path} is no timeline of Plumb's: write one by `plumb simulate ... --trace FILE`")
    timeline = Timeline(trace["otherData"]["title"], array.array("i"), array.array("i"), array.array("i"),
                        array.array("d"), array.array("d"), [], [])
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        about = event.get("args", {})
        timeline.rank.append(event["pid"] - 1)
        timeline.stage.append(about.get("stage", -1))
        timeline.microbatch.append(about.get("microbatch", -1))
        start_ps, end_ps = event.get("exact_ps") or (event["ts"] * 1e6, (event["ts"] + event["dur"]) * 1e6)
        timeline.start_s.append(start_ps / 1e12)
        timeline.duration_s.append((end_ps - start_ps) / 1e12)
        timeline.action.append(about.get("op", event["name"]))
        timeline.lane.append(event["cat"])
    return timeline
