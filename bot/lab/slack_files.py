"""Files in the Slack stand-in: the three steps of an upload, and downloads behind the bot token.

Called by `bot.lab.slack_api` for the methods, and by `bot.lab.slack` for the bytes.
"""

import dataclasses
import mimetypes
from collections.abc import Callable

from bot.lab.slack_chat import Chat
from bot.lab.slack_params import SlackParams
from bot.lab.slack_state import Json, SlackFile, SlackRefusal, SlackWorkspace

UPLOAD_BYTES_MAX = 1024 * 1024 * 1024


class SharedFiles:
    """What the bot does with files, and what a person shares."""

    def __init__(self, workspace: SlackWorkspace, chat: Chat) -> None:
        self._workspace = workspace
        self._chat = chat
        self.base_url = ""
        self.methods: dict[str, Callable[[SlackParams], Json]] = {
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._complete,
            "files.info": self._info,
            "files.delete": self._remove,
        }

    def add(self, name: str, data: bytes, *, user: str, mime_type: str | None = None) -> SlackFile:
        """A file that a person has shared."""
        return self._workspace.add_file(
            SlackFile(
                id=self._workspace.next_id("F"),
                name=name,
                title=name,
                mime_type=mime_type or _guessed(name),
                user=user,
                created=int(self._workspace.wall()),
                data=data,
                length=len(data),
            )
        )

    def receive(self, file_id: str, data: bytes) -> bool:
        """The second step: the bytes; whether they are as many as was said."""
        file = self._workspace.files.get(file_id)
        if file is None or file.data is not None or len(data) != file.length:
            return False
        self._workspace.files[file_id] = dataclasses.replace(file, data=data)
        return True

    def by_path(self, path: str) -> SlackFile | None:
        """The file behind a `url_private`."""
        for file in self._workspace.files.values():
            if file.data is not None and path in {_path(self._workspace, file), _down(file)}:
                return file
        return None

    def about(self, file: SlackFile) -> Json:
        """A file as the Web API shows it."""
        ending = file.name.rpartition(".")[2] if "." in file.name else "text"
        return {
            "id": file.id,
            "created": file.created,
            "timestamp": file.created,
            "name": file.name,
            "title": file.title,
            "mimetype": file.mime_type,
            "filetype": ending,
            "pretty_type": ending.upper(),
            "user": file.user,
            "user_team": self._workspace.identity.team,
            "editable": False,
            "size": len(file.data or b""),
            "mode": "hosted",
            "is_external": False,
            "is_public": False,
            "file_access": "visible",
            "url_private": self.base_url + _path(self._workspace, file),
            "url_private_download": self.base_url + _down(file),
            "permalink": f"{self.base_url}/files/{file.user}/{file.id}/{file.name}",
        }

    # Methods ------------------------------------------------------------------------------------

    def _upload_url(self, p: SlackParams) -> Json:
        name, length = p.needed("filename"), p.number("length", 0)
        if length <= 0:
            raise SlackRefusal("missing_argument")
        if length > UPLOAD_BYTES_MAX:
            raise SlackRefusal("file_upload_size_restricted")
        file = self._workspace.add_file(
            SlackFile(
                id=self._workspace.next_id("F"),
                name=name,
                title=name,
                mime_type=_guessed(name),
                user=self._workspace.identity.bot_user,
                created=int(self._workspace.wall()),
                length=length,
            )
        )
        return {"upload_url": f"{self.base_url}/upload/v1/{file.id}", "file_id": file.id}

    def _complete(self, p: SlackParams) -> Json:
        files = [self._finished(one) for one in p.objects("files")]
        named = [c for c in [p.text("channel_id"), *p.text("channels").split(",")] if c]
        places = [self._chat.writable(name) for name in named]
        threads = [self._chat.thread(place, p) for place in places]
        for file in files:
            self._workspace.files[file.id] = file
        for place, thread_ts in zip(places, threads, strict=True):
            content: Json = {
                "text": p.text("initial_comment"),
                "subtype": "file_share",
                "files": [self.about(file) for file in files],
                "upload": False,
            }
            self._chat.post(place, content, thread_ts=thread_ts)
        return {"files": [self.about(file) for file in files]}

    def _finished(self, asked: Json) -> SlackFile:
        file = self._workspace.files.get(str(asked.get("id")))
        if file is None or file.data is None:
            raise SlackRefusal("file_not_found")
        return dataclasses.replace(file, title=str(asked.get("title") or file.name))

    def _info(self, p: SlackParams) -> Json:
        return {"file": self.about(self._found(p)), "comments": []}

    def _remove(self, p: SlackParams) -> Json:
        file = self._found(p)
        if file.user != self._workspace.identity.bot_user:
            raise SlackRefusal("cant_delete_file")
        del self._workspace.files[file.id]
        return {}

    def _found(self, p: SlackParams) -> SlackFile:
        file = self._workspace.files.get(p.needed("file"))
        if file is None:
            raise SlackRefusal("file_not_found")
        return file


def _path(workspace: SlackWorkspace, file: SlackFile) -> str:
    return f"/files-pri/{workspace.identity.team}-{file.id}/{file.name}"


def _down(file: SlackFile) -> str:
    return f"/files-pri/download/{file.id}/{file.name}"


def _guessed(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
