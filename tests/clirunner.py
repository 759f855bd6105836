"""click's runner with standard error apart, which is a choice before click 8.2 and the rule since."""

import inspect

from click.testing import CliRunner


def runner() -> CliRunner:
    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(mix_stderr=False) if apart else CliRunner()
