"""Builds the scorer of searches, which is left out if there is no C compiler."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "service.records.sqlite.scorer",
            ["service/records/sqlite/scorer.c"],
            extra_compile_args=["-g0", "-ffp-contract=off"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
