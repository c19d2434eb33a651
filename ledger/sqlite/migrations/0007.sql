-- approvals_open has the approvals that wait, in the order of their ids.
CREATE INDEX approvals_open ON approvals (id) WHERE status = 0;

-- deliveries are what channels have told of approvals so far; one of which all
-- was told is taken out.
CREATE TABLE deliveries (
  channel     TEXT    NOT NULL,
  approval    TEXT    NOT NULL,
  told        INTEGER NOT NULL,           -- 0 nothing, 1 that it was asked for
  attempts    INTEGER NOT NULL,           -- of what is due next
  next        INTEGER NOT NULL,           -- the next attempt
  failure     TEXT    NOT NULL,           -- of the last one
  PRIMARY KEY (channel, approval)
) STRICT, WITHOUT ROWID;

-- approvers are the people who may rule, each with the hash of a credential.
CREATE TABLE approvers (
  folded      TEXT    PRIMARY KEY,        -- the name in small letters
  name        TEXT    NOT NULL,
  secret      BLOB    NOT NULL,           -- zeros where revoked
  created     INTEGER NOT NULL,
  rotated     INTEGER NOT NULL,           -- 0 for never
  revoked     INTEGER NOT NULL            -- 0 for who may rule
) STRICT, WITHOUT ROWID;

-- spending sums what counts of the payments of a day, as ledger.Spending has it.
CREATE TABLE spending (
  day         INTEGER NOT NULL,           -- of UTC, since 1970, in which they were asked for
  agent       TEXT    NOT NULL,
  host        TEXT    NOT NULL,
  dollars     INTEGER NOT NULL,           -- of each payment the whole ones, and
  micros      INTEGER NOT NULL,           -- the rest, so that no sum is too large
  count       INTEGER NOT NULL,
  PRIMARY KEY (day, agent, host)
) STRICT, WITHOUT ROWID;

INSERT INTO spending (day, agent, host, dollars, micros, count)
  SELECT created / 86400000000, agent, host, cost / 1000000, cost % 1000000, 1 FROM payments WHERE counts IS NOT NULL
  ON CONFLICT (day, agent, host) DO UPDATE SET dollars = dollars + excluded.dollars, micros = micros + excluded.micros, count = count + 1;

-- places are where payments that were authorized and not released are found by
-- rules that ask what was paid before: see ledger.Place.
CREATE TABLE places (
  place       BLOB    NOT NULL,
  at          INTEGER NOT NULL,           -- when it was authorized
  n           INTEGER NOT NULL REFERENCES payments,
  PRIMARY KEY (place, at, n)
) STRICT, WITHOUT ROWID;

-- pins are which policy was pinned when; the last one holds. A policy of zeros
-- took the pin out.
CREATE TABLE pins (
  n           INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,
  policy      BLOB    NOT NULL,
  document    TEXT    NOT NULL,
  by          TEXT    NOT NULL,
  reason      TEXT    NOT NULL
) STRICT;

-- budgets are money set aside for pieces of work.
CREATE TABLE budgets (
  n           INTEGER PRIMARY KEY,        -- in the order in which they were made
  id          TEXT    NOT NULL UNIQUE,
  parent      TEXT    NOT NULL,           -- '' for an outermost one
  agent       TEXT    NOT NULL,
  ended       INTEGER,                    -- NULL while it is open
  body        BLOB    NOT NULL            -- the rest, with a sum over all of it
) STRICT;

CREATE INDEX budgets_open ON budgets (parent, agent) WHERE ended IS NULL;

-- works finds authorized payments by their run and by each of their budgets.
CREATE TABLE works (
  work        TEXT    NOT NULL,           -- the id of a run or of a budget
  n           INTEGER NOT NULL REFERENCES payments,
  PRIMARY KEY (work, n)
) STRICT, WITHOUT ROWID;

ALTER TABLE payments ADD COLUMN run TEXT;  -- of an authorized payment, where a cap or a budget counts by it
