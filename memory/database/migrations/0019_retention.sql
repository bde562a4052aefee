-- What is over is found by the moment of its end, a bite at a time, however large the file is.
-- A turn is in its index until its trace was removed, and once more when it is erased: then its row
-- has nothing to say any more.
create index turns_traced on turns (ended_ms)
    where ended_ms is not null and (payload <> '{}' or erased_ms is not null);
create index turns_inbox on turns (inbox_id) where inbox_id is not null;
create index inbox_ended on inbox (ended_ms) where ended_ms is not null;
create index outbox_ended on outbox (ended_ms) where ended_ms is not null;
create index approvals_run on approvals (run_id);
create index messages_created on messages (created_ms);

-- Turns that said nothing, and whose trace went long ago: these go as well.
update turns set erased_ms = ended_ms
where payload = '{}' and ended_ms is not null and erased_ms is null
    and not exists (select 1 from messages where messages.run_id = turns.run_id)
    and not exists (select 1 from steps where steps.run_id = turns.run_id);
