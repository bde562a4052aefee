"""Everything that can go wrong on purpose. The two children say what a caller should do."""

from __future__ import annotations


class AssistantError(Exception):
    """Carries a sentence fit for the owner's eyes."""


class Temporary(AssistantError):
    """Try again, after `retry_after_s` seconds where the other side named a time."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Permanent(AssistantError):
    """Trying again as it is will not help."""


# --- the model -----------------------------------------------------------------------------


class RateLimited(Temporary):
    """The provider asks for a pause (HTTP 429)."""


class Overloaded(Temporary):
    """The provider has trouble of its own (HTTP 5xx, 529), or cannot be reached."""


class ModelTimeout(Temporary):
    """No answer within the limit of one model call."""


class BrokenAnswer(Temporary):
    """The stream ended early, or what came cannot be read."""


class AccountRefused(Permanent):
    """Nobody gets an answer until the owner sees to it. `is_known`: it was so before."""

    is_known = False


class AuthRefused(AccountRefused):
    """The provider does not accept the key (HTTP 401, 403)."""


class BillingRefused(AccountRefused):
    """The account has no credit or quota left (HTTP 402, insufficient_quota)."""


class ContextTooLong(Permanent):
    """The request is larger than the model's window. If it was counted here, it exceeds the `room`
    by `over` tokens."""

    def __init__(self, message: str, *, over: int = 0, room: int = 0) -> None:
        super().__init__(message)
        self.over = over
        self.room = room


class ContentFiltered(Permanent):
    """The provider's filter refused the request or the answer."""


class MalformedCall(Permanent):
    """The model wrote a tool call that its provider could not read, and got nothing through."""


class ModelRefused(Permanent):
    """Any other refusal: unknown model, bad request."""


# --- storage -------------------------------------------------------------------------------


class StorageError(AssistantError):
    """The database cannot be used as it is."""


class StorageFull(StorageError, Temporary):
    """No space left for a write; what was there before is untouched."""


class StorageLocked(StorageError, Temporary):
    """Another process holds the write lock for longer than the busy time-out."""


class StorageCorrupt(StorageError, Permanent):
    """The file is damaged, cut short or not ours. It is never replaced by an empty one."""


class StorageReadOnly(StorageError, Permanent):
    """The file or its folder cannot be written."""


# --- the home and its settings -------------------------------------------------------------


class SettingsWrong(Permanent):
    """The settings cannot be used; the text names each problem. Exit code 2."""


class HomeBusy(Permanent):
    """Another bot runs on this home."""


# --- turns ---------------------------------------------------------------------------------


class TurnStopped(AssistantError):
    """Raised by `ctx.step` once a turn has to end: the program closes it and returns."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StepUnknown(AssistantError):
    """A `once` step was in flight when the process died: nobody knows whether it happened."""


class TurnChanged(Permanent):
    """The recorded steps do not fit the program: it was changed in a way that cannot resume."""


# --- what is remembered ----------------------------------------------------------------------


class ProfileWrong(Permanent):
    """A profile cannot hold this path or value."""


class DocumentWrong(Permanent):
    """A document cannot be saved: nothing can be read in it, or too much."""
