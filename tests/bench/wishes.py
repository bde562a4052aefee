"""Tools as this bot has them, and what people might write, with the tools that each needs.

Written for this project: the bound on the cosine is set by them, and tests look at them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tools.tool import Effect, ToolCard, Trust

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "files": {
        "read_file": "Reads a text file of the workspace, whole or a range of lines.",
        "write_file": "Writes a file in the workspace, new or in place of a former one.",
        "edit_file": "Replaces a passage of a file, which must occur exactly once.",
        "append_file": "Adds text to the end of a file.",
        "list_dir": "Lists what is in a folder of the workspace.",
        "search_files": "Finds files of the workspace by name or by the text in them.",
    },
    "exec": {"exec": "Runs a program with arguments in the workspace and returns its output."},
    "web": {
        "web_fetch": "Fetches a web page and returns its article as markdown, page by page.",
        "web_search": "Searches the web: news, weather, prices, anything current.",
    },
    "message": {
        "send_message": "Sends a message to one of the person's own chats.",
        "send_file": "Sends a file from the workspace to the chat.",
        "react": "Reacts to a message with an emoji.",
    },
    "schedule": {
        "remind_me": "Sets a reminder for a moment or an interval, in plain words.",
        "record_event": "Notes an event or appointment with its date and place.",
        "list_events": "Lists events and appointments that are coming up.",
        "schedule_job": "Has the assistant do a task later or again and again.",
        "list_jobs": "Lists scheduled jobs and reminders with their next time.",
        "update_job": "Changes time or text of a scheduled job.",
        "remove_job": "Removes a scheduled job or reminder.",
        "run_job": "Runs a scheduled job now.",
    },
    "memory": {
        "store_fact": "Remembers a lasting fact about the person.",
        "search_memories": "Searches what is remembered about the person.",
        "list_facts": "Lists all facts that are remembered.",
        "update_fact": "Corrects a remembered fact.",
        "forget_fact": "Forgets a remembered fact.",
        "search_conversations": "Searches earlier conversations for what was said.",
        "read_notes": "Reads the notes of a day or the long-term notes.",
        "append_notes": "Adds to the notes of today.",
        "get_profile": "Shows the person's profile: name, languages, time zone.",
        "update_profile": "Changes the person's profile, such as their time zone or name.",
    },
    "knowledge": {
        "save_document": "Saves a document so that it can be searched later.",
        "search_documents": "Searches the saved documents for a passage.",
        "list_documents": "Lists the saved documents.",
        "remove_document": "Removes a saved document.",
    },
    "skills": {
        "read_skill": "Reads the instructions of a skill.",
        "run_skill": "Runs the script of a skill.",
        "create_skill": "Writes a new skill: a way of working to be used again.",
        "update_skill": "Changes a skill.",
        "list_skills": "Lists the skills that there are.",
    },
    "agents": {
        "spawn": "Starts a subagent in the background for a long task.",
        "subagent": "Gives a task to a subagent and waits for its result.",
    },
    "discovery": {
        "tool_categories": "Lists the groups of tools with how many each holds.",
        "tool_list": "Lists the tools of one group.",
        "tool_search": "Finds tools by what is to be done.",
        "tool_describe": "Shows what a tool does and takes.",
        "tool_call": "Calls a tool that was not offered.",
    },
    "system": {"get_status": "Says how the bot is doing: uptime, model, queues, servers."},
    "github": {
        "github__create_issue": "Opens an issue in a repository.",
        "github__list_pull_requests": "Lists open pull requests of a repository.",
        "github__merge_pull_request": "Merges a pull request.",
        "github__get_file_contents": "Reads a file from a repository on GitHub.",
    },
    "home": {
        "home__turn_on_light": "Turns on a lamp in a room.",
        "home__set_thermostat": "Sets the temperature of the heating in a room.",
        "home__lock_door": "Locks or unlocks the front door.",
        "home__play_music": "Plays a song or a playlist on a speaker.",
    },
    "mail": {
        "mail__search_inbox": "Searches e-mails in the inbox by sender, subject or text.",
        "mail__send_email": "Sends an e-mail with subject and body to a recipient.",
        "mail__archive": "Archives an e-mail thread.",
    },
    "bank": {
        "bank__account_balance": "Shows the balance of a bank account.",
        "bank__transfer_money": "Transfers an amount of money to an IBAN.",
    },
}
"""By group. Those with `__` stand for MCP servers."""

WISHES: Sequence[tuple[str, Sequence[str]]] = (
    ("Set an alarm for half past six tomorrow", ["remind_me"]),
    ("Every weekday at nine give me a summary of my inbox", ["schedule_job", "mail__search_inbox"]),
    ("What do I have on next Tuesday?", ["list_events"]),
    ("Put the dentist on Friday at 3 pm in my calendar", ["record_event"]),
    ("Cancel the reminder about the plants", ["remove_job", "list_jobs"]),
    ("Move my daily summary from 8 to 9 o'clock", ["update_job", "list_jobs"]),
    ("Which reminders are still open?", ["list_jobs"]),
    ("I'm allergic to peanuts, keep that in mind", ["store_fact"]),
    ("What do you know about my sister?", ["search_memories"]),
    ("That's wrong, I live in Lisbon now, not in Porto", ["update_fact"]),
    ("Forget what I told you about my ex", ["forget_fact"]),
    ("What did we say last month about the kitchen renovation?", ["search_conversations"]),
    ("Add to today's notes: the plumber comes on Monday", ["append_notes"]),
    ("What did I note yesterday?", ["read_notes"]),
    ("I moved to Tokyo, so adjust my time zone", ["update_profile"]),
    ("What's the weather going to be in Oslo?", ["web_search"]),
    ("Summarise https://example.org/post for me", ["web_fetch"]),
    ("How much is a euro in yen today?", ["web_search"]),
    ("Who won the match last night?", ["web_search"]),
    ("Read draft.txt and tell me what you think", ["read_file"]),
    ("Fix the typo in the second paragraph of letter.md", ["edit_file"]),
    ("Make a file with a packing list for the trip", ["write_file"]),
    ("Append milk to shopping.md", ["append_file"]),
    ("Which files are in the invoices folder?", ["list_dir"]),
    ("Find the file that mentions the warranty", ["search_files"]),
    ("Run the tests of my project", ["exec"]),
    ("Convert photo.png to jpg with imagemagick", ["exec"]),
    ("Send me the invoice as a file", ["send_file"]),
    ("Drop a line to my Slack that I'm late", ["send_message"]),
    ("Save this manual so that I can ask about it later", ["save_document"]),
    ("What does my rental contract say about pets?", ["search_documents"]),
    ("Which documents did I save?", ["list_documents"]),
    ("Look into five competitors while I'm at lunch and report back", ["spawn"]),
    ("Let somebody else check these numbers and wait for the answer", ["subagent"]),
    ("From now on do expense reports like this; make it a skill", ["create_skill"]),
    ("Which skills do you have?", ["list_skills"]),
    ("How are you doing, are all servers up?", ["get_status"]),
    ("Open an issue in the website repo about the broken footer", ["github__create_issue"]),
    ("Are there open pull requests?", ["github__list_pull_requests"]),
    ("Merge PR 42", ["github__merge_pull_request"]),
    ("It's too cold in the bedroom", ["home__set_thermostat"]),
    ("Lights on in the kitchen please", ["home__turn_on_light"]),
    ("Is the front door locked?", ["home__lock_door"]),
    ("Put on some jazz in the living room", ["home__play_music"]),
    ("Did Martha write me an email about the lease?", ["mail__search_inbox"]),
    ("Email Bob that the contract is signed", ["mail__send_email"]),
    ("How much money do I have left this month?", ["bank__account_balance"]),
    ("Pay 40 euros back to Jonas", ["bank__transfer_money"]),
    ("Do you have anything that can work with spreadsheets?", ["tool_search"]),
    ("Erinnere mich morgen um acht an den Müll", ["remind_me"]),
    ("Wie wird das Wetter in Hamburg?", ["web_search"]),
    ("Rappelle-moi d'appeler maman demain", ["remind_me"]),
    ("¿Qué noticias hay hoy?", ["web_search"]),
    ("提醒我明天早上八点开会", ["remind_me"]),
)


@dataclass(frozen=True, slots=True)
class AnyArguments:
    """Arguments of a tool that is never run."""

    schema_given: Mapping[str, Any]

    def schema(self) -> Mapping[str, Any]:
        """As it was given."""
        return self.schema_given

    def parse(self, data: dict[str, Any]) -> Any:
        """As they were sent."""
        return data


def card(name: str, description: str, *, group: str = "files", **parameters: str) -> ToolCard:
    """A card with these parameters and what is said of them."""
    properties = {
        key: {"type": "string", "description": about} for key, about in parameters.items()
    }
    return ToolCard(
        name=name,
        description=description,
        arguments=AnyArguments({"type": "object", "properties": properties}),
        group=group,
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        server=group if "__" in name else "",
    )


def built_in() -> list[ToolCard]:
    """All of `BUILT_IN`, in order."""
    return [
        card(name, description, group=group)
        for group, tools in BUILT_IN.items()
        for name, description in tools.items()
    ]
