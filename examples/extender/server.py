"""An extender in a hundred lines: it knows how warm the racks are, and keeps new pods out of hot ones.

Run it with Python alone; it needs nothing else:

    python3 examples/extender/server.py

It listens on 127.0.0.1:8713, or on a free port with `--port 0`, and prints where. Phalanx, or Volcano, posts JSON to it:

    /predicate   {"task": ..., "node": ...}    answered with {"status": "why not"}, or {} if the node may take the task
    /prioritize  {"task": ..., "nodes": [...]} answered with {"nodeScore": {"node-1": 12.5}}
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RACK_LABEL = "example.com/rack"
DEGREES_BY_RACK = {"rack-1": 43.0, "rack-2": 31.0, "rack-3": 24.0}
TOO_HOT = 40.0
UNRESOLVABLE = 3


def degrees_of(node: dict[str, Any]) -> float:
    """Return how warm the rack of a node is; a node in no known rack counts as cool."""
    labels = node["Node"]["metadata"].get("labels") or {}
    return DEGREES_BY_RACK.get(labels.get(RACK_LABEL, ""), 20.0)


def predicate(question: dict[str, Any]) -> dict[str, Any]:
    """Refuse nodes in hot racks. The code says that evicting other pods would not help."""
    degrees = degrees_of(question["node"])
    return {"status": f"node(s) are in a rack above {TOO_HOT:g} degrees", "code": UNRESOLVABLE} if degrees > TOO_HOT else {}


def prioritize(question: dict[str, Any]) -> dict[str, Any]:
    """Prefer cool racks: a degree less is a point more."""
    return {"nodeScore": {node["Name"]: 100.0 - degrees_of(node) for node in question["nodes"]}}


VERBS = {"/predicate": predicate, "/prioritize": prioritize}


class Handler(BaseHTTPRequestHandler):
    """Answers one question per request."""

    def do_POST(self) -> None:
        """Find the verb, answer it."""
        verb = VERBS.get(self.path)
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if verb is None:
            self.send_error(404)
            return
        answer = json.dumps(verb(json.loads(body))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


def main() -> None:
    """Listen until interrupted."""
    parser = argparse.ArgumentParser(description="An extender that keeps pods out of hot racks.")
    parser.add_argument("--port", type=int, default=8713, help="0 for any free port")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
