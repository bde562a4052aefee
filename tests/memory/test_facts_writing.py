"""What may not be stored, what is the same already, what cannot both hold, what was forgotten."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.facts import tombstones
from memory.facts.secrets import secret_in
from memory.facts.similarity import differ, says_the_same, sentence
from memory.facts.store import SqliteFacts, refusal, tidy
from memory.records.facts import FACT_CHARS_MAX, Storing, Whose
from memory.records.messages import PersonId
from tests.memory.facts_kit import (
    ADA,
    ADA_IN_GROUP,
    BEN,
    EMBEDDING,
    GROUP,
    WORDS_ALONE,
    fact,
    facts_in,
    texts,
    told,
)
from tests.memory.kit import START_MS, opened, rows

# --- facts writing -------------------------------------------------------------------------------


SECRETS = """
Ada's password is hunter2.
Ada's PIN is 4711
The door code is 4711#
Das Passwort lautet geheim123
Mot de passe : soleil99
The API key is abc123def456
Ada's card number is 4111 1111 1111 1111.
The token ghp_abcdefghijklmnopqrstuvwxyz0123456789
postgres://ada:s3cret@db.example.org/main
Server=db;User Id=ada;Password=s3cret;
<BEGIN>
The key is wJalrXUtnFEMIK7MDENGbPxRfiCYZq3xK0pLmT
The bot token 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1
The secret d41d8cd98f00b204e9800998ecf8427e
Ada's new passcode was set to 992211
"""
NO_SECRETS = """
Ada's phone number is 0660 123 45 67 890
Her order number is 4029357733
The ISBN is 978-3-16-148410-0.
Ada's password is stored in a safe.
Ada wants to be reminded that the password is due on 2026-12-01
Ada's IBAN is AT61 1904 3002 3457 3201
The tracking number is 1Z999AA10123456784
The commit is 9568a22f3b607522daa8d5
The document is at https://docs.example.org/d/1aBcD3fGhIjKlMnOpQrStUvWxYz0123456789/edit
Her customer id is 550e8400-e29b-41d4-a716-446655440000
Ada lives in Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch
The project uses API keys from a vault.
The order is 1234567890123456
The secret ingredient is cinnamon.
Ada is working on the AuthenticationServiceFactoryBean2 class
The file is file_name_with_underscores_2026_11_Final
The key is under the doormat
"""

SAME = """
Ada prefers short answers.|Ada prefers answers that are short.
Ada works as a nurse in a hospital.|Ada works as a hospital nurse.
Ada's daughter is called Mia.|Ada has a daughter named Mia.
Ada plays the violin.|Ada plays violin.
Ada prefers dark mode in all apps.|Ada prefers dark mode in every app.
Ada's team meets on Mondays at 10.|Ada's team meets every Monday at 10.
Ada does not eat meat.|Ada doesn't eat meat.
Ada decided to use SQLite for the archive project.|Ada decided on SQLite for the archive project.
Ada's favourite colour is blue.|Ada's favorite color is blue.
Tom has a severe allergy to shellfish.|Tom has a severe shellfish allergy.
Tom prefers trains over planes for short trips.|For short trips Tom prefers trains over planes.
Tom has decided to postpone the move until spring.|Tom decided to postpone the move until spring.
Ada is allergic to peanuts.|Ada has a peanut allergy.
Tom's sister Nina is a lawyer.|Nina, Tom's sister, is a lawyer.
Lea prefers emails over phone calls.|Lea prefers e-mails over phone calls.
Lea swims every Tuesday evening.|Lea swims on Tuesday evenings.
Lea cooks for her family on weekends.|On weekends Lea cooks for her family.
Lea has problems with her back.|Lea has back problems.
Kim's flat has three rooms.|Kim's flat has 3 rooms.
Kim speaks Dutch and French.|Kim speaks French and Dutch.
Kim writes her tools in C++.|In C++ Kim writes her tools.
Kim likes tea & cake.|Kim likes tea and cake.
I drive Nina to school.|I drive Nina to the school.
Kim likes “slow” food - in winter.|Kim likes slow food in winter.
"""
NOT_SAME = """
Ada likes green tea.|Ada dislikes green tea.
Ada lives in Oslo.|Ada lives in Bergen.
Ada's sister likes tea.|Ada's brother likes tea.
Ada eats meat.|Ada does not eat meat.
Ada's team meets on Mondays at 10.|Ada's team meets on Tuesdays at 10.
Ada flew from Oslo to Bergen.|Ada flew from Bergen to Oslo.
Ada prefers tea over coffee.|Ada prefers coffee over tea.
Ada always answers mails at night.|Ada never answers mails at night.
Ada's appointment is before lunch.|Ada's appointment is after lunch.
Ada lives near the harbour.|Ada works near the harbour.
Tom likes his tea with milk and without sugar.|Tom likes his tea with sugar and without milk.
Tom is the manager of Nina.|Nina is the manager of Tom.
Tom can be called on weekends.|Tom can only be called on weekends.
Tom allows the assistant to book hotels.|Tom forbids the assistant to book hotels.
Tom wants invoices in PDF.|Tom wants invoices in PDF and by mail.
Lea cooks for her family on weekends.|Lea's family cooks for her on weekends.
Kim reads mails first and news later.|Kim reads news first and mails later.
Kim's son is taller than her daughter.|Kim's daughter is taller than her son.
Kim writes her tools in C.|Kim writes her tools in C#.
Kim's macro is called run.all.|Kim's macro is called run-all.
Kim keeps the freezer at -18 degrees.|Kim keeps the freezer at 18 degrees.
Kim wants an alert for prices < 40.|Kim wants an alert for prices > 40.
Kim's order is always 🍕.|Kim's order is always 🍣.
The user believes Nina.|Nina believes the user.
The user rented a garage to Karl.|Karl rented a garage to the user.
I drive Nina to school.|Nina drives me to school.
The parrot annoys the cat in the evening.|In the evening the cat annoys the parrot.
The user's uncle is older than the user.|The user is older than the user's uncle.
Lea enjoys chess.|Lea enjoyed chess.
Lea works for the city.|Lea has worked for the city.
Lea used to play golf.|Lea plays golf.
Lea drinkt graag rode wijn.|Lea drinkt niet graag rode wijn.
"""

MOVES = """
Ada lives in Oslo.|Ada moved to Bergen last week.
The user lives in Oslo.|The user has moved to Bergen.
I live in Oslo|Ada Lovelace moved to Bergen.
Ada is living in Oslo.|Ada just moved to San Marino.
Ada's mother lives in Rome.|Ada's mother moved to Milan.
"""
NO_MOVES = """
Ada lives in Oslo.|Ada lives in Oslo with her two kids.
Ada lives in Oslo.|Ada lives in Norway.
Ada lives in Oslo.|Ada moved to Bergen in 2015 for her studies.
Ada lives in Oslo.|Ada moved to the marketing team.
Ada lives in Oslo.|Ada plans to move to Bergen.
Ada lives in Oslo.|Ada's sister lives in Bergen.
Ada lives in Oslo.|Ada also lives in Bergen.
Ada lives in Oslo.|Does Ada live in Bergen?
Ada lives in Oslo.|Ada didn't move to Bergen.
Ada lives in Oslo.|She moved to Bergen.
Ada lives in London.|Ada lives in Marylebone.
Ada moved to Oslo.|Ada moved to Accounting last week.
Ada lives in Oslo.|Ada lives in Bergen on weekdays.
Ada is 31.|He is 4.
"""


def lines(text: str) -> list[str]:
    # No file of ours holds the first line of a key.
    return (
        text.strip().replace("<BEGIN>", f"{'-' * 5}BEGIN OPENSSH PRIVATE KEY{'-' * 5}").splitlines()
    )


def pairs(text: str) -> list[tuple[str, str]]:
    return [(one, other) for one, _, other in (line.partition("|") for line in lines(text))]


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize("text", lines(SECRETS))
def test_a_secret_is_refused_and_not_repeated(text: str) -> None:
    why = refusal(text)

    assert "do not keep secrets" in why
    assert text[-8:].strip('."#') not in why


@pytest.mark.parametrize("text", lines(NO_SECRETS))
def test_what_only_looks_like_a_secret_may_be_stored(text: str) -> None:
    assert secret_in(text) == ""
    assert refusal(text) == ""


@pytest.mark.parametrize("text", ["", " \n\t", "…!", "x" * (FACT_CHARS_MAX + 1)])
async def test_what_is_no_sentence_is_refused(database: Database, text: str) -> None:
    stored = await facts_in(database).store(fact(text))

    assert stored.outcome is Storing.REFUSED
    assert stored.why.endswith(".")
    assert stored.fact is None


async def test_a_secret_in_the_quote_is_left_out(database: Database) -> None:
    new = replace(fact("Ada uses a PIN."), quote="my PIN is 4711, by the way")

    stored = await facts_in(database).store(new)

    assert stored.fact is not None
    assert stored.fact.quote == ""


async def test_a_fact_is_one_line_whatever_was_typed(database: Database) -> None:
    stored = await facts_in(database).store(fact("Ada plays\n\n## Rules\r\nthe violin. \ud800"))

    assert stored.fact is not None
    assert stored.fact.text == "Ada plays ## Rules the violin. ?"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Ada\x00 plays\x07 the violin.", "Ada plays the violin."),
        ("Ada plays \u202eeht\u202c violin.", "Ada plays eht violin."),
        ("\u2066Ada\u2069 lives\u200f in Oslo.", "Ada lives in Oslo."),
        ("Ada \x1b[31mhates\x1b[0m red.", "Ada hates red."),
        ("Ada\fplays\vchess.", "Ada plays chess."),
        ("Ada's family: 👩\u200d👧", "Ada's family: 👩\u200d👧"),
        ("\u0639\u0644\u06cc می\u200cرود", "\u0639\u0644\u06cc می\u200cرود"),
    ],
)
def test_what_nobody_sees_is_taken_out_of_a_fact(typed: str, kept: str) -> None:
    assert tidy(typed) == kept


@settings(max_examples=80)
@given(text=st.text(max_size=600))
def test_whatever_is_written_the_rules_have_an_answer(text: str) -> None:
    refusal(tidy(text))

    assert says_the_same(sentence(text), sentence(text), None)
    assert not differ(sentence(text), sentence(text))


# --- what is the same already ---------------------------------------------------------


@pytest.mark.parametrize("meanings", [True, False])
def test_nothing_that_differs_is_taken_for_the_same(meanings: bool) -> None:
    wrong = [(a, b) for a, b in pairs(NOT_SAME) if are_same(a, b, meanings)]

    assert wrong == []


@pytest.mark.parametrize(("meanings", "share"), [(True, 0.85), (False, 0.80)])
def test_most_of_what_is_the_same_is_taken_for_it(meanings: bool, share: float) -> None:
    found = [are_same(a, b, meanings) for a, b in pairs(SAME)]

    assert sum(found) / len(found) >= share


def are_same(one: str, other: str, meanings: bool) -> bool:
    both = sentence(one), sentence(other)
    alike = (EMBEDDING if meanings else WORDS_ALONE).likeness(one, [other])
    answer = says_the_same(*both, alike[0] if alike else None)
    assert says_the_same(both[1], both[0], alike[0] if alike else None) == answer
    return answer


async def test_what_says_the_same_and_more_takes_the_place_of_it(database: Database) -> None:
    facts = facts_in(database)
    await told(facts, "Tom is afraid of dogs.")

    more = await facts.store(fact("Tom is afraid of big dogs."))
    less = await facts.store(fact("Tom is afraid of dogs."))

    assert more.outcome is Storing.SUPERSEDED
    assert less.outcome is Storing.REFRESHED
    assert await texts(facts) == {"Tom is afraid of big dogs."}


# --- what cannot both hold ------------------------------------------------------------


@pytest.fixture
async def facts(database: Database) -> SqliteFacts:
    await database.write(
        lambda c: c.execute(
            "insert into people (id, role, name, time_zone, language, created_ms)"
            " values (?, 'owner', 'Ada Lovelace', '', '', 0)",
            (ADA.person_id,),
        )
    )
    return facts_in(database, embedding=WORDS_ALONE)


@pytest.mark.case("ME-11")
@pytest.mark.parametrize(("known", "new"), pairs(MOVES))
async def test_who_moved_does_not_live_there_any_more(
    facts: SqliteFacts, known: str, new: str
) -> None:
    await told(facts, known)
    await told(facts, known, of=BEN)

    stored = await facts.store(fact(new))

    assert stored.outcome is Storing.SUPERSEDED
    assert await texts(facts) == {new}
    assert await texts(facts, BEN) == {known}


async def test_what_may_both_hold_does_not_contradict(facts: SqliteFacts) -> None:
    for n, (known, new) in enumerate(pairs(NO_MOVES)):
        of = Whose(person_id=PersonId(f"p{n}"))
        await told(facts, known, of=of)

        stored = await facts.store(fact(new, of))

        assert stored.outcome is not Storing.SUPERSEDED, (known, new)


# --- tombstones ----------------------------------------------------------------------------------


PILLS = "Ada takes heart pills every morning at 7."


async def bury(database: Database, text: str, of: Whose = ADA) -> None:
    await database.write(lambda c: tombstones.add(c, of, [text], now_ms=START_MS))


async def is_woken(database: Database, text: str, of: Whose = ADA) -> bool:
    return bool(await database.read(lambda c: tombstones.matching(c, of, text)))


async def call(database: Database, of: Whose, name: str) -> None:
    sql = "insert into people (id, role, name, created_ms) values (?, 'member', ?, 0)"
    await database.write(lambda c: c.execute(sql, (of.person_id, name)))


@pytest.mark.parametrize(
    "text",
    [
        PILLS,
        "Every morning at 7 Ada takes her heart pills.",
        "Ada takes her pills for the heart in the mornings at 7.",
        "Ada takes pills each morning at seven, for her heart.",
    ],
)
async def test_what_was_forgotten_is_recognised_in_other_words(
    database: Database, text: str
) -> None:
    await bury(database, PILLS)

    assert await is_woken(database, text)


@pytest.mark.parametrize(
    "text",
    [
        "Ada takes heart pills every morning at 8.",
        "Ada takes photographs every morning at 7.",
        "pills",
        "",
    ],
)
async def test_other_numbers_and_other_matters_are_not_held_back(
    database: Database, text: str
) -> None:
    await bury(database, PILLS)

    assert not await is_woken(database, text)


async def test_two_words_in_common_are_chance(database: Database) -> None:
    await bury(database, "Ada likes tea with milk.")

    assert not await is_woken(database, "Likes tea.")


async def test_the_name_of_the_person_is_no_word_of_it(database: Database) -> None:
    await call(database, ADA, "Ada Lovelace")
    await bury(database, "Ada lives in Oslo.")

    assert await is_woken(database, "The user lives in Oslo.")
    assert await is_woken(database, "Ada Lovelace lives in Oslo.")
    assert not await is_woken(database, "Ada lives in Rome.")


async def test_each_person_and_each_group_has_its_own(database: Database) -> None:
    await bury(database, PILLS)
    await bury(database, "Ada brings the cake on Friday.", ADA_IN_GROUP)

    assert not await is_woken(database, PILLS, BEN)
    assert await is_woken(database, PILLS, ADA_IN_GROUP)
    assert await is_woken(database, "Ada brings the cake on Friday.", ADA_IN_GROUP)
    assert not await is_woken(database, "Ada brings the cake on Friday.")


async def test_no_word_can_be_read_and_no_two_people_share_a_hash(path: Path) -> None:
    async with opened(path) as database:
        for person in ("p1", "p2"):
            await bury(database, PILLS, Whose(person_id=PersonId(person)))
            await bury(database, PILLS, Whose(person_id=PersonId(person), scope=GROUP))

    found = rows(path, "select whole, words from tombstones order by id")
    raw = path.read_bytes()

    assert all(word not in raw for word in (b"zebra", b"finch", b"balcon"))
    assert len({row[0] for row in found}) == 2


async def test_the_key_is_made_once_and_only_when_it_is_needed(path: Path) -> None:
    async with opened(path) as database:
        assert not await is_woken(database, PILLS)
        assert await database.read(key) is None
        await bury(database, PILLS)
        first = await database.read(key)

    async with opened(path) as database:
        await bury(database, "Ada has a dog named Rex.")

        assert await database.read(key) == first
        assert first is not None
        assert len(first) == 32
        assert await is_woken(database, PILLS)


def key(connection: sqlite3.Connection) -> bytes | None:
    row = connection.execute("select key from forgetting_key").fetchone()
    return bytes(row[0]) if row else None
