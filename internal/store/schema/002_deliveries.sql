-- Webhook deliveries. Key and digest tell a repeat from a new one: a delivery
-- and the work that it comes to are one row.
create table deliveries (
  seq         integer primary key autoincrement,
  id          text    not null unique,
  key         text,            -- Idempotency-Key; null = none was sent
  digest      text    not null unique, -- SHA-256 of the body
  event       text    not null,
  project     integer not null,
  outcome     text    not null,
  received_at integer not null,
  revision    integer not null,
  finished_at integer,
  state       text    not null check (json_valid(state))
) strict;

create unique index deliveries_key on deliveries (key) where key is not null;
create index deliveries_pending on deliveries (seq) where finished_at is null;
create index deliveries_outcome on deliveries (outcome, seq);
create index deliveries_project on deliveries (project, received_at);

-- The event that counts in each lane: a trigger's newest.
create table delivery_lanes (
  lane     text    primary key,
  rank     integer not null,
  delivery text    not null
) strict, without rowid;
