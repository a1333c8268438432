"""Selection: which blocks of history a request gets, and the renderer that writes them out."""

from __future__ import annotations

from recap.select.policies import RECIPES, Recipe
from recap.select.selection import Decision, Request, Selection, decision_to_json, select

__all__ = [
    "RECIPES",
    "Decision",
    "Recipe",
    "Request",
    "Selection",
    "decision_to_json",
    "select",
]
