"""What is said about people in a chat: `/pair`, `/access`, `/link`, `/timezone`, `/language`.

Called by `bot.commands.table`, which lets the right people in the right places get this far. Short
lines, for a phone; a command that can be sent next stands on a line of its own, to be copied by a
touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING

from bot.commands.command import Answer
from bot.people.access import ADMITTED, Access, LastOwner, OwnerFirst, UnknownCode, UnknownPerson
from bot.people.linking import LINK_VALID_MS, LinkRefused, Redeemed, read_code, taken
from bot.people.register import plain_name
from bot.people.timezone import ZoneRead, read_zone, zone_of
from memory.records.languages import AUTO, LanguageRead, language_of, read_language
from memory.records.messages import IncomingMessage, Role
from memory.records.ports import Clock
from memory.records.rows import Pairing, Person

if TYPE_CHECKING:
    from bot.commands.pairing import PairingQuestions

SHOWN_MAX = 30
"""Lines of a list in a chat; the command line shows all."""

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000

ROLES = "A role is guest, member or owner."

PAIR_USE = """\
`/pair CODE` lets somebody in, as a member
`/pair CODE guest` as a guest, who may chat and nothing more
`/pair deny CODE` shuts somebody out"""

ACCESS_USE = """\
`/access role ADDRESS guest` (or member, owner)
`/access remove ADDRESS` makes somebody a stranger again"""

BY_MESSAGE = "I answer in the language of each message."

LINK_USE = """\
`/link` gives a code, to be sent from your other address
`/link CODE` is how one is sent from here
`/link list` shows your addresses
`/link remove ADDRESS` takes one away"""

FOR_GUESTS = (
    "As a guest you have nothing to link: of guests nothing is remembered that two chats could "
    "share."
)


class PeopleCommands:
    """Answers about people. Raises StorageError and nothing else."""

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock,
        host_zone: str,
        language: str = AUTO,
        asking: PairingQuestions | None = None,
    ) -> None:
        """`language` is the one that is set for all, or AUTO."""
        self._asking = asking
        self._access = access
        self._clock = clock
        self._host_zone = host_zone
        self._language = language

    # --- /pair --------------------------------------------------------------------------------

    async def who_asks(self, message: IncomingMessage) -> Answer:
        """Return who asked to be let in, with buttons. For the owner, in private."""
        offer = None if self._asking is None else await self._asking.offer(message)
        return offer or Answer(text=self._who_asked())

    async def pair(self, rest: str) -> str:
        """Let somebody in or shut them out, or say who asked. For the owner."""
        try:
            match rest.split():
                case []:
                    return self._who_asked()
                case [word, code] if word.lower() == "deny":
                    return await self._access.deny(code)
                case [word] if word.lower() == "deny":
                    return PAIR_USE
                case [code]:
                    return (await self._access.approve(code)).text
                case [code, word] if word.lower() in set(Role):
                    return (await self._access.approve(code, role=Role(word.lower()))).text
                case [_, _]:
                    return f"{ROLES}\n\n{PAIR_USE}"
                case _:
                    return PAIR_USE
        except UnknownCode:
            return "That is no open code and no address. `/pair` shows who asked."
        except (LastOwner, OwnerFirst) as error:
            return str(error)

    def _who_asked(self) -> str:
        now_ms = self._now_ms()
        asking = self._access.pairings.open()
        if asking:
            return "\n\n".join(asked_text(pairing, now_ms=now_ms) for pairing in asking)
        if self._access.policy == "pairing":
            return "Nobody is asking to be let in."
        return (
            "Nobody is asking: strangers get no code here, for access.policy is "
            f"{self._access.policy}. `/pair ADDRESS` lets somebody in all the same."
        )

    # --- /access ------------------------------------------------------------------------------

    async def access(self, rest: str) -> str:
        """Everybody; another role for somebody; or somebody goes. For the owner."""
        words = rest.split()
        verb = words[0].lower() if words else "list"
        try:
            match [verb, *words[1:]]:
                case ["list"]:
                    return await self._everybody()
                case ["role", who, role] if role.lower() in set(Role):
                    return await self._access.set_role(who, Role(role.lower()))
                case ["role", _, _]:
                    return f"{ROLES}\n\n{ACCESS_USE}"
                case ["remove", who]:
                    return await self._access.remove(who)
                case _:
                    return ACCESS_USE
        except UnknownPerson:
            return f"Nobody here is {words[1]}. `/access` shows everybody with their addresses."
        except LastOwner as error:
            return str(error)

    async def _everybody(self) -> str:
        directory = self._access.directory
        now_ms = self._now_ms()
        seen = await self._access.last_seen()
        lines = []
        for person in directory.people:
            words = [f"{person.role}: {', '.join(person.addresses)}"]
            if name := plain_name(person):
                words.insert(0, f"**{name}**")
            if person.time_zone:
                words.append(person.time_zone)
            if person.id in seen:
                words.append(f"wrote {_ago(seen[person.id], now_ms)}")
            lines.append(", ".join(words))
        groups = [chat for chat, state in directory.chats.items() if state == ADMITTED]
        asking = len(self._access.pairings.open())
        denied = self._access.pairings.shut_out()
        denied += [chat for chat, state in directory.chats.items() if state != ADMITTED]
        sections = [
            _section("People", lines),
            _section("Groups", groups),
            f"Asking to be let in: {asking}. `/pair` shows them." if asking else "",
            _section("Shut out", denied),
            ACCESS_USE,
        ]
        return "\n\n".join(section for section in sections if section)

    # --- /link --------------------------------------------------------------------------------

    async def link(self, person: Person, message: IncomingMessage, rest: str) -> str:
        """Return a person's own addresses: a code for one more, its use, the list, and taking one
        away."""
        words = rest.split()
        try:
            match [word.lower() for word in words]:
                case []:
                    return await self._offered(person, message)
                case ["list"]:
                    lines = [
                        f"{one} (this chat)" if one == message.sender else one
                        for one in person.addresses
                    ]
                    return f"{_section('Your addresses', lines)}\n\n{LINK_USE}"
                case ["remove", _]:
                    return await self._access.linking.unlink(person, words[1])
                case [code] if read_code(code):
                    return await self._redeemed(message.sender, read_code(code))
                case _:
                    return LINK_USE
        except LinkRefused as error:
            return str(error)

    async def _offered(self, person: Person, message: IncomingMessage) -> str:
        if person.role is Role.GUEST:
            return FOR_GUESTS
        code = await self._access.linking.offer(person, sender=message.sender, chat=message.address)
        return (
            f"Send this to me from your other address, within {LINK_VALID_MS // MINUTE_MS} "
            f"minutes:\n\n`/link {code}`\n\nFrom Slack it is:\n\n`/hearth link {code}`\n\n"
            "Whoever sends it is taken for you, so show it to nobody. It works once."
        )

    async def _redeemed(self, sender: str, code: str) -> str:
        outcome = await self._access.linking.redeem(sender, code)
        match outcome:
            case Redeemed.LINKED:
                person = self._access.who(sender)
                others = [one for one in person.addresses if one != sender] if person else []
                return (
                    f"**{sender} now belongs to you too**, beside {' and '.join(others)}. What is "
                    "remembered of you there is known here; each chat keeps a conversation of its "
                    f"own.\n\nIf {others[0] if others else 'the other'} is not yours: "
                    f"`/link remove {sender}`"
                )
            case Redeemed.OWN:
                return "That code is for another address of yours: send it from there, not here."
            case Redeemed.TAKEN:
                return taken(sender)
            case Redeemed.FULL:
                return "Whoever gave you this code has as many addresses as one person can have."
            case Redeemed.TOO_MANY:
                return "Too many codes were wrong. None is looked at from here for an hour."
            case Redeemed.UNKNOWN:
                return "That is no code that is open now. `/link` on your other address gives one."

    # --- /timezone ----------------------------------------------------------------------------

    async def time_zone(self, person: Person, rest: str) -> str:
        """Show or set what time it is for a person."""
        wanted = rest.strip()
        if not wanted:
            how = "To change it: `/timezone Berlin`, or any other city."
            if not person.time_zone:
                return (
                    f"You have set no time zone, so I go by this machine's, "
                    f"{self._time(self._host_zone)}. {how}"
                )
            if zone_of(person.time_zone) is None:
                return f"Your time zone, {person.time_zone}, is not known on this machine. {how}"
            return f"Your time zone is {self._time(person.time_zone)}. {how}"
        if wanted.lower() in {"auto", "default", "reset"}:
            await self._access.set_time_zone(person, "")
            return f"I go by this machine's time zone again, {self._time(self._host_zone)}."
        read = read_zone(wanted, now=self._clock.now())
        if not read.zone:
            return _which_zone(wanted, read)
        await self._access.set_time_zone(person, read.zone)
        text = f"Your time zone is {self._time(read.zone)}."
        if read.is_fixed:
            text += (
                " It knows no summer time: if your clock changes in the year, name a city instead, "
                "such as `/timezone Berlin`."
            )
        return text

    def _time(self, name: str) -> str:
        now = self._clock.now().astimezone(zone_of(name) or UTC)
        # In English, whatever the machine's locale.
        days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        return f"{name}, where it is {now:%H:%M} on {days[now.weekday()]}, {now:%Y-%m-%d}"

    # --- /language ----------------------------------------------------------------------------

    async def language(self, person: Person, rest: str) -> str:
        """Show or set in which language a person is answered in private."""
        wanted = rest.strip()
        if not wanted:
            own = language_of(person.language)
            if own is not None:
                now = f"In private chats I answer you in {own.shown}, as you have set."
            elif person.language == AUTO:
                now = BY_MESSAGE
            else:
                now = f"You have set no language. {self._usual(person)}"
            return (
                f"{now}\n\n`/language German` has me answer in that language, `/language auto` in "
                "that of each message, `/language default` as everybody is answered."
            )
        if wanted.lower() in {"default", "reset"}:
            await self._access.set_language(person, "")
            return f"You have no language of your own any more. {self._usual(person)}"
        if wanted.lower() == AUTO:
            await self._access.set_language(person, AUTO)
            return BY_MESSAGE
        read = read_language(wanted)
        if read.language is None:
            return _which_language(read)
        await self._access.set_language(person, read.language.code)
        return (
            f"From your next message on I answer you in {read.language.shown}, in private chats. "
            "In a group I go by what is written there."
        )

    def _usual(self, person: Person) -> str:
        """Return how somebody is answered who has set nothing."""
        if self._language != AUTO:
            return f"I answer in {self._language}, as is set for everybody."
        hint = language_of(person.language_hint)
        if hint is None:
            return BY_MESSAGE
        return f"{BY_MESSAGE} Where there is none, I write {hint.shown}, as your app is set to it."

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


# --- words ------------------------------------------------------------------------------------


def asked_text(pairing: Pairing, *, now_ms: int, name: str = "") -> str:
    """Return one who asked, and what can be sent next. `name` has to be plain
    (`bot.people.register`)."""
    called = f", who goes by “{name}”," if name else ""
    left = max((pairing.expires_ms - now_ms) // MINUTE_MS, 1)
    return (
        f"**{pairing.address}**{called} asked {_ago(pairing.created_ms, now_ms)}, "
        f"good for {left} min\n"
        f"`/pair {pairing.code}`\n`/pair deny {pairing.code}`"
    )


def _section(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    shown = [f"- {line}" for line in lines[:SHOWN_MAX]]
    if len(lines) > SHOWN_MAX:
        shown.append(f"- and {len(lines) - SHOWN_MAX} more: hearthbot access list")
    return "\n".join([f"**{title}**", *shown])


def _which_zone(wanted: str, read: ZoneRead) -> str:
    if not read.suggestions:
        return (
            "I know no time zone of this name. Name a large city nearby, such as "
            "`/timezone Berlin`, or an offset, such as `/timezone +2`."
        )
    cities = {name: f" ({city})" for name, city in read.cities.items()}
    lines = "\n".join(f"`/timezone {name}`{cities.get(name, '')}" for name in read.suggestions)
    return f"That is not clear to me. Did you mean:\n{lines}"


def _which_language(read: LanguageRead) -> str:
    if not read.suggestions:
        return (
            "I know no language of this name. Name it in English or in itself, or by its code: "
            "`/language German`, `/language Deutsch`, `/language de`."
        )
    lines = "\n".join(f"`/language {one.english}`" for one in read.suggestions)
    return f"That is not clear to me. Did you mean:\n{lines}"


def _ago(then_ms: int, now_ms: int) -> str:
    span_ms = now_ms - then_ms
    if span_ms < MINUTE_MS:
        return "just now"
    for unit_ms, word in ((DAY_MS, "d"), (HOUR_MS, "h")):
        if span_ms >= unit_ms:
            return f"{span_ms // unit_ms} {word} ago"
    return f"{span_ms // MINUTE_MS} min ago"
