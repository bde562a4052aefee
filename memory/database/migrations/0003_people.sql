-- One more address for a person: codes that were given out, one open code for each person.

-- `lane` is where it was asked for. `used_by` is kept until the code is past: whoever sends it
-- again after a crash hears the same answer.
create table link_codes (
    code        text primary key,
    person_id   text not null references people (id),
    address     text not null,
    lane        text not null,
    created_ms  integer not null,
    expires_ms  integer not null,
    used_by     text not null default ''
);
create index link_codes_person on link_codes (person_id);
