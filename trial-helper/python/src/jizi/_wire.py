"""The way to the service: address, metadata, errors, and values as Python's own (proto/README.md).

Mirrors proto/client.h. Fails: jizi.Error with the service's code, subject and mend; `unreachable`
and `timeout` kinds when there was no answer. Threads: a Client may be used from any.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote

import grpc

from jizi.v1 import error_pb2, tune_service_pb2, types_pb2

PROTOCOL = "1"
MAX_UNIX_PATH = 107
TYPE_URL = "type.googleapis.com/jizi.v1.ErrorDetail"
JsonValue = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]

_SERVICE = tune_service_pb2.DESCRIPTOR.services_by_name["TuneService"]


class Error(Exception):
    """What went wrong, and the mend. kind is gRPC's: NOT_FOUND, UNAVAILABLE; code is stable."""

    def __init__(self, kind: str, message: str, code: str = "", subject: str = "", mend: str = ""):
        super().__init__(f"{message}; {mend}" if mend else message)
        self.kind = kind
        self.message = message
        self.code = code
        self.subject = subject
        self.mend = mend


def is_away(error: Error) -> bool:
    """No answer to this request: the same one is worth a repeat (proto/client.h, IsAway)."""
    if error.kind in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN"):
        return True
    overloaded = ("QUEUE_FULL", "TOO_MANY_CALLS", "TOO_MANY_STREAMS")
    return error.kind == "RESOURCE_EXHAUSTED" and error.code in overloaded


def may_come_back(error: Error) -> bool:
    """Away, or refused for what a person can still put right while the training goes on."""
    return (
        is_away(error)
        or error.kind in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        or error.code == "VERSION_MISMATCH"
    )


def utf8_text(text: str, limit: int) -> str:
    """Text that protobuf takes, of at most so many bytes; lone surrogates become '?'."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[:limit].decode("utf-8", "ignore") + "..."


# ---- values ----


def from_value(value: types_pb2.Value) -> JsonValue:
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "json_value":
        parsed: JsonValue = json.loads(value.json_value)
        return parsed
    plain: JsonValue = getattr(value, kind)
    return plain


def to_value(value: JsonValue) -> types_pb2.Value:
    """Keeps the type: 1, 1.0, "1" and True are four values."""
    if isinstance(value, bool):
        return types_pb2.Value(bool_value=value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"jizi: {value} does not fit in 64 bits")
        return types_pb2.Value(int_value=value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"jizi: {value} is no parameter: parameters are finite")
        return types_pb2.Value(float_value=value)
    if isinstance(value, str):
        return types_pb2.Value(string_value=value)
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"jizi: {value!r} is no value of a parameter ({error}): give a number, text, bool, "
            "list, dict or None"
        ) from None
    return types_pb2.Value(json_value=text)


def from_params(params: Mapping[str, types_pb2.Value]) -> Dict[str, JsonValue]:
    return {name: from_value(params[name]) for name in sorted(params)}


# ---- the client ----


def _check_address(address: str) -> None:
    if address.startswith("unix:"):
        length = len(os.fsencode(address)) - len("unix:")
        if 1 <= length <= MAX_UNIX_PATH:
            return
        raise Error(
            "INVALID_ARGUMENT",
            f"the socket's path in {address} has {length} bytes",
            "ADDRESS",
            address,
            "a Unix socket's path has 1 to 107 bytes: use a shorter folder",
        )
    port = re.fullmatch(r".+:(\d{1,5})", address, re.DOTALL)
    if port is None or not 1 <= int(port[1]) <= 65535:
        raise Error(
            "INVALID_ARGUMENT",
            f'"{address}" is no address of a server',
            "ADDRESS",
            address,
            "write unix:/path/to/socket or host:port, such as 127.0.0.1:8470",
        )


def _target(address: str) -> str:
    """gRPC takes the path of a socket for a URI."""
    if not address.startswith("unix:"):
        return address
    return "unix:" + quote(os.fsencode(address[5:]), safe="-_.~/:@!$&'()*+,;=")


def _read_token(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            token = file.readline().rstrip("\r\n ")
    except (OSError, UnicodeDecodeError):
        token = ""
        if not os.access(path, os.R_OK):
            raise Error(
                "INVALID_ARGUMENT",
                f"cannot read the token file {path}",
                "TOKEN_FILE",
                path,
                "give the path of the server's FILE.token, readable by you",
            ) from None
    if re.fullmatch(r"[!-~]{1,4096}", token):
        return token
    raise Error(
        "INVALID_ARGUMENT",
        f"the first line of the token file {path} is no token",
        "TOKEN_FILE",
        path,
        "it holds one line of printable ASCII without spaces; copy the server's FILE.token",
    )


def _read_ca(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        content = b""
    if content:
        return content
    raise Error(
        "INVALID_ARGUMENT",
        f"cannot read the CA file {path}",
        "CA_FILE",
        path,
        "give a PEM file with the certificate that the server presents or its authority",
    )


def _options(unix: bool) -> list[Tuple[str, int]]:
    options = [
        ("grpc.use_local_subchannel_pool", 1),  # No other channel's backoff.
        ("grpc.enable_http_proxy", 0),  # A cluster's web proxy is not for its own hosts.
        ("grpc.max_receive_message_length", 64 << 20),
        ("grpc.max_send_message_length", 16 << 20),
    ]
    first, least, most = (50, 50, 500) if unix else (250, 5000, 5000)
    options += [
        ("grpc.initial_reconnect_backoff_ms", first),
        ("grpc.min_reconnect_backoff_ms", least),
        ("grpc.max_reconnect_backoff_ms", most),
    ]
    if not unix:
        options += [("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000)]
    return options


@dataclass(frozen=True)
class Method:
    """One call under way; `cancel` ends it at once."""

    cancel: Callable[[], Any]


class Client:
    """A connection. token_file, ca_file: as JIZI_TOKEN_FILE and JIZI_CA_FILE have them."""

    def __init__(self, address: str, token_file: str = "", ca_file: str = "") -> None:
        _check_address(address)
        self.address = address
        token = _read_token(token_file) if token_file else ""
        unix = address.startswith("unix:")
        if ca_file and not unix:
            credentials = grpc.ssl_channel_credentials(_read_ca(ca_file))
            channel = grpc.secure_channel(_target(address), credentials, _options(unix))
        else:
            channel = grpc.insecure_channel(_target(address), _options(unix))
        self._channel = channel
        self._metadata = [("jizi-protocol", PROTOCOL)]
        if token:
            self._metadata.append(("authorization", f"Bearer {token}"))
        self._methods: Dict[str, Any] = {}
        for method in _SERVICE.methods:
            reply = getattr(tune_service_pb2, method.output_type.name)
            # The generated code of grpcio-tools is as little, and wants its own version of grpcio.
            make = channel.unary_stream if method.name == "WatchStudy" else channel.unary_unary
            self._methods[method.name] = make(
                f"/{_SERVICE.full_name}/{method.name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=reply.FromString,
            )

    def call(self, method: str, request: Any, deadline_s: float) -> Any:
        future = self._methods[method].future(request, timeout=deadline_s, metadata=self._metadata)
        return _result(self.address, future)

    def start(
        self, method: str, request: Any, deadline_s: float, then: Callable[[Any], None]
    ) -> Method:
        """Calls without waiting; `then` gets the reply or the Error, on a thread of gRPC's."""
        future = self._methods[method].future(request, timeout=deadline_s, metadata=self._metadata)

        def done(call: Any) -> None:
            try:
                result = _result(self.address, call)
            except Error as error:
                result = error
            then(result)

        future.add_done_callback(done)
        return Method(future.cancel)

    def watch(self, request: tune_service_pb2.WatchStudyRequest) -> Any:
        return self._methods["WatchStudy"](request, metadata=self._metadata)

    def checked(self, error: grpc.RpcError) -> Error:
        return _error_of(self.address, error)

    def close(self) -> None:
        self._channel.close()


def _result(address: str, future: Any) -> Any:
    try:
        reply = future.result()
    except grpc.FutureCancelledError:
        raise Error("CANCELLED", "the call was cancelled") from None
    except grpc.RpcError as error:
        raise _error_of(address, error) from None
    protocol = _protocol_of(future)
    if protocol != PROTOCOL:
        raise _version_mismatch(protocol or "of an unknown version")
    return reply


def _protocol_of(call: Any) -> Optional[str]:
    for key, value in call.trailing_metadata() or ():
        if key == "jizi-protocol":
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return None


def _version_mismatch(theirs: str) -> Error:
    return Error(
        "FAILED_PRECONDITION",
        f"the server speaks protocol {theirs} and this program protocol {PROTOCOL}",
        "VERSION_MISMATCH",
        "jizi-protocol",
        "use the same release of Jizi on both sides",
    )


def _error_of(address: str, call: Any) -> Error:
    kind = call.code().name
    message = call.details() or kind
    protocol = _protocol_of(call)
    if protocol is None:
        return _transport_error(address, kind, message)
    if protocol != PROTOCOL:
        return _version_mismatch(protocol)
    for key, value in call.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for item in error_pb2.RpcStatus.FromString(value).details:
            if item.type_url == TYPE_URL:
                detail = error_pb2.ErrorDetail.FromString(item.value)
                return Error(kind, message, detail.code, detail.subject, detail.mend)
    return Error(kind, message)


def _transport_error(address: str, kind: str, message: str) -> Error:
    """Errors of the way to the server carry no detail: say what a person can do."""
    if kind == "UNAVAILABLE":
        return Error(
            kind,
            f"the service cannot be reached: {message}",
            "UNREACHABLE",
            address,
            "see that the server is running and that address, TLS and firewall are right",
        )
    if kind == "DEADLINE_EXCEEDED":
        return Error(
            kind,
            "no answer from the service in time",
            "TIMEOUT",
            address,
            "try again: a repeated call gets the recorded answer",
        )
    if kind == "UNIMPLEMENTED":
        return Error(
            "FAILED_PRECONDITION",
            f"what answers at {address} is no Jizi server, or one too old to say its version",
            "VERSION_MISMATCH",
            address,
            "check the address, or use the same release of Jizi on both sides",
        )
    return Error(kind, message)
