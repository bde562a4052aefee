-- Which model answers at an address, where that is not the usual one.
create table chosen_models (
    lane       text primary key,
    model      text not null,
    person_id  text not null,
    set_ms     integer not null
) without rowid;
