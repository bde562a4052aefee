-- Texts that a reply offers to send with one tap: a JSON list, empty for none.
alter table outbox add column keyboard text not null default '';
