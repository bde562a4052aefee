"""Skills and sets of them for tests, and a small world of playbooks with messages for them."""

from __future__ import annotations

from typing import Any

from agent.skills.skill import Skill, SkillPlace, SkillSet


def skill(name: str, *keywords: str, **more: Any) -> Skill:
    """A usable skill of the workspace."""
    given: dict[str, Any] = {
        "description": f"About {name}.",
        "text": f"Do {name}.",
        "place": SkillPlace.WORKSPACE,
        "location": f"workspace/skills/{name}/SKILL.md",
        **more,
    }
    return Skill(name=name, keywords=keywords, **given)


def shelf(*skills: Skill, **more: Any) -> SkillSet:
    """A set of skills in its promised order."""
    ordered = sorted(skills, key=lambda one: (-one.priority, one.name))
    return SkillSet(skills=tuple(ordered), **more)


PLAYBOOKS: dict[str, tuple[str, ...]] = {
    "mail": ("email", "inbox", "mailbox", "unread", "newsletter"),
    "meetings": ("meeting", "schedule a call", "appointment", "calendar invite"),
    "files": ("file", "folder", "directory", ".pdf", "rename"),
    "code": ("pull request", "code review", "c++", "refactor", "stack trace"),
    "travel": ("flight", "hotel", "boarding pass", "train ticket"),
    "money": ("invoice", "expense", "tax return", "budget"),
    "cooking": ("recipe", "cook", "ingredient"),
    "todo": ("#todo", "to-do", "task list", "deadline"),
    "web": ("search the web", "look it up", "https://", "website"),
    "memory": ("do you remember", "what did i say", "forget"),
    "health": ("workout", "sleep score", "medication"),
    "kalender": ("日历", "termin", "встреча"),
}
"""Keywords as people write them: some plain, some phrases, some that are not quite words."""

MESSAGES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (text, frozenset(names.split()))
    for text, names in (
        ("Any new emails since lunch?", "mail"),
        ("what's in my inbox", "mail"),
        ("How many UNREAD messages do I have", "mail"),
        ("emailing Bob about the newsletters", "mail"),
        ("Anna’s email’s subject line was odd", "mail"),
        ("schedule a call with Sam on Friday", "meetings"),
        ("I'm scheduling a call, when are you free?", "meetings"),
        ("move my appointments to next week", "meetings"),
        ("two meetings overlap tomorrow", "meetings"),
        ("send a calendar   invite to the team", "meetings"),
        ("renamed the file to notes.txt", "files"),
        ("put report.PDF into the tax folder", "files"),
        ("list the directories here", "files"),
        ("renaming all the photos takes ages", "files"),
        ("can you look at this pull-request", "code"),
        ("open pull requests on the repo", "code"),
        ("is C++ still worth learning?", "code"),
        ("we refactored the parser", "code"),
        ("paste of a stack trace below", "code"),
        ("my flight's delayed", "travel"),
        ("two hotels near the station", "travel"),
        ("where are the boarding passes", "travel"),
        ("find a train\nticket to Rome", "travel"),
        ("send the invoices to the client", "money"),
        ("expensed the taxi", "money"),
        ("budgeting for the holidays", "money"),
        ("help with my tax return", "money"),
        ("recipes with rice", "cooking"),
        ("what can I cook tonight", "cooking"),
        ("cooking for six people", "cooking"),
        ("list of ingredients, please", "cooking"),
        ("#TODO call the bank", "todo"),
        ("add it to my to do list", "todo"),
        ("deadlines this week?", "todo"),
        ("search the web for a plumber", "web"),
        ("look it up please", "web"),
        ("what is on https://example.org/a?b=c", "web"),
        ("do you remember my shoe size", "memory"),
        ("what did I say about Lisbon", "memory"),
        ("forget it", "memory"),
        ("my sleep score was bad after the workouts", "health"),
        ("打开我的日历", "kalender"),
        ("Wann ist mein nächster Termin?", "kalender"),
        ("когда встреча с Анной", "kalender"),
        ("attach the file to an email", "files mail"),
        ("book a flight and expense it", "travel money"),
        ("email me the invoice as file", "mail money files"),
        ("请把email发给Anna", "mail"),
        ("hello there", ""),
        ("update my profile picture", ""),
        ("she has a high profile job", ""),
        ("the exit is a bit further", ""),
        ("I pretend not to care", ""),
        ("did you see the budgetary debate", ""),
        ("the cookie jar is empty", ""),
        ("unforgettable evening!", ""),
        ("my taxi returns at six", ""),
        ("a call with Sam was scheduled", ""),
        ("it is a stacked deck", ""),
        ("the team requested a pull on the rope", ""),
        ("what is the sum of 2 and 3", ""),
        ("tell me a joke about cats", ""),
        ("how tall is Mont Blanc", ""),
        ("good night", ""),
        ("the hotelier was kind", ""),
        ("search my notes for Rome", ""),
        ("determine the area of a circle", ""),
        ("Terminal 2 or 3?", ""),
        ("what is a c-section", ""),
        ("webs of spiders in the cellar", ""),
        ("do you recall my shoe size", ""),
    )
)
"""Messages of one person's week, and the playbooks that a person would want for each."""
