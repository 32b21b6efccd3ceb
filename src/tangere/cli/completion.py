"""Shell completion: commands, options and their words, as a script that a shell reads once and asks nobody again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """examples:
  tangere completion bash > ~/.local/share/bash-completion/completions/tangere
  tangere completion zsh > ~/.tangere.zsh   and in ~/.zshrc: source ~/.tangere.zsh
  tangere completion fish > ~/.config/fish/completions/tangere.fish"""
# commands whose first word is a scenario or an arm
_SCENARIOS = ("run", "scenarios")
_ARMS = ("check",)


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "completion", help="a script that completes commands and options in your shell",
        description="Print the script that makes bash, zsh or fish complete commands, options and their words.",
        epilog=EXAMPLES,
    )  # fmt: skip
    p.add_argument("shell", choices=SHELLS, help="your shell")
    p.set_defaults(run=completion)


def completion(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from tangere.cli.main import parser

    print(script(parser(), arguments.shell))
    return 0


def script(root: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell for every command of the parser."""
    tree = dict(_tree(root, ()))
    return _fish(tree) if shell == "fish" else _bash(tree, zsh=shell == "zsh")


Words = dict[str, tuple[str, ...]]  # an option, or "" for what stands alone, and the words that may follow it


def _tree(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Words]]:
    """Each command as a path of words, with its options and what they take."""
    found: Words = {"": ()}
    nested: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        choices = tuple(str(choice) for choice in action.choices or ())
        if isinstance(action, argparse._SubParsersAction):
            nested |= action.choices
            found[""] += choices
        elif action.option_strings:
            words = choices or (_arms() if "--robot" in action.option_strings else ())
            found |= {name: words for name in action.option_strings if name.startswith("--")}
        else:
            found[""] += choices
    if path[:1] and path[0] in _SCENARIOS:
        found[""] += _scenarios()
    if path[:1] and path[0] in _ARMS:
        found[""] += _arms()
    yield path, found
    for name, inner in nested.items():
        yield from _tree(inner, (*path, name))


def _arms() -> tuple[str, ...]:
    from tangere.model.loading import names

    return tuple(names())


def _scenarios() -> tuple[str, ...]:
    from tangere.apps.scenarios.build import scenarios

    return tuple(scenarios())


def _bash(tree: dict[tuple[str, ...], Words], zsh: bool) -> str:
    """One function: finds the command that was typed, then its options, or the words of the option before."""
    lines = ["autoload -U +X bashcompinit && bashcompinit"] if zsh else []
    lines += [
        "_tangere() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" path="" i',
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "$path ${COMP_WORDS[i]}" in',
        *(f'            " {" ".join(path)}") path=" {" ".join(path)}" ;;' for path in tree if path),
        "        esac",
        "    done",
        '    case "$path $before" in',
    ]
    for path, words in tree.items():
        for option, taken in words.items():
            if option and taken:
                lines.append(f'        "{_typed(path)} {option}") {_reply(taken)}; return ;;')
    lines += ["    esac", '    case "$path" in']
    for path, words in tree.items():
        options = _reply(tuple(option for option in words if option))
        branches = any(len(other) == len(path) + 1 and other[: len(path)] == path for other in tree)
        alone = _reply(words[""], files=not branches)  # a command is no file
        lines.append(f'        "{_typed(path)}") if [[ $word == -* ]]; then {options}; else {alone}; fi ;;')
    lines += ["    esac", "}", "complete -o filenames -F _tangere tangere"]
    return "\n".join(lines)


def _typed(path: tuple[str, ...]) -> str:
    return "".join(f" {word}" for word in path)


def _reply(words: tuple[str, ...], files: bool = False) -> str:
    """The line of bash that offers these words, and files beside them."""
    more = ' $(compgen -f -- "$word")' if files else ""
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"){more})'


def _fish(tree: dict[tuple[str, ...], Words]) -> str:
    lines = []
    for path, words in tree.items():
        seen = " and ".join(f"__fish_seen_subcommand_from {p}" for p in path) or "__fish_use_subcommand"
        if words[""]:
            lines.append(f"complete -c tangere -n '{seen}' -a '{' '.join(words[''])}'")
        for option, taken in words.items():
            if option:
                more = f" -x -a '{' '.join(taken)}'" if taken else ""
                lines.append(f"complete -c tangere -n '{seen}' -l {option[2:]}{more}")
    return "\n".join(lines)
