-- Who has no time zone of their own is asked about this machine's, once: a row for each who was, or
-- shall be after the answer that is on its way.
create table zone_questions (
    person_id   text primary key,
    lane        text not null,
    zone        text not null,
    state       text not null check (state in ('wanted', 'asked', 'over')),
    outbox_id   integer,
    created_ms  integer not null
) without rowid;

-- Jobs and events whose time was read on a clock that may not be the person's.
create table assumed_times (
    kind        text not null check (kind in ('job', 'event')),
    id          integer not null,
    person_id   text not null,
    zone        text not null,
    primary key (kind, id)
) without rowid;
create index assumed_times_person on assumed_times (person_id);

-- Of jobs that are there already, those for which it is certain: they follow a clock on a wall.
insert into assumed_times (kind, id, person_id, zone)
select 'job', jobs.id, jobs.person_id, json_extract(runs_when, '$.zone')
from jobs join people on people.id = jobs.person_id
where people.time_zone = '' and set_by = 'person' and json_valid(runs_when)
    and case when json_valid(runs_when) then
        typeof(json_extract(runs_when, '$.zone')) = 'text'
        and (json_extract(runs_when, '$.kind') = 'cron'
            or json_extract(runs_when, '$.pattern') is not null)
    end;
