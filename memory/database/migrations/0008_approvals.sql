-- Calls that a person has to agree to before they are run, and what was agreed to for good.
-- Times are epoch milliseconds.

-- `role` is the person's when it was asked. `lane` is the turn's, `card_lane` where the card
-- `outbox_id` went; both are null where there was nowhere to send it. `settled_ms` is when all that
-- follows from the decision had been done: the turn told, the card revised.
create table approvals (
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
create index approvals_open on approvals (expires_ms) where state = 'open';
create index approvals_unsettled on approvals (decided_ms) where settled_ms is null;

-- One row each time: what was taken back stays, as a record of who could do what and when.
create table standing_grants (
    id           integer primary key,
    person_id    text not null,
    agent        text not null,
    tool         text not null,
    approval_id  text not null,
    granted_by   text not null,
    granted_ms   integer not null,
    revoked_ms   integer
);
create unique index standing_grants_now on standing_grants (person_id, agent, tool)
    where revoked_ms is null;
