pragma auto_vacuum = 2;

pragma application_id = 1213350484;

pragma user_version = 20;

pragma journal_mode = wal;

CREATE TABLE addresses (
    address     text primary key,
    person_id   text not null references people (id),
    created_ms  integer not null
);

CREATE TABLE approvals (
    id           text primary key,
    run_id       text not null,
    lane         text not null,
    person_id    text not null,
    role         text not null,
    agent        text not null,
    tool         text not null,
    digest       text not null,
    shows        text not null,
    why          text not null,
    owner_alone  integer not null check (owner_alone in (0, 1)),
    once_only    integer not null check (once_only in (0, 1)),
    state        text not null check (state in ('open', 'once', 'always', 'denied', 'expired')),
    asked_ms     integer not null,
    expires_ms   integer not null,
    decided_by   text not null default '',
    decided_ms   integer,
    card_lane    text,
    outbox_id    integer,
    settled_ms   integer,
    check ((state = 'open') = (decided_ms is null)),
    check (not (once_only and state = 'always'))
) without rowid;

CREATE TABLE assumed_times (
    kind        text not null check (kind in ('job', 'event')),
    id          integer not null,
    person_id   text not null,
    zone        text not null,
    primary key (kind, id)
) without rowid;

CREATE TABLE chats (
    chat        text primary key,
    state       text not null check (state in ('admitted', 'denied')),
    created_ms  integer not null
);

CREATE TABLE children (
    run_id       text primary key references turns (run_id),
    parent_run   text not null,
    parent_lane  text not null,
    number       integer not null,
    waits        integer not null check (waits in (0, 1)),
    head         text not null,
    unique (parent_lane, number)
) without rowid;

CREATE TABLE chosen_models (
    lane       text primary key,
    model      text not null,
    person_id  text not null,
    set_ms     integer not null
) without rowid;

CREATE TABLE chunks (
    id           integer primary key autoincrement,
    document_id  integer not null references documents (id) on delete cascade,
    n            integer not null,
    text         text not null,
    unique (document_id, n)
);

CREATE TABLE compactions (
    id               integer primary key autoincrement,
    conversation_id  text not null references conversations (id) on delete cascade,
    kind             text not null check (kind in ('truncate', 'summarise', 'digest')),
    from_id          integer not null,
    sent_from        integer not null,
    summary          text not null,
    reason           text not null default '',
    messages         integer not null,
    tokens_before    integer not null,
    tokens_after     integer not null,
    made_ms          integer not null,
    undone_ms        integer
, tainted integer not null default 0);

CREATE TABLE conversations (
    id          text primary key,
    lane        text not null,
    created_ms  integer not null,
    closed_ms   integer,
    sent_from   integer not null default 0
, shortened_to integer not null default 0, is_private integer not null default 0);

CREATE TABLE documents (
    id          integer primary key autoincrement,
    person_id   text not null,
    scope       text not null default '',
    name        text not null,
    kind        text not null,
    source      text not null default '',
    digest      text not null,
    chars       integer not null,
    saved_ms    integer not null,
    used_ms     integer not null,
    offered_ms  integer
);

CREATE TABLE events (
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

CREATE VIRTUAL TABLE exchange_words using fts5(
    body, content='', tokenize='porter unicode61 remove_diacritics 2'
);

CREATE TABLE exchanges (
    id               integer primary key,
    run_id           text not null unique,
    conversation_id  text not null references conversations (id) on delete cascade,
    person_id        text not null,
    place            text not null,
    first_id         integer not null,
    last_id          integer not null,
    at_ms            integer not null
);

CREATE TABLE facts (
    id             integer primary key autoincrement,
    person_id      text not null,
    scope          text not null default '',
    text           text not null,
    category       text not null,
    confidence     real not null,
    source         text not null check (source in ('message', 'tool', 'person', 'import')),
    message_id     integer,
    run_id         text not null default '',
    quote          text not null default '',
    speaker        text not null default '',
    valid_from_ms  integer not null,
    valid_to_ms    integer,
    superseded_by  integer references facts (id) on delete set null,
    created_ms     integer not null,
    last_used_ms   integer,
    uses           integer not null default 0
);

CREATE TABLE forgetting_key (
    id          integer primary key check (id = 1),
    key         blob not null,
    generation  integer not null default 0
);

CREATE TABLE former_files (
    id          integer primary key,
    person_id   text not null,
    run_id      text not null,
    path        text not null,
    former      text not null,
    becomes     text not null,
    created_ms  integer not null,
    unique (run_id, path)
);

CREATE TABLE heartbeats (
    id         integer primary key autoincrement,
    agent      text not null,
    at_ms      integer not null,
    outcome    text not null,
    why        text not null
);

CREATE TABLE idle_timers (
    conversation_id  text primary key references conversations (id) on delete cascade,
    lane             text not null,
    touched_ms       integer not null,
    not_before_ms    integer not null default 0,
    tries            integer not null default 0,
    is_open          integer not null check (is_open in (0, 1)),
    done_upto        integer not null default 0
) without rowid;

CREATE TABLE inbox (
    id           integer primary key,
    source       text not null,
    event_id     text not null,
    lane         text not null default '',
    payload      text,
    state        text not null,
    reason       text not null default '',
    run_id       text,
    received_ms  integer not null,
    ended_ms     integer,
    unique (source, event_id)
);

CREATE TABLE insights (
    conversation_id  text primary key references conversations (id) on delete cascade,
    pins             text not null,
    recommendations  text not null,
    updated_ms       integer not null
);

CREATE TABLE job_runs (
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

CREATE TABLE jobs (
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

CREATE TABLE link_codes (
    code        text primary key,
    person_id   text not null references people (id),
    address     text not null,
    lane        text not null,
    created_ms  integer not null,
    expires_ms  integer not null,
    used_by     text not null default ''
);

CREATE TABLE mcp_servers (
    name     text primary key,
    seen_ms  integer not null
);

CREATE TABLE mcp_tools (
    server       text not null references mcp_servers (name) on delete cascade,
    tool         text not null,
    digest       text not null,
    description  text not null,
    approved_ms  integer not null,
    primary key (server, tool)
);

CREATE TABLE messages (
    id               integer primary key,
    conversation_id  text not null references conversations (id),
    run_id           text not null,
    kind             text not null,
    body             text not null,
    created_ms       integer not null
);

CREATE TABLE notes (
    id               integer primary key,
    conversation_id  text not null references conversations (id),
    text             text not null,
    run_id           text,
    created_ms       integer not null
);

CREATE TABLE outbox (
    id          integer primary key,
    run_id      text,
    lane        text not null,
    text        text not null default '',
    state       text not null check (state in ('draft', 'ready', 'sent', 'unknown', 'failed')),
    reason      text not null default '',
    not_before_ms integer not null default 0,
    attempts    integer not null default 0,
    created_ms  integer not null,
    ended_ms    integer
, keyboard text not null default '', buttons text not null default '', revision text, file text not null default '', tried_ms integer not null default 0, about text not null default '');

CREATE TABLE outbox_parts (
    outbox_id   integer not null references outbox (id),
    n           integer not null,
    markup      text not null default '',
    source      text not null default '',
    state       text not null check (state in
                    ('ready', 'sending', 'doubtful', 'resending', 'sent', 'unknown', 'failed')),
    message_id  text not null default '', ref text not null default '',
    primary key (outbox_id, n)
) without rowid;

CREATE TABLE pairings (
    address       text primary key,
    channel       text not null,
    code          text not null,
    state         text not null check (state in ('pending', 'denied')),
    created_ms    integer not null,
    expires_ms    integer not null,
    answered_ms   integer not null
);

CREATE TABLE "pauses" (
    kind      text not null check (kind in ('brake', 'hand')),
    agent     text not null default 'default',
    is_on     integer not null check (is_on in (0, 1)),
    since_ms  integer not null,
    words     text not null,
    primary key (kind, agent)
) without rowid;

CREATE TABLE people (
    id          text primary key,
    role        text not null check (role in ('owner', 'member', 'guest')),
    name        text not null default '',
    time_zone   text not null default '',
    language    text not null default '',
    created_ms  integer not null
, language_hint text not null default '');

CREATE TABLE playbooks (
    name            text primary key,
    description     text not null,
    keywords        text not null,
    text            text not null,
    priority        integer not null,
    required_tools  text not null,
    updated_ms      integer not null
);

CREATE TABLE profile_changes (
    id         integer primary key autoincrement,
    person_id  text not null,
    path       text not null,
    old        text,
    new        text,
    reason     text not null,
    run_id     text not null default '',
    at_ms      integer not null,
    undone_ms  integer
);

CREATE TABLE profiles (
    person_id   text primary key,
    body        text not null,
    updated_ms  integer not null
);

CREATE TABLE quiet_hours (
    person_id    text primary key,
    from_minute  integer not null check (from_minute between 0 and 1439),
    to_minute    integer not null check (to_minute between 0 and 1439),
    set_ms       integer not null
);

CREATE TABLE signals (
    key         text primary key,
    value       text not null,
    created_ms  integer not null
);

CREATE TABLE skill_records (
    name        text primary key,
    digest      text not null,
    approved    integer not null check (approved in (0, 1)),
    enabled     integer not null check (enabled in (0, 1)),
    origin      text not null,
    updated_ms  integer not null
);

CREATE TABLE spending_notices (
    key         text primary key,
    person_id   text not null,
    text        text not null,
    buttons     text not null,
    created_ms  integer not null,
    told_ms     integer
) without rowid;

CREATE TABLE standing_grants (
    id           integer primary key,
    person_id    text not null,
    agent        text not null,
    tool         text not null,
    approval_id  text not null,
    granted_by   text not null,
    granted_ms   integer not null,
    revoked_ms   integer
);

CREATE TABLE steps (
    run_id      text not null references turns (run_id),
    n           integer not null,
    name        text not null,
    output      text,
    started_ms  integer not null,
    ended_ms    integer,
    primary key (run_id, n)
) without rowid;

CREATE TABLE switches (
    name    text primary key,
    is_on   integer not null check (is_on in (0, 1)),
    set_ms  integer not null
) without rowid;

CREATE TABLE tellings (
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

CREATE TABLE texts (
    digest  text primary key,
    body    text not null
) without rowid;

CREATE TABLE tombstones (
    id          integer primary key autoincrement,
    person_id   text not null,
    scope       text not null default '',
    whole       text not null,
    words       text not null,
    created_ms  integer not null
);

CREATE TABLE turns (
    seq         integer primary key,
    run_id      text not null unique,
    lane        text not null,
    person_id   text not null,
    message_id  text not null default '',
    inbox_id    integer references inbox (id),
    payload     text not null,
    status      text not null,
    stopping    text not null default '',
    resumes     integer not null default 0,
    waits_for   text,
    joined_to   text,
    created_ms  integer not null,
    started_ms  integer,
    ended_ms    integer
, limit_s real, erased_ms integer);

CREATE TABLE usage (
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

CREATE TABLE zone_questions (
    person_id   text primary key,
    lane        text not null,
    zone        text not null,
    state       text not null check (state in ('wanted', 'asked', 'over')),
    outbox_id   integer,
    created_ms  integer not null
) without rowid;

CREATE INDEX addresses_person on addresses (person_id);

CREATE INDEX approvals_open on approvals (expires_ms) where state = 'open';

CREATE INDEX approvals_run on approvals (run_id);

CREATE INDEX approvals_unsettled on approvals (decided_ms) where settled_ms is null;

CREATE INDEX assumed_times_person on assumed_times (person_id);

CREATE INDEX compactions_conversation on compactions (conversation_id, id);

CREATE UNIQUE INDEX conversations_open on conversations (lane) where closed_ms is null;

CREATE UNIQUE INDEX documents_name on documents (person_id, scope, name);

CREATE INDEX events_person on events (person_id, scope, at_ms);

CREATE INDEX exchanges_conversation on exchanges (conversation_id, id);

CREATE INDEX exchanges_place on exchanges (place, person_id, id);

CREATE INDEX facts_person on facts (person_id, scope, id);

CREATE INDEX facts_run on facts (run_id) where run_id <> '';

CREATE INDEX facts_scope on facts (scope, id) where scope <> '';

CREATE INDEX facts_superseded on facts (superseded_by) where superseded_by is not null;

CREATE INDEX former_files_person on former_files (person_id);

CREATE INDEX heartbeats_agent on heartbeats (agent, id);

CREATE INDEX idle_timers_open on idle_timers (touched_ms) where is_open;

CREATE INDEX inbox_ended on inbox (ended_ms) where ended_ms is not null;

CREATE INDEX inbox_open on inbox (id) where ended_ms is null;

CREATE INDEX job_runs_open on job_runs (taken_ms) where state in ('taken', 'found', 'waiting', 'asked');

CREATE INDEX job_runs_run on job_runs (run_id) where run_id <> '';

CREATE INDEX job_runs_time on job_runs (taken_ms);

CREATE INDEX jobs_next on jobs (next_ms) where enabled and next_ms is not null;

CREATE INDEX link_codes_person on link_codes (person_id);

CREATE INDEX messages_conversation on messages (conversation_id, id);

CREATE INDEX messages_created on messages (created_ms);

CREATE INDEX messages_run on messages (run_id);

CREATE INDEX notes_open on notes (conversation_id) where run_id is null;

CREATE INDEX outbox_buttons on outbox (id) where buttons <> '';

CREATE INDEX outbox_ended on outbox (ended_ms) where ended_ms is not null;

CREATE INDEX outbox_files on outbox (id) where file <> '';

CREATE INDEX outbox_open on outbox (id) where ended_ms is null;

CREATE INDEX outbox_revised on outbox (id) where revision is not null;

CREATE UNIQUE INDEX outbox_run on outbox (run_id) where run_id is not null;

CREATE INDEX profile_changes_person on profile_changes (person_id, id);

CREATE INDEX profile_changes_run on profile_changes (run_id) where run_id <> '';

CREATE UNIQUE INDEX standing_grants_now on standing_grants (person_id, agent, tool)
    where revoked_ms is null;

CREATE INDEX tellings_told on tellings (person_id, told_ms) where told_ms is not null;

CREATE INDEX tellings_waiting on tellings (person_id, id) where told_ms is null;

CREATE INDEX tombstones_person on tombstones (person_id, scope);

CREATE INDEX turns_inbox on turns (inbox_id) where inbox_id is not null;

CREATE INDEX turns_lane on turns (lane, seq);

CREATE INDEX turns_open on turns (lane, message_id) where ended_ms is null;

CREATE INDEX turns_traced on turns (ended_ms)
    where ended_ms is not null and (payload <> '{}' or erased_ms is not null);

CREATE INDEX usage_at on usage (at_ms);

CREATE INDEX usage_job on usage (job, at_ms) where job <> '';

CREATE INDEX usage_open on usage (id) where state = 'open';

CREATE INDEX usage_person on usage (person_id, at_ms);

CREATE INDEX usage_run on usage (run_id) where run_id <> '';
