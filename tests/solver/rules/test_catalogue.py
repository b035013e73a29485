"""The page of rules is the rules."""

from pathlib import Path

from shardproof.solver.rules import ALL_RULES
from shardproof.solver.rules.catalogue import plain_sentence, releases, tables

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"


def test_the_page_holds_the_tables_of_the_code() -> None:
    assert PAGE.read_text("utf-8").endswith(tables())


def test_the_page_names_every_checker_of_a_hard_rule() -> None:
    head = PAGE.read_text("utf-8").partition("<!--")[0]
    for rule in ALL_RULES:
        assert rule.checker in head


def test_sentences_are_shown_without_values() -> None:
    assert all("{" not in plain_sentence(rule) for rule in ALL_RULES)
    (heads,) = [r for r in ALL_RULES if (r.id, r.dialect) == ("heads-tp", "megatron")]
    assert plain_sentence(heads) == "H % tp = 0: attention heads divide over tp"


def test_releases_are_spans() -> None:
    spans = {(r.dialect, r.id): releases(r) for r in ALL_RULES}
    assert spans["megatron", "heads-tp"] == "0.14 to 0.16"
    assert spans["megatron", "early-release"] == "0.16"
    assert spans["torchtitan", "ep-borrows"] == "0.2.0"
