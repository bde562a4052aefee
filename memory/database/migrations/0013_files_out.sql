-- Files on their way out. `file` is a JSON list of the digest of the private copy, the name that
-- people see, the path in the workspace and the size in bytes; empty for a message without one, and
-- once the row has ended. `text` is the caption.
alter table outbox add column file text not null default '';
create index outbox_files on outbox (id) where file <> '';
-- What a platform calls a file that it was given ahead of the message: by it a send in doubt is
-- looked up.
alter table outbox_parts add column ref text not null default '';
