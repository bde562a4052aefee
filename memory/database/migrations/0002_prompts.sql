-- What a prompt is made of beside the conversation: playbooks, decisions about skills, and how
-- much of old tool results is still sent.

-- Playbooks that live here and not in a folder. `keywords` and `required_tools` are JSON lists.
create table playbooks (
    name            text primary key,
    description     text not null,
    keywords        text not null,
    text            text not null,
    priority        integer not null,
    required_tools  text not null,
    updated_ms      integer not null
);

-- What the owner decided about a skill, for the content that `digest` names.
create table skill_records (
    name        text primary key,
    digest      text not null,
    approved    integer not null check (approved in (0, 1)),
    enabled     integer not null check (enabled in (0, 1)),
    origin      text not null,
    updated_ms  integer not null
);

-- Tool results of messages before this id are sent shortened; a step moves it.
alter table conversations add column shortened_to integer not null default 0;

-- The newest turns of an address, whatever has become of them.
create index turns_lane on turns (lane, seq);
