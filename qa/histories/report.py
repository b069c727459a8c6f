"""A violation as text, and as a page with the operations as lines over time."""

from __future__ import annotations

import json
from html import escape

from qa.histories.history import Event, Operation, Violation

WIDTH = 900  # pixels


def text(violation: Violation, seed: int) -> str:
    """Return a violation as lines of text."""
    lines = [f"VIOLATION of {violation.checker}, seed {seed}: {violation.text}"]
    lines += [f"  {operation}" for operation in _sorted(violation.operations)]
    lines += [f"  {_line(event)}" for event in violation.events]
    return "\n".join(lines)


def _sorted(operations: list[Operation]) -> list[Operation]:
    return sorted(operations, key=lambda operation: operation.invoked)


def _line(event: Event) -> str:
    more = event.data["data"].get("redemption", "")
    record = event.record
    names = ("usage_count", "usage_limit", "usage_limit_per_user", "status", "code")
    shown = {name: record[name] for name in names if name in record}
    what = f"{event.type} {event.data['resource_id']} {json.dumps(shown)}"
    return f"event {event.id}: {what} {json.dumps(more) if more else ''} by {event.request_id}"


def html(violation: Violation, seed: int) -> str:
    """Return a violation as an HTML page."""
    operations = _sorted(violation.operations)
    start = min((each.invoked for each in operations), default=0.0)
    end = max((each.returned for each in operations), default=1.0)
    scale = WIDTH / max(end - start, 0.001)
    rows = []
    for operation in operations:
        left = (operation.invoked - start) * scale
        width = max(3.0, (operation.returned - operation.invoked) * scale)
        kind = (
            "unknown" if operation.status is None else "done" if operation.is_done else "rejected"
        )
        rows.append(
            f'<tr><td>{operation.client}</td><td class="time"><div class="{kind}" '
            f'style="margin-left:{left:.1f}px;width:{width:.1f}px"></div></td>'
            f"<td><code>{escape(str(operation))}</code></td></tr>"
        )
    events = "".join(f"<li><code>{escape(_line(event))}</code></li>" for event in violation.events)
    title = f"{violation.checker}, seed {seed}"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>
<style>
body {{ font: 14px system-ui; margin: 2em }}
td {{ padding: 2px 6px; vertical-align: middle }}
.time {{ min-width: {WIDTH + 10}px; background: #f4f4f4 }}
.time div {{ height: 12px; border-radius: 2px }}
.done {{ background: #2a7 }} .rejected {{ background: #c63 }} .unknown {{ background: #999 }}
code {{ font-size: 12px }}
</style>
<h1>{escape(title)}</h1>
<p>{escape(violation.text)}</p>
<p>{end - start:.3f} seconds. Green: succeeded, orange: rejected, grey: without a result.</p>
<table><tr><th>Client</th><th>Time</th><th>Operation</th></tr>{"".join(rows)}</table>
<h2>Events</h2><ol>{events}</ol></html>
"""
