"""walkback: the toolkit for stack-trace tables.

Everything public is here and in the packages of formats; each `__init__.pyi` lists its names. A name is imported when
it is first used, so that `import walkback` costs nothing.

    import walkback

    for section in walkback.ElfFile("a.out").sframe:
        print(section)
"""

from walkback.base.publicnames import public_names

_imported, __dir__ = public_names(__name__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _imported(name)
