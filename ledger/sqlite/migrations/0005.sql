-- lanes are the pools of lanes: each has one payment at a time. It is put by the
-- commit that authorizes its payment.

CREATE TABLE lanes (
  place       INTEGER PRIMARY KEY,        -- in the order in which they were opened
  chain       TEXT    NOT NULL,
  account     BLOB    NOT NULL,
  key         BLOB    NOT NULL,           -- the nonce key
  nonce       INTEGER NOT NULL,           -- the one that the payment uses
  n           INTEGER NOT NULL REFERENCES payments -- the last payment on the lane
) STRICT;

CREATE UNIQUE INDEX lanes_key ON lanes (chain, account, key);
CREATE INDEX lanes_pool ON lanes (chain, account);
