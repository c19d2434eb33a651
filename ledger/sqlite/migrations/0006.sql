-- gas finds the payments of an account whose transactions count for a day's gas.

CREATE TABLE gas (
  n       INTEGER PRIMARY KEY REFERENCES payments,
  chain   TEXT    NOT NULL,
  account BLOB    NOT NULL,
  until   INTEGER NOT NULL                -- the largest integer while it is open
) STRICT;

CREATE INDEX gas_until ON gas (chain, account, until);
