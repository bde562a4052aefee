-- What happens by the clock: jobs, each due time of theirs that was taken, and what waits to be told.
-- Times are epoch milliseconds; a slot is a due time as the clock on the wall of the job's zone shows
-- it, so that no change of clocks makes one run twice.

-- `what` is JSON (text, skill, tool, arguments), `runs_when` JSON of `agent.jobs`. `next_slot` and
-- `next_ms` are null once it is over; `not_before_ms` holds it back after a failure.
create table jobs (
    id               integer primary key autoincrement,
    name             text not null,
    person_id        text not null,
    agent            text not null,
    kind             text not null
                         check (kind in ('message', 'agent', 'skill', 'tool', 'heartbeat')),
    what             text not null,
    runs_when        text not null,
    deliver_to       text not null,
    missed           text not null check (missed in ('skip', 'once', 'all', 'ask')),
    missed_within_s  integer,
    quiet            text not null check (quiet in ('defer', 'drop', 'ignore')),
    urgent           integer not null check (urgent in (0, 1)),
    set_by           text not null check (set_by in ('person', 'skill', 'bot')),
    nag_s            integer,
    max_runs         integer,
    expires_ms       integer,
    enabled          integer not null check (enabled in (0, 1)),
    paused           text not null default '',
    next_slot        text,
    next_ms          integer,
    not_before_ms    integer not null default 0,
    failures         integer not null default 0,
    runs             integer not null default 0,
    run_id           text not null default '',
    created_ms       integer not null,
    updated_ms       integer not null,
    unique (person_id, name),
    check ((next_slot is null) = (next_ms is null))
);
create index jobs_next on jobs (next_ms) where enabled and next_ms is not null;

-- The run ledger: whoever inserts the row has the slot, in the transaction that creates the turn or
-- the message. `result` is what a turn found, until it was told or kept silent.
create table job_runs (
    job_id      integer not null references jobs (id) on delete cascade,
    slot        text not null,
    due_ms      integer not null,
    state       text not null check (state in
                    ('taken', 'found', 'told', 'silent', 'failed', 'skipped', 'waiting', 'asked')),
    run_id      text not null default '',
    outbox_id   integer,
    result      text,
    note        text not null default '',
    late_s      integer not null default 0,
    taken_ms    integer not null,
    ended_ms    integer,
    primary key (job_id, slot)
);
create index job_runs_run on job_runs (run_id) where run_id <> '';
create index job_runs_open on job_runs (taken_ms) where state in ('taken', 'found', 'waiting', 'asked');
create index job_runs_time on job_runs (taken_ms);

-- What a person was told unasked, for the daily cap and so that nothing is told twice in a day; and
-- what waits for the end of quiet hours or for a digest (`told_ms` null).
create table tellings (
    id          integer primary key autoincrement,
    person_id   text not null,
    lane        text not null,
    job_id      integer,
    slot        text not null default '',
    text        text not null,
    finding     text not null default '',
    counts      integer not null check (counts in (0, 1)),
    why         text not null default '',
    created_ms  integer not null,
    told_ms     integer
);
create index tellings_waiting on tellings (person_id, id) where told_ms is null;
create index tellings_told on tellings (person_id, told_ms) where told_ms is not null;

-- `at_ms` null: a thing without a date. `remind` is JSON: before, on.
create table events (
    id          integer primary key autoincrement,
    person_id   text not null,
    scope       text not null default '',
    name        text not null,
    at_ms       integer,
    all_day     integer not null check (all_day in (0, 1)),
    zone        text not null,
    note        text not null default '',
    remind      text not null default '[]',
    run_id      text not null default '',
    created_ms  integer not null
);
create index events_person on events (person_id, scope, at_ms);

-- Hours in which a person is not to be spoken to unasked: minutes of the day in their zone.
create table quiet_hours (
    person_id    text primary key,
    from_minute  integer not null check (from_minute between 0 and 1439),
    to_minute    integer not null check (to_minute between 0 and 1439),
    set_ms       integer not null
);

-- What the heartbeat did and why, the last ones; and whether it is on where that was set by hand.
create table heartbeats (
    id         integer primary key autoincrement,
    agent      text not null,
    at_ms      integer not null,
    outcome    text not null,
    why        text not null
);
create index heartbeats_agent on heartbeats (agent, id);
create table switches (
    name    text primary key,
    is_on   integer not null check (is_on in (0, 1)),
    set_ms  integer not null
) without rowid;
