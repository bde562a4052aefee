-- The straight line of a message: who it is from, what came in, what was done, what goes out.
-- Times are epoch milliseconds in UTC. Common subset of SQLite and Postgres where possible.

create table people (
    id          text primary key,
    role        text not null check (role in ('owner', 'member', 'guest')),
    name        text not null default '',
    time_zone   text not null default '',
    language    text not null default '',
    created_ms  integer not null
);

-- Verified addresses: 'telegram:42', 'console:local'. Names are never identity.
create table addresses (
    address     text primary key,
    person_id   text not null references people (id),
    created_ms  integer not null
);
create index addresses_person on addresses (person_id);

-- Group chats that the owner admitted ('admitted') or shut ('denied').
create table chats (
    chat        text primary key,
    state       text not null check (state in ('admitted', 'denied')),
    created_ms  integer not null
);

-- Strangers who asked: one row each; nothing of what they wrote is kept.
create table pairings (
    address       text primary key,
    channel       text not null,
    code          text not null,
    state         text not null check (state in ('pending', 'denied')),
    created_ms    integer not null,
    expires_ms    integer not null,
    answered_ms   integer not null
);

-- `sent_from` is the id of the first message that is sent to a model; 0 means all.
create table conversations (
    id          text primary key,
    lane        text not null,
    created_ms  integer not null,
    closed_ms   integer,
    sent_from   integer not null default 0
);
create unique index conversations_open on conversations (lane) where closed_ms is null;

-- Keyed by the platform's own event id. A stranger's row has no payload.
create table inbox (
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
create index inbox_open on inbox (id) where ended_ms is null;

-- `seq` is the order of submission. `resumes` counts begins since the last recorded step.
create table turns (
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
);
create index turns_open on turns (lane, message_id) where ended_ms is null;

-- A step without an output is one whose fate is open.
create table steps (
    run_id      text not null references turns (run_id),
    n           integer not null,
    name        text not null,
    output      text,
    started_ms  integer not null,
    ended_ms    integer,
    primary key (run_id, n)
) without rowid;

-- What `wait` returns. The first value of a key stands.
create table signals (
    key         text primary key,
    value       text not null,
    created_ms  integer not null
);

-- Kept whole. Ids grow; a conversation is read in their order.
create table messages (
    id               integer primary key,
    conversation_id  text not null references conversations (id),
    run_id           text not null,
    kind             text not null,
    body             text not null,
    created_ms       integer not null
);
create index messages_conversation on messages (conversation_id, id);

-- Told to the model at the beginning of the next turn, once.
create table notes (
    id               integer primary key,
    conversation_id  text not null references conversations (id),
    text             text not null,
    run_id           text,
    created_ms       integer not null
);
create index notes_open on notes (conversation_id) where run_id is null;

create table texts (
    digest  text primary key,
    body    text not null
) without rowid;

-- A reply on its way. draft: being streamed; ready: to be delivered; sent; unknown: its fate
-- cannot be known and it was sent a second time already; failed: refused for good.
create table outbox (
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
);
create unique index outbox_run on outbox (run_id) where run_id is not null;
create index outbox_open on outbox (id) where ended_ms is null;

-- One platform message each. ready -> sending -> sent; sending found after a kill, or a time-out:
-- doubtful; then sent once more, marked: resending -> sent | unknown.
create table outbox_parts (
    outbox_id   integer not null references outbox (id),
    n           integer not null,
    markup      text not null default '',
    source      text not null default '',
    state       text not null check (state in
                    ('ready', 'sending', 'doubtful', 'resending', 'sent', 'unknown', 'failed')),
    message_id  text not null default '',
    primary key (outbox_id, n)
) without rowid;
