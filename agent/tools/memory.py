"""The group `memory`: what is remembered of a person, in facts, notes, a profile and an archive."""

from __future__ import annotations

from agent.remembering import Archive, Facts, Profiles
from agent.tools.household import Household
from agent.tools.note_files import Notes
from agent.tools.notes import AppendNotes, ReadNotes
from agent.tools.profile import GetProfile, UpdateProfile
from agent.tools.recalling import ListFacts, SearchConversations, SearchMemories
from agent.tools.remembering import ForgetFact, StoreFact, UpdateFact
from agent.tools.tool import Tool


def memory_tools(
    facts: Facts, profiles: Profiles, archive: Archive, notes: Notes, *, household: Household
) -> tuple[Tool, ...]:
    """All tools of this group."""
    return (
        StoreFact(facts, household),
        SearchMemories(facts, household),
        ListFacts(facts, household),
        UpdateFact(facts, household),
        ForgetFact(facts, household),
        SearchConversations(archive, household),
        ReadNotes(notes, household),
        AppendNotes(notes, household),
        GetProfile(profiles, household),
        UpdateProfile(profiles, household),
    )
