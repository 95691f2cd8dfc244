-- Webhook deliveries: a delivery and the work that it comes to are one row. The
-- digest tells a repeat from a new one where the keys do not.
create table deliveries (
  seq         integer primary key autoincrement,
  id          text    not null unique,
  digest      text    not null, -- SHA-256 of the body
  event       text    not null,
  project     integer not null,
  outcome     text    not null,
  received_at integer not null,
  revision    integer not null,
  finished_at integer,
  state       text    not null check (json_valid(state))
) strict;

create index deliveries_digest on deliveries (digest, seq);
create index deliveries_pending on deliveries (seq) where finished_at is null;
create index deliveries_outcome on deliveries (outcome, seq);
create index deliveries_project on deliveries (project, received_at);

-- The Idempotency-Keys under which a delivery came: two webhooks that send the
-- same event have a key each.
create table delivery_keys (
  key      text    primary key,
  delivery text    not null references deliveries (id) on delete cascade
) strict, without rowid;

create index delivery_keys_delivery on delivery_keys (delivery);

-- The event that counts in each lane: a trigger's newest.
create table delivery_lanes (
  lane     text    primary key,
  rank     integer not null, -- 0 = none
  moment   integer not null, -- by GitLab's clock, in seconds; 0 = none
  delivery text    not null
) strict, without rowid;
