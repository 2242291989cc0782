"""One connection to the server as bytes, for clients that misbehave on purpose."""
import json
import socket
from dataclasses import dataclass


class Gone(Exception):
    """The server ended the connection before the reply was complete."""


@dataclass
class Reply:
    status: int
    headers: dict  # names in small letters
    body: bytes

    @property
    def text(self):
        return self.body.decode()


def request_bytes(path, body, method="POST", headers=()):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}",
             *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Wire:
    def __init__(self, port, seconds_max, receive_bytes=None):
        """`receive_bytes`: a small buffer, so that a client that does not read is noticed soon."""
        self._socket = socket.socket()
        if receive_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._socket.settimeout(seconds_max)
        self._socket.connect(("127.0.0.1", port))
        self._received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, data):
        try:
            self._socket.sendall(data)
        except ConnectionError as error:
            raise Gone from error

    def receive(self):
        """Some more bytes."""
        try:
            data = self._socket.recv(65536)
        except ConnectionError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._received += data

    def reply(self):
        while b"\r\n\r\n" not in self._received:
            self.receive()
        head, self._received = self._received.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        else:
            body = self._exactly(int(headers["content-length"]))
        return Reply(int(first.split(" ")[1]), headers, body)

    def _exactly(self, size):
        while len(self._received) < size:
            self.receive()
        data, self._received = self._received[:size], self._received[size:]
        return data

    def _chunks(self):
        body = []
        while True:
            while b"\r\n" not in self._received:
                self.receive()
            size, self._received = self._received.split(b"\r\n", 1)
            piece = self._exactly(int(size, 16) + 2)[:-2]
            if not piece:
                return b"".join(body)
            body.append(piece)
