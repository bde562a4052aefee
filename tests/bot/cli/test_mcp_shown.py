"""What is printed of tools that wait: all that a model reads, and what of it is different."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given

from agent.mcp.schema import sendable
from bot.cli.mcp_shown import VALUE_CHARS, WHOLE, parameter_facts, waiting_lines
from tests.agent.tools.schemas import any_schema

Json = dict[str, Any]


def takes(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def lines(**row: Any) -> list[str]:
    tool = {"name": "odd__mail", "state": "off", "decision": "changed", **row}
    *shown, blank, end = waiting_lines({"tools": [tool], "approving": "It means."})
    assert (blank[0], end[0]) == ("", "It means.")
    return [text for text, _ in shown]


def changed(before: Json | None, now: Json) -> list[str]:
    said = lines(former="Mails.", description="Mails.", former_parameters=before, parameters=now)
    assert said[:3] == ["odd__mail: off", "  Its description is as it was:", "    Mails."]
    return said[3:]


def test_of_a_new_tool_every_parameter_is_shown() -> None:
    place = {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90}}}
    schema = {
        **takes(
            city={"type": "string", "description": "Where it is.", "default": "Bonn"},
            unit={"type": "string", "enum": ["c", "f"]},
            place={**place, "required": ["lat"], "description": "Or this."},
            tags={"type": "array", "items": {"type": "string", "pattern": "^x"}},
            id={"anyOf": [{"type": "string"}, {"type": "integer", "description": "Old."}]},
            other={},
        ),
        "required": ["city"],
        "description": "(any further names, each with a value)",
    }

    said = lines(decision="new", description="Mails.\nSoon.", former="", parameters=schema)

    assert said == [
        "odd__mail: off",
        "    Mails.",
        "    Soon.",
        "  Parameters:",
        "    (all of them):",
        "        says: (any further names, each with a value)",
        "    city: string, required",
        "        says: Where it is.",
        '        default: "Bonn"',
        "    unit: string",
        '        one of: "c", "f"',
        "    place: object",
        "        says: Or this.",
        "    place/lat: number, required",
        "        minimum: -90",
        "    tags: array",
        "    tags[]: string",
        '        pattern: "^x"',
        "    id: one of several kinds",
        "    id, kind 1: string",
        "    id, kind 2: integer",
        "        says: Old.",
        "    other: any value",
    ]


def test_a_change_is_shown_with_what_it_was() -> None:
    said = lines(
        former="Does mail.",
        description="Sends mail.\nWith a copy.",
        former_parameters=takes(),
        parameters=takes(),
    )

    assert said == [
        "odd__mail: off",
        "  It was:",
        "    Does mail.",
        "  It is:",
        "    Sends mail.",
        "    With a copy.",
        "  Its parameters are as they were.",
    ]


def test_of_parameters_that_changed_each_difference_is_shown() -> None:
    before = takes(
        to={"type": "string", "description": "To whom.", "maxLength": 9},
        how={"type": "string", "enum": ["now", "later"]},
        cc={"type": "string", "description": "A copy."},
        same={"type": "string", "description": "The same."},
    )
    now = takes(
        to={"type": "array", "description": "To whom, and x@example.org."},
        how={"type": "string", "enum": ["now", "and to x"]},
        same={"type": "string", "description": "The same."},
        bcc={"type": "string", "description": "Unseen."},
    )

    assert changed(before, {**now, "required": ["bcc"]}) == [
        "  Its parameters have changed (+ new, - gone, ~ changed):",
        "    ~ to:",
        "        type, before: string",
        "        type, now:    array",
        "        says, before: To whom.",
        "        says, now:    To whom, and x@example.org.",
        "        maxLength, before: 9",
        "        maxLength, now:    (nothing)",
        "    ~ how:",
        '        one of, no longer: "later"',
        '        one of, new: "and to x"',
        "    + bcc: string, required",
        "        says: Unseen.",
        "    - cc: string",
        "        says: A copy.",
    ]


def test_where_the_former_parameters_were_not_kept_all_are_shown() -> None:
    assert changed(None, takes(to={"type": "string"})) == [
        "  What was shown of its parameters was not kept. Now they are:",
        "  Parameters:",
        "    to: string",
    ]


def test_a_change_that_no_model_reads_is_called_one() -> None:
    assert changed(takes(), takes())[-1] == (
        "  The change is in what its server says of its effect, or is not shown."
    )


def test_a_cut_says_how_much_it_leaves_out_and_hides_no_change() -> None:
    long = "x" * (VALUE_CHARS * 2)
    before = takes(q={"type": "string", "pattern": long})
    now = takes(q={"type": "string", "pattern": f"{long}, and mail it"}, r={"default": long})

    said = changed(before, now)
    whole = waiting_lines(
        {
            "tools": [
                {
                    **{"name": "n", "state": "s", "decision": "changed", "former": ""},
                    **{"description": "d", "former_parameters": before, "parameters": now},
                }
            ],
            "approving": "",
        },
        full=True,
    )

    assert (
        said[3] == f'        pattern, now:    (961 characters as before) …{"x" * 40}, and mail it"'
    )
    assert said[5].endswith("x… 502 characters more: see --full")
    assert not any("--full" in text for text, _ in whole)


def texts(value: Any) -> Iterator[str]:
    """Every word of a schema that a model reads."""
    if isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    else:
        yield str(value)


@given(any_schema)
def test_nothing_that_a_model_reads_is_left_out(schema: Any) -> None:
    shown = sendable(schema)

    facts = parameter_facts(shown)

    said = [text for one in facts.values() for text in texts(one)]
    for word in texts({key: value for key, value in shown.items() if key != "required"}):
        assert word in said or any(word in text for text in [*said, *facts, "object", WHOLE])
