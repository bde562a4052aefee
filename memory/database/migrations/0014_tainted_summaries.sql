-- A summary of what rests on text from outside is such text itself. Of those that are there already
-- it is told by what had been read in their conversation by then.
alter table compactions add column tainted integer not null default 0;
update compactions set tainted = 1 where exists (
    select 1 from messages m
    where m.conversation_id = compactions.conversation_id and m.created_ms <= compactions.made_ms
        and m.kind in ('said', 'result', 'note')
        and (m.body like '%"untrusted":true%' or m.body like '%"forwarded":true%'
            or (m.body like '%"quote":"%' and m.body not like '%"quote":""%')
            or (m.body like '%"content":"%' and m.body not like '%"content":""%'
                and m.kind = 'note')
            or m.body like '%"pictures":[{%')
);
