-- Long-term memory: facts, profiles, documents, insights, what was compacted, and what is forgotten.
-- Times are epoch milliseconds. `scope` is empty for what is private, else the chat of a group.

-- Nothing is overwritten: a correction closes a row (`valid_to_ms`) and names the one that follows.
-- `message_id` and `quote` say which line it rests on; `run_id` is the turn it came from.
create table facts (
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
create index facts_person on facts (person_id, scope, id);
create index facts_scope on facts (scope, id) where scope <> '';
create index facts_run on facts (run_id) where run_id <> '';
create index facts_superseded on facts (superseded_by) where superseded_by is not null;

-- What must not be learnt again, without its words: keyed hashes of the whole and of each word.
create table tombstones (
    id          integer primary key autoincrement,
    person_id   text not null,
    scope       text not null default '',
    whole       text not null,
    words       text not null,
    created_ms  integer not null
);
create index tombstones_person on tombstones (person_id, scope);

-- The key of those hashes: made once, never shown. `generation` counts how often something was erased:
-- what was read in an older one is not stored any more.
create table forgetting_key (
    id          integer primary key check (id = 1),
    key         blob not null,
    generation  integer not null default 0
);

-- One JSON object each; every change of a path keeps what was there (JSON; null: nothing).
create table profiles (
    person_id   text primary key,
    body        text not null,
    updated_ms  integer not null
);
create table profile_changes (
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
create index profile_changes_person on profile_changes (person_id, id);
create index profile_changes_run on profile_changes (run_id) where run_id <> '';

-- `source` is where the text is from (a path, an address); `offered_ms` when its removal was
-- offered last.
create table documents (
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
create unique index documents_name on documents (person_id, scope, name);
create table chunks (
    id           integer primary key autoincrement,
    document_id  integer not null references documents (id) on delete cascade,
    n            integer not null,
    text         text not null,
    unique (document_id, n)
);

-- Lists of texts as JSON; replaced as a whole.
create table insights (
    conversation_id  text primary key references conversations (id) on delete cascade,
    pins             text not null,
    recommendations  text not null,
    updated_ms       integer not null
);

-- What is no longer sent, summed up: from the turn after it the history begins at `sent_from`, which
-- was `from_id` before. The newest that is not undone counts.
create table compactions (
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
);
create index compactions_conversation on compactions (conversation_id, id);

-- One durable timer for each conversation that something is left to do in once it is idle.
-- `touched_ms` is its last message; after a failure it waits until `not_before_ms`. `done_upto` is
-- the id of the last message that was looked at for facts.
create table idle_timers (
    conversation_id  text primary key references conversations (id) on delete cascade,
    lane             text not null,
    touched_ms       integer not null,
    not_before_ms    integer not null default 0,
    tries            integer not null default 0,
    is_open          integer not null check (is_open in (0, 1)),
    done_upto        integer not null default 0
) without rowid;
create index idle_timers_open on idle_timers (touched_ms) where is_open;

-- Each finished turn in which somebody spoke, for the search over all that was ever said. The words
-- themselves stand in `messages` alone; `place` is the chat without its thread.
create table exchanges (
    id               integer primary key,
    run_id           text not null unique,
    conversation_id  text not null references conversations (id) on delete cascade,
    person_id        text not null,
    place            text not null,
    first_id         integer not null,
    last_id          integer not null,
    at_ms            integer not null
);
create index exchanges_place on exchanges (place, person_id, id);
create index exchanges_conversation on exchanges (conversation_id, id);
create virtual table exchange_words using fts5(
    body, content='', tokenize='porter unicode61 remove_diacritics 2'
);
create index messages_run on messages (run_id);

-- Memory is off in it: nothing is recalled or learnt, and it is dropped at its end.
alter table conversations add column is_private integer not null default 0;

-- When the steps of a turn were erased, because somebody wished words in them to be forgotten: it
-- cannot be replayed any more.
alter table turns add column erased_ms integer;
