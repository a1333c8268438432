"""The hooks of the main process. Each gets SGLang's function first and calls it."""

from __future__ import annotations

import logging
import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from recap.errors import RecapError
from recap.sglang import compat
from recap.sglang.frontend import Frontend
from recap.sglang.options import Options
from recap.sglang.payload import KEY
from recap.sglang.refused import RefusedError
from recap.sglang.rendering import noted

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger(__name__)

_frontend: Frontend | None = None
_making = Lock()


def frontend(manager: Any) -> Frontend:
    """Return what this process measures with, made when the server starts, or at the first request.

    Args:
        manager: SGLang's tokenizer manager.

    Raises:
        RecapError: Its configuration is wrong, or its store cannot be opened.
    """
    global _frontend
    with _making:
        if _frontend is None:
            options = Options.inherited(os.environ)
            _frontend = Frontend(options, has_keys=compat.has_key(manager))
    return _frontend


def _of_request(manager: Any) -> Frontend:
    """Return the same; one that is off where no server said at its start that it cannot be made."""
    global _frontend
    try:
        return frontend(manager)
    except Exception as err:  # noqa: BLE001 - never reaches serving
        LOG.error("requests are served without Recap: %s", err)
        _frontend = Frontend(Options(), has_keys=compat.has_key(manager))
        _frontend.is_off = True
        return _frontend


def convert(
    original: Callable[..., Any], serving: Any, request: Any, raw_request: Any = None
) -> Any:
    """Convert a chat request, of OpenAI's or Anthropic's API, and attach what is to be measured."""
    front = _of_request(serving.tokenizer_manager)
    messages = request.messages
    headers = {} if raw_request is None else raw_request.headers
    asked = front.prepare(request, headers, compat.served_model(serving.tokenizer_manager))
    is_ours = request.messages is not messages
    with noted() as calls:
        try:
            adapted, request = original(serving, request, raw_request)
        except Exception:
            if not is_ours:
                front.give_up(asked)
                raise
            front.restore(request, messages, asked)
            asked = None
            adapted, request = original(serving, request, raw_request)
    if asked is not None:
        front.attach(asked, adapted, calls)
    return adapted, request


def take_results(
    original: Callable[..., None],
    manager: Any,
    meta_info: dict[str, Any],
    state: Any,
    customized_info: dict[str, Any],
    index: int,
    finish_reason: Any,
) -> None:
    """Take results out of the metadata of a response before anyone sees them."""
    others = {name: values for name, values in customized_info.items() if name != KEY}
    original(manager, meta_info, state, others, index, finish_reason)
    if KEY in customized_info:
        values = customized_info[KEY][index]
        is_end = finish_reason is not None
        _of_request(manager).take(meta_info, state.obj, values, is_end=is_end)


def serve(
    original: Callable[..., Any],
    server_args: Any,
    tokenizer_manager: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Add the routes to a server that is about to listen.

    Raises:
        RefusedError: The store cannot be opened.
    """
    from recap.sglang.routes import add_routes

    try:
        front = frontend(tokenizer_manager)
    except RecapError as err:
        raise RefusedError(str(err)) from err
    add_routes(compat.http_app(), front)
    return original(server_args, tokenizer_manager, *args, **kwargs)
