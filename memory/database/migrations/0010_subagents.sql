-- Subagents: turns that another turn started, and what is listed of them.

-- Seconds that a turn may take, where that is not what all turns may.
alter table turns add column limit_s real;

-- `number` counts the subagents of a lane; `waits` says whether the parent waits for the end.
create table children (
    run_id       text primary key references turns (run_id),
    parent_run   text not null,
    parent_lane  text not null,
    number       integer not null,
    waits        integer not null check (waits in (0, 1)),
    head         text not null,
    unique (parent_lane, number)
) without rowid;
