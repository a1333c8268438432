"""Stands in for torchvision, whose release does not fit the CPU build of torch: names, no functions.

SGLang imports it for images, which no test sends.
"""

from __future__ import annotations

import enum
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.29.0"


class _Stand(ModuleType):
    """A module in which every name exists: classes for capitals, modules for the rest."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {}) if name[0].isupper() else _stand(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


def _stand(name: str) -> _Stand:
    return sys.modules.setdefault(name, _Stand(name))  # type: ignore[return-value]


class InterpolationMode(enum.Enum):
    """The one name that SGLang reads members of."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


transforms = _stand("torchvision.transforms")
transforms.functional = _stand("torchvision.transforms.functional")
transforms.v2 = _stand("torchvision.transforms.v2")
transforms.v2.functional = _stand("torchvision.transforms.v2.functional")
for _module in (transforms, transforms.functional, transforms.v2):
    _module.InterpolationMode = InterpolationMode
io = _stand("torchvision.io")
ops = _stand("torchvision.ops")
