"""Build entry. Nothing is compiled yet; the native modules of csrc/ will be declared here."""

from setuptools import setup

setup()
