-- What lets pipelines in (package access). Times are Unix nanoseconds; rows
-- are forgotten after until.

-- Whom an id_token serves: its first job and Idempotency-Key, and nobody else.
create table id_tokens (
  issuer text    not null,
  id     text    not null, -- the claim jti
  holder text    not null,
  until  integer not null,
  primary key (issuer, id)
) strict, without rowid;

create index id_tokens_until on id_tokens (until);

-- Tokens that read the operations of one request. Only their hashes are here.
create table follow_tokens (
  hash       text    primary key,
  operations text    not null check (json_valid(operations)),
  until      integer not null
) strict, without rowid;

create index follow_tokens_until on follow_tokens (until);

-- The job that asked under a key: another one may ask anew for what failed.
alter table idempotency_keys add column job integer not null default 0;
