-- Which tools of MCP servers the owner agreed to: exactly the content that `digest` names.

-- Servers that were seen: what they list from then on has to be approved.
create table mcp_servers (
    name     text primary key,
    seen_ms  integer not null
);

create table mcp_tools (
    server       text not null references mcp_servers (name) on delete cascade,
    tool         text not null,
    digest       text not null,
    description  text not null,
    approved_ms  integer not null,
    primary key (server, tool)
);
