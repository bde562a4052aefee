-- Buttons under the last part of a message: a JSON list of rows of [label, data, style]; empty for
-- none.
alter table outbox add column buttons text not null default '';
-- What a message is to read instead, without buttons; null once it does. Of a row that has ended,
-- `attempts` and `not_before_ms` are those of this edit.
alter table outbox add column revision text;
create index outbox_revised on outbox (id) where revision is not null;
create index outbox_buttons on outbox (id) where buttons <> '';
