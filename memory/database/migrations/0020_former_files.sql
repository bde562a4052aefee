-- What notes and steering files said before a run took lines of them away, for `/undo`: one for each
-- file and run, as it was before the first of its changes. `becomes` is the digest of what the run
-- made of it.
create table former_files (
    id          integer primary key,
    person_id   text not null,
    run_id      text not null,
    path        text not null,
    former      text not null,
    becomes     text not null,
    created_ms  integer not null,
    unique (run_id, path)
);
create index former_files_person on former_files (person_id);
