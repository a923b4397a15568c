"""The line to an extender over HTTP: a POST of JSON per question, to `urlPrefix/path`."""

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from phalanx.dialects.extender import decode, encode
from phalanx.model.redaction import redacted_text
from phalanx.plugins.extender import Answer, Endpoint, Question

MOST_BYTES = 64 << 20
EVENTS = frozenset({"onSessionOpen", "onSessionClose", "allocateFunc", "deallocateFunc"})
"""What a process is told, not asked: every time counts."""


class HttpLine:
    """Carries the questions of one session."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Begin with nothing asked. Proxies of the environment are not used: an extender is a neighbour."""
        self._endpoint = endpoint
        self._answers: dict[tuple[str, bytes], Answer] = {}
        self._problem = ""
        self._opener: OpenerDirector = build_opener(ProxyHandler({}))

    def __call__(self, question: Question) -> Answer:
        """Ask, unless the answer is known or the process has failed before."""
        if self._problem:
            return Answer(problem=self._problem)
        key = (question.verb, encode(question))
        if question.verb in EVENTS:
            return self._post(*key)
        if key not in self._answers:
            self._answers[key] = self._post(*key)
        return self._answers[key]

    def _post(self, verb: str, body: bytes) -> Answer:
        url = f"{self._endpoint.url_prefix.rstrip('/')}/{self._endpoint.path_by_verb[verb].lstrip('/')}"
        try:
            request = Request(url, data=body, headers={"Content-Type": "application/json"}, method="POST")
            with self._opener.open(request, timeout=self._endpoint.timeout_seconds) as response:
                answer = decode(verb, response.read(MOST_BYTES))
        except HTTPError as found:
            found.close()
            answer = Answer(problem=f"{redacted_text(url)} answered with status {found.code}")
        except (OSError, HTTPException, ValueError) as found:
            answer = Answer(problem=redacted_text(f"{url}: {getattr(found, 'reason', found)}"))
        self._problem = answer.problem
        return answer
