"""Completion in bash, which takes values as they are to stand on the line: quoted.

Click's own class leaves quoting out, and its script expands patterns and drops backslashes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from click.shell_completion import BashComplete, add_completion_class

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n' line response
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \
COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) COMPREPLY+=("${line#plain,}") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_PLAIN = frozenset("%+,-./:=@^_")
"""What needs no backslash, besides letters and digits, unless bash splits words at it."""


@add_completion_class
class QuotingBash(BashComplete):
    """Completion for bash."""

    source_template = _SCRIPT

    def format_completion(self, item: CompletionItem) -> str:
        """One line: what kind of value, and the value as bash has to read it."""
        word, breaks = (os.environ.get(name, "") for name in ("COMP_WORD", "COMP_WORDBREAKS"))
        return f"{item.type},{quoted(str(item.value), open_quote(word), breaks)}"


def open_quote(word: str) -> str:
    """The quote that a word leaves open; empty if it leaves none open."""
    quote, escaped = "", False
    for letter in word:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
    return quote


def quoted(value: str, quote: str, breaks: str = "") -> str:
    """A value as it goes on a line of bash: after this quote, or after none."""
    if quote == "'":
        return value.replace("'", "'\\''")
    if quote:
        return "".join(f"\\{letter}" if letter in '"$`\\' else letter for letter in value)
    plain = _PLAIN.difference(breaks)
    return "".join(letter if letter.isalnum() or letter in plain else f"\\{letter}" for letter in value)
