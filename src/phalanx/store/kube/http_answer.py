"""Answers of HTTP/1.1, read from bytes in whatever pieces they come."""

from collections.abc import Callable

LONGEST_HEAD = 64 << 10
HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
NO_BODY = frozenset({204, 304})
FIRST_FINAL = 200
"""Answers below only say that the real one is to come."""
UNKNOWN = -1
"""The length of a body that ends with the connection."""


class Answer:
    """What came back; headers are looked for when somebody asks for one, since of most answers nobody wants more than a few."""

    __slots__ = ("_head", "_small", "body", "status")

    def __init__(self, status: int, head: bytes = b"", body: bytes = b"") -> None:
        """`head` holds the headers, one to a line, after the first line."""
        self.status, self.body = status, body
        self._head, self._small = head, head.lower()

    def header(self, name: str) -> str:
        """Return the first header of a name, in small letters; empty if there is none."""
        start = self._small.find(f"\r\n{name}:".encode())
        return "" if start < 0 else self._value(start + len(name) + 3)

    def headers(self, name: str) -> list[str]:
        """Return all headers of a name, in small letters."""
        mark, found, start = f"\r\n{name}:".encode(), list[str](), 0
        while (start := self._small.find(mark, start)) >= 0:
            start += len(mark)
            found.append(self._value(start))
        return found

    def _value(self, start: int) -> str:
        end = self._head.find(LINE_END, start)
        return (self._head[start:] if end < 0 else self._head[start:end]).decode("latin-1").strip()


class AnswerReader:
    """Reads one answer; raises ValueError for what is none."""

    def __init__(self, body: Callable[[bytes], None] | None = None) -> None:
        """`body` is called with every part of the body; without it the answer has the whole."""
        self.answer: Answer | None = None
        """The answer once its head is there."""
        self.is_whole = False
        self.rest = b""
        """What has come and was not read: an unfinished head or line, or what follows a whole answer."""
        self._parts: list[bytes] = []
        self._body = body or self._parts.append
        self._is_joined = body is None
        self._left = 0
        """Of the body, or of the chunk that is being read."""
        self._is_chunked = self._is_after_chunk = self._is_after_chunks = False

    def feed(self, data: bytes) -> None:
        """Read on."""
        data = self.rest + data if self.rest else data
        start = 0
        if self.answer is None:
            start = self._read_head(data)
            if self.answer is None:
                self.rest = data[start:]
                if len(self.rest) > LONGEST_HEAD:
                    raise ValueError("its head is too long")
                return
        end = self._read_chunks(data, start) if self._is_chunked else self._read_body(data, start)
        self.rest = data[end:]
        if self.is_whole and self._is_joined:
            self.answer.body = b"".join(self._parts)

    def finish(self) -> None:
        """Nothing more comes: an answer of unknown length is whole now, and a stream that was cut is not."""
        if self.answer is not None and self._left == UNKNOWN:
            self.is_whole = True
            if self._is_joined:
                self.answer.body = b"".join(self._parts)

    def _read_head(self, data: bytes) -> int:
        """Read heads until that of the final answer; return where the rest begins."""
        start = 0
        while (end := data.find(HEAD_END, start)) >= 0:
            answer, start = _head(data[start:end]), end + len(HEAD_END)
            if answer.status >= FIRST_FINAL:
                self.answer = answer
                self._measure(answer)
                break
        return start

    def _measure(self, answer: Answer) -> None:
        if answer.status in NO_BODY:
            self.is_whole = True
        elif "chunked" in answer.header("transfer-encoding").lower():
            self._is_chunked = True
        elif length := answer.header("content-length"):
            if not (length.isascii() and length.isdigit()):
                raise ValueError(f"Content-Length is {length!r}")
            self._left, self.is_whole = int(length), int(length) == 0
        else:
            self._left = UNKNOWN

    def _read_body(self, data: bytes, start: int) -> int:
        if self.is_whole:
            return start
        part = data[start:] if self._left == UNKNOWN else data[start : start + self._left]
        if part:
            self._body(part)
        if self._left != UNKNOWN:
            self._left -= len(part)
            self.is_whole = self._left == 0
        return start + len(part)

    def _read_chunks(self, data: bytes, start: int) -> int:
        """Read as many chunks as there are, also the last one in part; return where the rest begins."""
        while not self.is_whole:
            if self._left:
                part = data[start : start + self._left]
                start, self._left = start + len(part), self._left - len(part)
                if part:
                    self._body(part)
                if self._left:
                    return start
                self._is_after_chunk = True
            end = data.find(LINE_END, start)
            if end < 0:
                if len(data) - start > LONGEST_HEAD:
                    raise ValueError("a line between its chunks is too long")
                return start
            self._read_line(data[start:end])
            start = end + len(LINE_END)
        return start

    def _read_line(self, line: bytes) -> None:
        """Read what stands between chunks: an end of line, the length of the next one, or headers after the last."""
        if self._is_after_chunks:
            self.is_whole = not line
        elif self._is_after_chunk:
            if line:
                raise ValueError("a chunk is longer than it says")
            self._is_after_chunk = False
        else:
            self._left = int(line.partition(b";")[0], 16)
            if self._left < 0:
                raise ValueError("a chunk has a negative length")
            self._is_after_chunks = self._left == 0


def _head(data: bytes) -> Answer:
    first, _, lines = data.partition(LINE_END)
    version, code = first[:7], first[9:12]
    if version != b"HTTP/1." or first[8:9] != b" " or not code.isdigit():
        raise ValueError(f"it begins with {first[:40].decode('latin-1')!r}")
    for line in lines.split(LINE_END) if lines else ():
        if b":" not in line:
            raise ValueError(f"a header is {line[:40].decode('latin-1')!r}")
    end = b"\r\nconnection: close" if first[7:8] == b"0" else b""
    return Answer(int(code), LINE_END + lines + end)
