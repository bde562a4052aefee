-- How long the delivery of a row has been tried, as the sum of its pauses: time in which the bot was
-- off or asleep does not count. `about` is the lane of the message that this row says was not delivered.
alter table outbox add column tried_ms integer not null default 0;
alter table outbox add column about text not null default '';
