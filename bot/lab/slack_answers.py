"""What an app says to commands, clicks and forms: at once with the acknowledgement, or later.

Called by the Slack stand-in when something was taken or given up, and for response URLs.
"""

from bot.lab.slack_chat import Chat
from bot.lab.slack_delivery import Delivery
from bot.lab.slack_params import SlackParams
from bot.lab.slack_state import RESPONSE_URL_USES, Json, SlackRefusal, SlackWorkspace
from bot.lab.slack_views import stored_view

RESPONSE_URL_S = 1800.0


class SlackResponses:
    """Shows people what came back."""

    def __init__(self, workspace: SlackWorkspace, chat: Chat) -> None:
        self._workspace = workspace
        self._chat = chat

    def to(self, delivery: Delivery) -> None:
        """A command or form was taken, or not: the person sees which."""
        if delivery.kind == "slash_commands":
            self._command(delivery)
        elif delivery.payload.get("type") == "view_submission" and delivery.state == "taken":
            self._form(delivery)

    def later(self, path: str, params: SlackParams) -> None:
        """An answer to a response URL; raises SlackRefusal when it is used up."""
        url = self._workspace.response_urls[path]
        if self._workspace.clock() - url.at > RESPONSE_URL_S:
            raise SlackRefusal("expired_url", status=404)
        if url.uses >= RESPONSE_URL_USES:
            raise SlackRefusal("used_url", status=404)
        original = None
        if url.message_ts is not None:
            original = self._workspace.find(url.channel, url.message_ts)
        if params.flag("delete_original") and original is not None:
            self._chat.remove(original)
        elif params.flag("replace_original") and original is not None:
            content = {n: params[n] for n in ("text", "blocks", "attachments") if n in params}
            self._chat.change(original, {"text": "", **content})
        elif params.get("text") or params.get("blocks"):
            self._say(url.channel, url.user, params)
        else:
            raise SlackRefusal("no_text", status=400)
        url.uses += 1

    def _command(self, delivery: Delivery) -> None:
        asked, answer = delivery.payload, delivery.answer
        channel, user = str(asked["channel_id"]), str(asked["user_id"])
        if delivery.state == "lost":
            timed_out = "timeout" in str(delivery.attempts[-1].failure)
            error = "operation_timeout" if timed_out else "dispatch_failed"
            text = f'{asked["command"]} failed with the error "{error}"'
            self._whisper(channel, user, {"text": text, "user": "USLACKBOT"})
        elif isinstance(answer, dict) and (answer.get("text") or answer.get("blocks")):
            self._say(channel, user, answer)

    def _form(self, delivery: Delivery) -> None:
        views, filled = self._workspace.views, delivery.payload.get("view")
        if not isinstance(filled, dict):
            return  # made up by hand, as anything may be: there is no form to be changed
        view_id = str(filled.get("id"))
        answer = delivery.answer if isinstance(delivery.answer, dict) else {}
        match answer.get("response_action"):
            case None:
                views.pop(view_id, None)
            case "clear":
                views.clear()
            case "update" | "push" as how if isinstance(answer.get("view"), dict):
                view = stored_view(self._workspace, answer["view"])
                view["id"] = view_id if how == "update" else self._workspace.next_id("V")
                views[view["id"]] = view

    def _say(self, channel: str, user: str, answer: Json) -> None:
        content: Json = {"text": str(answer.get("text", ""))}
        content |= {name: answer[name] for name in ("blocks", "attachments") if name in answer}
        if answer.get("response_type") == "in_channel":
            thread_ts = answer.get("thread_ts")
            self._chat.post(self._workspace.conversation(channel), content, thread_ts=thread_ts)
        else:
            self._whisper(channel, user, content)

    def _whisper(self, channel: str, user: str, content: Json) -> None:
        mine = {"user": self._workspace.identity.bot_user, "ts": self._workspace.next_ts()}
        self._workspace.whisper(channel, user, {"type": "message", **mine, **content})
