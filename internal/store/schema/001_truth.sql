-- Times are Unix nanoseconds; state is the JSON of the row's Go type and the
-- whole truth, the other columns repeat what queries ask for.

create table operations (
  seq         integer primary key autoincrement, -- the order of asking
  id          text    not null unique,
  fleet       text    not null,
  vm          text    not null,
  kind        text    not null,
  phase       text    not null,
  parallel    integer not null, -- the request's own budget; 0 = the fleet's
  revision    integer not null,
  created_at  integer not null,
  finished_at integer,
  state       text    not null check (json_valid(state))
) strict;

-- One unfinished operation per VM, whatever the code above does.
create unique index operations_unfinished on operations (fleet, vm) where finished_at is null;
create index operations_fleet on operations (fleet, seq);
create index operations_working on operations (fleet, vm) where finished_at is null and phase <> 'queued';
create index operations_queued on operations (fleet, seq) where finished_at is null and phase = 'queued';

create table vms (
  fleet        text    not null,
  vm           text    not null,
  serving      integer not null,
  order_number integer not null default 0, -- only rises
  state        text    not null check (json_valid(state)),
  primary key (fleet, vm)
) strict, without rowid;

-- Host keys trusted at first use. They belong to an instance, never to a name.
create table host_keys (
  seq      integer primary key autoincrement,
  fleet    text not null,
  vm       text not null,
  instance text not null,
  keys     text not null check (json_valid(keys)),
  unique (fleet, vm, instance)
) strict;

create table chores (
  seq         integer primary key autoincrement,
  id          text    not null unique,
  operation   text    not null references operations (id),
  revision    integer not null,
  finished_at integer,
  state       text    not null check (json_valid(state))
) strict;

create index chores_operation on chores (operation);
create index chores_unfinished on chores (seq) where finished_at is null;

-- The event log. Ids only rise: a reader resumes after the last one it saw.
create table facts (
  id        integer primary key autoincrement,
  operation text not null,
  state     text not null check (json_valid(state))
) strict;

create index facts_operation on facts (operation, id);

create trigger facts_are_facts before update on facts begin
  select raise(abort, 'facts are never changed');
end;

create table idempotency_keys (
  key        text primary key,
  digest     text    not null,
  answer     text    not null check (json_valid(answer)),
  created_at integer not null
) strict, without rowid;

create index idempotency_keys_age on idempotency_keys (created_at);
