"""The step of the set-up that picks the model: found ones first, each tried before it is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import SecretStr

from agent.models.catalog import PROVIDERS
from agent.models.choose import choose, models_at
from agent.models.service import ask_once
from bot.doctor.live import offers, versioned, with_version
from bot.settings.edit import Value
from bot.settings.tree import KeyPath
from bot.setup.steps import SetupState, SetupStep
from memory.records.section import LlmSettings

TRY_S = 60.0
"""A local model may have to be read from the disk first."""

MODEL, BASE, KEY = ("llm", "model"), ("llm", "api_base"), ("llm", "api_key")
KEPT_MODELS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelSource:
    """One line of the choice. `asks` makes the changes, or nothing when it was given up."""

    title: str
    asks: Callable[[], dict[KeyPath, Value] | None]


class SetupModelStep(SetupStep):
    """Asks for the model and adds it to the plan."""

    def run(self) -> None:
        """Until a model has answered, or the person goes on without."""
        tty, llm = self.tty, self.here.settings.llm
        tty.title("The model that answers")
        if names := self.here.by_environment(MODEL, BASE, KEY):
            tty.say(f"The environment sets it ({', '.join(names)}) and wins over config.toml.")
            self._answers({})
            return
        is_set = bool(llm.model or llm.api_base)
        while True:
            ways = self._ways(is_set=is_set)
            at = tty.pick("Which one?", [way.title for way in ways], default=0)
            changes = ways[at].asks()
            if changes is None:
                continue
            if self._answers(changes):
                self.plan.changes.update(changes)
                return
            if not tty.confirm("Try another one?"):
                tty.say("The model stays as it was. `hearthbot init` can be run again at any time.")
                return

    def _ways(self, *, is_set: bool) -> list[_ModelSource]:
        llm = self.here.settings.llm
        ways = []
        if is_set:
            now = llm.model or f"the first that {llm.api_base} lists"
            ways.append(_ModelSource(title=f"{now}, as it is now", asks=dict))
        for offer in self.tty.live("Looking for models", offers(self.here.env)):
            found: dict[KeyPath, Value] = {MODEL: offer.model, BASE: None, KEY: None}
            if not is_set or offer.model != llm.model:
                ways.append(_ModelSource(title=offer.title, asks=lambda found=found: found))  # type: ignore[misc]
        demo: dict[KeyPath, Value] = {MODEL: "embedded", BASE: None, KEY: None}
        last = [
            _ModelSource(title="a provider that you have a key of", asks=self._by_key),
            _ModelSource(title="another server that speaks OpenAI's format", asks=self._by_address),
        ]
        small = _ModelSource(
            title="the small embedded model: works at once, but it is a demo that invents things "
            "and has no tools",
            asks=lambda: demo,
        )
        return [*ways, *last, small] if ways else [small, *last]

    def _by_key(self) -> dict[KeyPath, Value] | None:
        tty = self.tty
        titles = {key: one.title for key, one in PROVIDERS.items() if one.keys and not one.base}
        known = list(titles)
        provider = known[tty.pick("Of whom?", [titles[key] for key in known], default=0)]
        key = tty.ask_secret(f"Your key of {titles[provider]} (Enter: back)")
        if not key:
            return None
        name = tty.ask("Model", default=PROVIDERS[provider].model)
        return {MODEL: f"{provider}/{name}", BASE: None, KEY: key} if name else None

    def _by_address(self) -> dict[KeyPath, Value] | None:
        tty = self.tty
        tty.say("Its address usually ends in /v1, such as http://192.168.1.20:8000/v1.")
        address = tty.ask("Address (Enter: back)").rstrip("/")
        if not address:
            return None
        if not address.startswith(("http://", "https://")):
            tty.bad("An address begins with http:// or https://.")
            return None
        key = tty.ask_secret("Its key (Enter: none)")
        names = self._listed(address)
        if not names and (better := versioned(address)) and (found := self._listed(better)):
            tty.say(f"{address} lists no models, but {better} does.")
            if tty.confirm("Take that address?"):
                address, names = better, found
        if names:
            name = names[tty.pick("Which of its models?", names, default=0)]
        else:
            name = tty.ask("It does not say which models it has. Name of the model (Enter: back)")
        # In a name with a slash the part before it would be taken for a provider.
        model = f"openai/{name}" if "/" in name else name
        return {MODEL: model, BASE: address, KEY: key or None} if name else None

    def _listed(self, address: str) -> list[str]:
        return list(self.tty.live("Asking for its models", models_at(address)))[:KEPT_MODELS_MAX]

    def _answers(self, changes: dict[KeyPath, Value]) -> bool:
        """Return whether the model answers; says so, or what is wrong."""
        wanted = self.here.settings.llm
        if changes:
            # Not checked as settings are: whoever is asked says what is wrong with them.
            wanted = LlmSettings(window=wanted.window).model_copy(
                update={
                    "model": str(changes[MODEL]),
                    "api_base": str(changes[BASE] or ""),
                    "api_key": SecretStr(str(changes[KEY] or "")),
                }
            )
        work = _asked(wanted, self.here)
        if self.tried("Asking it one question", work, lambda said: said) is not None:
            return True
        return self._answers_below(wanted, changes)

    def _answers_below(self, wanted: LlmSettings, changes: dict[KeyPath, Value]) -> bool:
        """Return whether it answers with `/v1` added to its address, and that is taken."""
        if not versioned(wanted.api_base):
            return False
        work = with_version(wanted, env=self.here.env, limit_s=TRY_S)
        better = self.tty.live("Trying its address with /v1 added", work)
        if not better:
            return False
        if names := self.here.by_environment(BASE):
            self.tty.say(f"It answers at {better}: set {names[0]} to that.")
            return False
        if not self.tty.confirm(f"It answers at {better}. Take that address?"):
            return False
        changes[BASE] = better
        self.tty.good(f"The model answers at {better}.")
        return True


async def _asked(wanted: LlmSettings, here: SetupState) -> str:
    choice = await choose(wanted, env=here.env)
    trial = await ask_once(choice, limit_s=TRY_S)
    return f"{choice.model} answered after {trial.seconds:.1f} s: “{trial.text}”"
