-- What a platform says of a person's language, beside the one that they have set themselves.
alter table people add column language_hint text not null default '';
