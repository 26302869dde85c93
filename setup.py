"""The packages of the wheel. What is not about packages is in pyproject.toml."""

from setuptools import find_packages, setup

LAYER = "layers/pushhub"

setup(
    # In a clone the command line is cli; in somebody's environment that name could be anyone's.
    packages=[*find_packages(LAYER), "pushhub_cli", *(f"pushhub_cli.{each}" for each in find_packages("cli"))],
    package_dir={"": LAYER, "pushhub_cli": "cli"},
)
