"""The reuse study: does a method keep what the next turn needs? Measured on real sessions.

A session is read, each turn of it taken as what a method had to prepare for (``transitions``), the
methods run under one budget (``methods``), judged by frozen metrics (``metrics``) or by a model
(``judge``), and compared (``statistics``, ``summary``, ``page``).
"""
