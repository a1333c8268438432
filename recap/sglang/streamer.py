"""Results on their way out: an entry of ``meta_info`` that the main process takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recap.sglang.payload import KEY

if TYPE_CHECKING:
    from recap.sglang.recorder import Recorder


def with_results(base: Any, recorder: Recorder) -> type[Any]:
    """Return a subclass of SGLang's output streamer that adds results to finished requests.

    Requests without one get an entry only beside one that has a result: an empty list.
    """

    class RecapOutputStreamer(base):  # type: ignore[misc]
        __slots__ = ()  # the base is a slotted dataclass
        has_additional_customized_info = True

        def should_build_additional_customized_info(self) -> bool:
            return recorder.has_results or (
                base.has_additional_customized_info
                and super().should_build_additional_customized_info()
            )

        def build_additional_customized_info(self, reqs: list[Any]) -> dict[str, list[Any]]:
            built: dict[str, list[Any]] = super().build_additional_customized_info(reqs)
            return {**built, KEY: recorder.results(reqs)} if recorder.has_results else built

    return RecapOutputStreamer
