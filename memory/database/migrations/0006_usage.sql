-- What model calls cost, one row each. Times are epoch milliseconds, money is in micro-dollars.

-- open: being made (the figures are the estimate); counted: by the provider; estimated: the
-- provider did not say, or the process died meanwhile. `micros` is null without a known price.
create table usage (
    id               integer primary key,
    at_ms            integer not null,
    person_id        text not null,
    lane             text not null,
    conversation_id  text not null,
    run_id           text not null,
    job              text not null,
    agent            text not null,
    purpose          text not null,
    model            text not null,
    prompt           integer not null,
    completion       integer not null,
    cached           integer not null,
    micros           integer,
    guessed          integer not null,
    state            text not null check (state in ('open', 'counted', 'estimated'))
);
create index usage_at on usage (at_ms);
create index usage_person on usage (person_id, at_ms);
create index usage_run on usage (run_id) where run_id <> '';
create index usage_job on usage (job, at_ms) where job <> '';
create index usage_open on usage (id) where state = 'open';

-- Warnings, each told once. `buttons` is a JSON list of [label, data, text].
create table spending_notices (
    key         text primary key,
    person_id   text not null,
    text        text not null,
    buttons     text not null,
    created_ms  integer not null,
    told_ms     integer
) without rowid;

-- Why the bot stands still, or since when it no longer does.
create table pauses (
    kind      text primary key check (kind in ('brake', 'hand')),
    is_on     integer not null check (is_on in (0, 1)),
    since_ms  integer not null,
    words     text not null
) without rowid;
