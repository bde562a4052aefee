from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills.reader import SkillFile, SkillReading, read_skill
from agent.skills.skill import AutoInvoke, Requires, Severity, Skill, SkillSchedule


def read(text: str | bytes, *, folder: str = "trains") -> SkillReading:
    data = text if isinstance(text, bytes) else text.encode()
    return read_skill(data, SkillFile(folder_name=folder, file=f"skills/{folder}/SKILL.md"))


def skill(text: str | bytes, *, folder: str = "trains") -> Skill:
    reading = read(text, folder=folder)
    assert reading.skill is not None, reading.problems
    return reading.skill


def errors(reading: SkillReading) -> list[str]:
    return [str(p) for p in reading.problems if p.severity is Severity.ERROR]


def warnings(reading: SkillReading) -> list[str]:
    return [str(p) for p in reading.problems if p.severity is Severity.WARNING]


def with_front(*lines: str) -> str:
    return "\n".join(["---", "name: trains", "description: Finds trains", *lines, "---", "Text"])


def test_a_single_pattern_is_not_cut_at_its_commas() -> None:
    assert skill(with_front("metadata:", "  trigger: {patterns: 'a{1,2}b'}")).patterns == (
        "a{1,2}b",
    )


# --- the two parts -----------------------------------------------------------------------------


def test_a_plain_file_is_read_whole() -> None:
    text = (
        "---\nname: trains\ndescription: Finds trains\nlicense: MIT\nversion: 2.0\n"
        "compatibility: needs a network\n---\n\n# Trains\n\nLook them up.\n"
    )

    reading = read(text)

    assert reading.problems == ()
    assert reading.skill is not None
    assert reading.skill.name == "trains"
    assert reading.skill.description == "Finds trains"
    assert reading.skill.text == "# Trains\n\nLook them up."
    assert (reading.skill.license, reading.skill.version) == ("MIT", "2.0")
    assert reading.skill.compatibility == "needs a network"
    assert reading.skill.allowed_tools is None


@pytest.mark.case("SK-01")
def test_a_colon_in_the_description_loses_neither_text_nor_limits() -> None:
    text = (
        "---\nname: change-check\ndescription: Check a change from two sides: house rules and "
        "intent. Starts on: /check\nallowed-tools: Read\n---\n# Body"
    )

    reading = read(text, folder="change-check")

    assert reading.skill is not None
    assert reading.skill.description == (
        "Check a change from two sides: house rules and intent. Starts on: /check"
    )
    assert reading.skill.allowed_tools == ("Read",)
    assert "skills/change-check/SKILL.md:3: this is not YAML" in warnings(reading)[0]


def test_what_yaml_cannot_read_is_read_line_by_line_at_every_depth() -> None:
    text = with_front(
        "metadata:",
        "  keywords:",
        "    - train: departures: now",
        "    - 'next train'",
        "  schedule: */15 * * * *",
        "  instruction: First: look it up",
        "    and then answer",
        "  max_steps: 3",
    )

    found = skill(text)

    assert found.keywords == ("train: departures: now", "next train")
    assert found.schedule == SkillSchedule(cron="*/15 * * * *")
    assert found.instruction == "First: look it up\nand then answer"
    assert found.max_steps == 3


def test_what_yaml_cannot_read_keeps_its_shape_where_it_is_read_anyway() -> None:
    text = with_front(
        "metadata:",
        "\tkeywords: [train,",
        "\t\tnext]",
        "\tinstruction: |",
        "\t\tFirst: look",
        "\t\tthen say",
        "\tauto_invoke:",
        "\t- tool: @search",
        "\t  args: {query: x}",
        "license: 'MIT' or so",
    )

    found = skill(text)

    assert found.keywords == ("train", "next")
    assert found.instruction == "First: look\nthen say"
    assert found.auto_invoke == (AutoInvoke(tool="@search", args={"query": "x"}),)
    assert found.license == "'MIT' or so"


def test_a_limit_that_is_indented_by_mistake_is_an_error() -> None:
    text = "---\nname: trains\ndescription: Two things: a, b\n  allowed-tools: Read\n---\nText"

    reading = read(text)

    assert reading.skill is None
    assert errors(reading) == [
        "skills/trains/SKILL.md:4: allowed-tools stands below description: begin it at the margin"
    ]


@pytest.mark.parametrize(
    "name", ["allowed-tools", "allowed_tools", "allowedTools", "Allowed-Tools"]
)
def test_a_limit_counts_however_its_key_is_spelt(name: str) -> None:
    assert skill(with_front(f"{name}: Read")).allowed_tools == ("Read",)


@pytest.mark.case("SK-03")
def test_a_byte_order_mark_is_as_if_it_were_not_there() -> None:
    text = "---\nname: my-skill\ndescription: Test\n---\nbody"

    with_mark = skill(b"\xef\xbb\xbf" + text.encode(), folder="my-skill")
    wide = skill(text.encode("utf-16"), folder="my-skill")
    wide_reversed = skill(b"\xfe\xff" + text.encode("utf-16-be"), folder="my-skill")

    assert with_mark == wide == wide_reversed == skill(text, folder="my-skill")


@pytest.mark.case("SK-03")
@pytest.mark.parametrize(
    "data",
    ["---\nname: a\n---\n".encode("utf-16-le"), b"---\nname: a\n---\ncaf\xe9", b"\xff\xfe\x00"],
)
def test_an_encoding_that_is_not_read_is_named_as_the_reason(data: bytes) -> None:
    reading = read(data)

    assert reading.skill is None
    assert "encoding" in errors(reading)[0]


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_of_other_systems_are_the_same_file(ending: str) -> None:
    text = with_front("metadata:", "  keywords: a, b")

    assert skill(text.replace("\n", ending)) == skill(text)


@pytest.mark.case("SK-07")
def test_a_file_without_front_matter_is_called_like_its_folder() -> None:
    text = "# Weather\n\nAsk the local station\nfor data.\n\nRun `{baseDir}/scripts/get.sh`."

    reading = read(text, folder="weather-nl")

    assert reading.skill is not None
    assert reading.skill.name == "weather-nl"
    assert reading.skill.description == "Ask the local station for data."
    assert reading.skill.text == text
    assert "there is no front matter" in warnings(reading)[0]


@pytest.mark.case("SK-07")
@pytest.mark.parametrize("text", ["", "\n\n", "---\n---\n"])
def test_a_file_that_says_nothing_has_no_description(text: str) -> None:
    reading = read(text)

    assert reading.skill is None
    assert "there is no description" in errors(reading)[0]


def test_front_matter_that_is_never_closed_is_an_error() -> None:
    reading = read("---\nname: trains\nallowed-tools: Read\n\n# Trains")

    assert reading.skill is None
    assert "SKILL.md:1: the front matter that begins here is never closed" in errors(reading)[0]


def test_front_matter_below_something_else_is_an_error() -> None:
    reading = read("<!-- mine -->\n\n---\nname: trains\nallowed-tools: Read\n---\nText")

    assert errors(reading) == [
        "skills/trains/SKILL.md:3: the front matter must begin in the first line"
    ]


def test_characters_that_nobody_sees_are_taken_out() -> None:
    text = with_front('license: "M\\x07I\\u202eT"') + "\x1b[2J hid\U000e0041den \u202eback"

    found = skill(text)

    assert found.license == "MIT"
    assert found.text == "Text[2J hidden back"


@pytest.mark.parametrize(
    "value",
    [
        "&a [" + "*a, " * 50 + "]",
        "[" * 5_000,
        "[" + "x, " * 6_000 + "]",
        '"\\UFFFFFFFF"',
        "!!python/object:os.system x",
    ],
)
def test_yaml_that_wants_to_harm_does_no_harm(value: str) -> None:
    reading = read(with_front(f"metadata: {value}"))

    assert reading.skill is None
    assert errors(reading)


@pytest.mark.parametrize("depth", [40, 900, 20_000])
def test_what_is_nested_too_deep_is_an_error_in_yaml_and_json(depth: int) -> None:
    deep = '{"a": ' * depth + "1" + "}" * depth
    texts = [
        f"  auto_invoke: {{tool: x, args: {deep}}}",
        f'  auto_invoke: \'{{"tool": "x", "args": {deep}}}\'',
    ]

    for text in texts:
        reading = read(with_front("metadata:", text))
        assert reading.skill is None
        assert errors(reading)


def test_a_second_document_in_the_front_matter_hides_no_limit() -> None:
    reading = read(with_front("allowed-tools: Read", "--- # more", "version: 1"))

    assert reading.skill is None
    assert "SKILL.md:4: allowed-tools" in errors(reading)[0]


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(data: bytes) -> None:
    reading = read(data)

    assert reading.skill is not None or errors(reading)


_PIECES = st.sampled_from(
    [
        *("---\n", "name", "description", "allowed-tools", "metadata", "keywords", "schedule"),
        *(": ", ":", "\n", "  ", "- ", "[", "]", "{", "}", '"', "'", "|", ">", "&a ", "*a", "!b "),
        *(
            "Read",
            "Bash(git:*)",
            ",",
            "null",
            "1",
            "x",
            "#",
            "\t",
            "é",
            "\x00",
            "\ufeff",
            "trigger",
        ),
        *("patterns", "(", ")", "hearthbot", "openclaw", "requires", "env", '{"a": [1, null]}'),
    ]
)


@given(st.lists(_PIECES, max_size=60).map("".join), st.text(max_size=20))
def test_no_front_matter_makes_the_reader_fail(front: str, body: str) -> None:
    text = f"---\n{front}\n---\n{body}"

    reading = read(text.encode("utf-8", "replace"))

    assert reading.skill is not None or errors(reading)
    if reading.skill is not None:
        everything = repr(reading).encode()
        assert b"\\x00" not in everything


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=40),
    st.sampled_from(["Read", "Bash(git:*), Read", "[Read]"]),
)
def test_no_description_makes_a_limit_go_away(description: str, limit: str) -> None:
    text = f"---\nname: trains\ndescription: {description}\nallowed-tools: {limit}\n---\nText"

    found = read(text).skill

    assert found is None or found.allowed_tools


# --- single fields -----------------------------------------------------------------------------


@pytest.mark.case("SK-09")
def test_values_stay_text() -> None:
    assert skill("---\nname: 123\ndescription: x\n---\nb", folder="123").name == "123"
    assert skill("---\nname: on\ndescription: yes\n---\nb", folder="on").description == "yes"
    assert skill("---\nname: on\ndescription: yes\n---\nb", folder="on").name == "on"
    assert skill("---\nname: a\nversion: 1.10\ndescription: d\n---\nb").version == "1.10"


@pytest.mark.case("SK-09")
@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ("name: a\ndescription: [x]", "SKILL.md:3: description must be one text"),
        ("name: a\nname: b\ndescription: d", "SKILL.md:3: name is there twice (first in line 2)"),
        ("name: a\ndescription: # later", "SKILL.md:3: there is no description"),
        (
            "name: a\ndescription: d\nallowed-tools: Read\nallowed_tools: Bash",
            "SKILL.md:5: allowed_tools is there twice (first in line 4)",
        ),
    ],
)
def test_what_nobody_can_have_meant_is_reported_with_its_line(front: str, problem: str) -> None:
    reading = read(f"---\n{front}\n---\nBody")

    assert reading.skill is None
    assert any(problem in error for error in errors(reading))


@pytest.mark.parametrize(
    ("name", "folder", "called"),
    [
        ("Excel Reports", "excel", "excel"),
        ("Excel Reports", "my skill", "excel-reports"),
        ("../../etc", "My Skill", "etc"),
        ("天气", "my skill", "my-skill"),
    ],
)
def test_a_name_that_is_none_gives_way_to_one_that_is(name: str, folder: str, called: str) -> None:
    reading = read(f"---\nname: {name}\ndescription: d\n---\nText", folder=folder)

    assert reading.skill is not None
    assert reading.skill.name == called
    assert f"it is called {called}" in warnings(reading)[0]


@pytest.mark.parametrize(
    "lines",
    [
        ("metadata:", "  keywords: [train, next train]", "  priority: 7", "  no_tools: true"),
        ("metadata:", "  hearthbot:", "    keywords: train, next train", "    priority: 7",
         "    noTools: yes"),
        ('metadata: {"hearthbot": {"keywords": ["train", "next train"], "priority": 7, '
         '"no_tools": true}}',),
        ('metadata: \'{"keywords": "train, next train", "priority": "7", '
         '"no_tools": true}\'',),
        ("metadata:", "  hearthbot.keywords: train, next train", "  hearthbot.priority: '7'",
         "  hearthbot.no_tools: 'true'"),
        ("metadata:", "  hearthbot: '{\"keywords\": [\"train\", \"next train\"], \"priority\": 7}'",
         "  no-tools: on"),
        ("metadata:", "  {", '    "hearthbot": {', '      "keywords": ["train", "next train",],',
         '      "priority": 7, "no_tools": true', "    },", "  }"),
    ],
)  # fmt: skip
def test_metadata_is_read_in_every_shape(lines: tuple[str, ...]) -> None:
    found = skill(with_front(*lines))

    assert found.keywords == ("train", "next train")
    assert found.priority == 7
    assert found.no_tools


def test_every_key_of_ours_is_read() -> None:
    found = skill(
        with_front(
            "metadata:",
            "  author: somebody",
            "  hearthbot:",
            "    required_tools: web_fetch, web_search",
            "    max_steps: 4",
            "    full_context: true",
            "    interval_minutes: 30",
            "    timezone: Europe/Amsterdam",
            "    notify: on_change",
            "    deliver_to: telegram:1",
            "    trigger:",
            '      patterns: ["^when.{1,9}train", "departures?"]',
            "    instruction: Look it up.",
            "    auto_invoke:",
            '      - {tool: web_search, args: {query: "{{query}}", count: 5, deep: true, n: "7"}}',
            "      - tool: list_jobs",
        )
    )

    assert found.required_tools == ("web_fetch", "web_search")
    assert found.max_steps == 4
    assert found.full_context
    assert found.schedule == SkillSchedule(
        interval_minutes=30,
        timezone="Europe/Amsterdam",
        notify="on_change",
        deliver_to="telegram:1",
    )
    assert found.patterns == ("^when.{1,9}train", "departures?")
    assert found.instruction == "Look it up."
    assert found.auto_invoke == (
        AutoInvoke(
            tool="web_search", args={"query": "{{query}}", "count": 5, "deep": True, "n": "7"}
        ),
        AutoInvoke(tool="list_jobs"),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("  no_tools: perhaps", "SKILL.md:5: no_tools must be true or false"),
        ("  max_steps: many", "SKILL.md:5: max_steps must be a whole number from 1 on"),
        ("  required_tools: {a: b}", "required_tools must be a list of texts"),
        ("  keywords: [a, [b]]", "keywords must be a list of texts"),
        ("  schedule: every day", "is not cron text"),
        ("  at: tomorrow", "is not a time"),
        ("  trigger: {patterns: ['(']}", "SKILL.md:5: trigger.patterns: '(' is not a regular"),
        ("  auto_invoke: {args: {}}", "auto_invoke needs a tool"),
        ("  {schedule: 0 6 * * *, at: 2026-01-01}", "schedule and at are both there: keep one"),
        ("  - a", "metadata must be made of keys and values"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(line: str, problem: str) -> None:
    reading = read(with_front("metadata:", line))

    assert reading.skill is None
    assert any(problem in error for error in errors(reading)), errors(reading)


def test_a_limit_beside_metadata_is_an_error_and_another_key_a_warning() -> None:
    limited = read(with_front("no_tools: true"))
    odd = read(with_front("keywords: a, b", "author: somebody"))

    assert "SKILL.md:4: no_tools is read below `metadata:` only" in errors(limited)[0]
    assert odd.skill is not None
    assert odd.skill.keywords == ()
    assert len(warnings(odd)) == 1
    assert "keywords is read below `metadata:` only" in warnings(odd)[0]


# --- what it requires --------------------------------------------------------------------------


@pytest.mark.case("SK-05")
@pytest.mark.parametrize("space", ["openclaw", "clawdbot", "moltbot", "nanobot", "hearthbot"])
def test_requirements_are_read_from_one_line_of_json_in_any_namespace(space: str) -> None:
    block = {
        "emoji": "🎬",
        "os": ["darwin", "linux"],
        "requires": {"env": ["A", "B"], "bins": ["git"], "anyBins": ["x", "y"]},
        "primaryEnv": "A",
    }
    escaped = json.dumps({space: block})
    plain = json.dumps({space: block}, ensure_ascii=False)

    readings = [read(with_front(f"metadata: {text}")) for text in (escaped, plain)]

    wanted = Requires(
        env=("A", "B"), bins=("git",), any_bins=("x", "y"), systems=("darwin", "linux")
    )
    assert [reading.requires for reading in readings] == [wanted, wanted]
    assert all(reading.skill is not None for reading in readings)


def test_a_long_description_is_cut_with_a_warning() -> None:
    reading = read(f"---\nname: trains\ndescription: {'word ' * 300}\n---\nText")

    assert reading.skill is not None
    assert len(reading.skill.description) <= 1_024
    assert "cut to 1,024" in warnings(reading)[0]


def test_the_name_of_the_file_counts_and_a_different_folder_is_a_warning() -> None:
    reading = read(with_front(), folder="railways")

    assert reading.skill is not None
    assert reading.skill.name == "trains"
    assert "SKILL.md:2: the folder should be called trains too" in warnings(reading)[0]
