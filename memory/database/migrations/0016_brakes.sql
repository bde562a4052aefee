-- Each agent has a brake of its own: why which of them stands still, or since when it no longer does.
create table new_pauses (
    kind      text not null check (kind in ('brake', 'hand')),
    agent     text not null default 'default',
    is_on     integer not null check (is_on in (0, 1)),
    since_ms  integer not null,
    words     text not null,
    primary key (kind, agent)
) without rowid;
insert into new_pauses (kind, is_on, since_ms, words) select kind, is_on, since_ms, words from pauses;
drop table pauses;
alter table new_pauses rename to pauses;
