-- The first schema. Instants are microseconds since 1970, money millionths of
-- a dollar. Columns that may be NULL are derived from the payment and are set
-- only while it takes part in what their index is for.

CREATE TABLE meta (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  ledger      TEXT    NOT NULL,           -- ULID of this ledger, for life
  created     INTEGER NOT NULL,
  sum         INTEGER NOT NULL,           -- CRC-32C over both
  seen        INTEGER NOT NULL,           -- the last instant stamped
  acks        INTEGER NOT NULL DEFAULT 0,
  events      INTEGER NOT NULL DEFAULT 0, -- how many there are
  serial      INTEGER NOT NULL DEFAULT 0, -- of the mark in the state directory
  marked      INTEGER NOT NULL DEFAULT 0, -- events when the mark was raised
  checked     INTEGER NOT NULL DEFAULT 0  -- the last full check of the file's structure
) STRICT;

CREATE TABLE payments (
  n           INTEGER PRIMARY KEY,        -- in the order of commits
  id          TEXT    NOT NULL UNIQUE,    -- ULID
  state       INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  created     INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  shared      INTEGER NOT NULL,
  agent       TEXT    NOT NULL,
  host        TEXT    NOT NULL,
  fingerprint BLOB    NOT NULL,
  payee       BLOB,                       -- the primary recipient
  others      BLOB,                       -- further recipients, 20 bytes each
  held        TEXT,                       -- the key, while it is taken
  slot        BLOB,                       -- hash of the slot, while it is live
  owner       TEXT,                       -- while authorized
  answers     INTEGER,                    -- until when it may answer equal calls
  transfer    INTEGER,                    -- when a direct transfer was authorized, unless freed
  counts      INTEGER,                    -- until when it counts; the largest integer while open
  body        BLOB    NOT NULL            -- the rest of the entry, with a sum over all of it; never a signature
) STRICT;

CREATE UNIQUE INDEX payments_held ON payments (agent, held) WHERE held IS NOT NULL;
CREATE UNIQUE INDEX payments_slot ON payments (slot) WHERE slot IS NOT NULL;
CREATE INDEX payments_owner ON payments (owner) WHERE owner IS NOT NULL;
CREATE INDEX payments_answers ON payments (agent, fingerprint, answers) WHERE answers IS NOT NULL;
CREATE INDEX payments_transfer ON payments (agent, fingerprint, transfer) WHERE transfer IS NOT NULL;
CREATE INDEX payments_counts ON payments (counts, id) WHERE counts IS NOT NULL;
CREATE INDEX payments_agent ON payments (agent, counts) WHERE counts IS NOT NULL;
CREATE INDEX payments_host ON payments (agent, host, counts) WHERE counts IS NOT NULL;
CREATE INDEX payments_shared ON payments (host, counts) WHERE counts IS NOT NULL AND shared = 1;
CREATE INDEX payments_payee ON payments (payee, counts) WHERE counts IS NOT NULL;

-- splits finds payments by their further recipients.
CREATE TABLE splits (
  payee       BLOB    NOT NULL,
  n           INTEGER NOT NULL REFERENCES payments,
  PRIMARY KEY (payee, n)
) STRICT, WITHOUT ROWID;

-- events are each payment's own hash chain.
CREATE TABLE events (
  n           INTEGER NOT NULL REFERENCES payments,
  seq         INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  was         INTEGER NOT NULL,
  became      INTEGER NOT NULL,
  by          INTEGER NOT NULL,
  data        BLOB    NOT NULL,
  hash        BLOB    NOT NULL,
  PRIMARY KEY (n, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
  n           INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  agent       TEXT    NOT NULL,
  status      INTEGER NOT NULL,
  expires     INTEGER NOT NULL,
  body        BLOB    NOT NULL
) STRICT;

CREATE INDEX approvals_pending ON approvals (agent, expires) WHERE status = 0;

-- marks are how far the counters of a window have aged.
CREATE TABLE marks (
  win         BLOB    PRIMARY KEY,
  until       INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  next        INTEGER NOT NULL,
  ends        INTEGER NOT NULL,
  kinds       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- counters are what caps are checked by.
CREATE TABLE counters (
  win         BLOB    NOT NULL,
  scope       BLOB    NOT NULL,
  usd         INTEGER NOT NULL,
  count       INTEGER NOT NULL,
  PRIMARY KEY (win, scope)
) STRICT, WITHOUT ROWID;

-- freezes are what is frozen now; agent '' is everybody.
CREATE TABLE freezes (
  agent       TEXT    PRIMARY KEY,
  reason      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- acts are what people did to the ledger as a whole.
CREATE TABLE acts (
  n           INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,
  kind        TEXT    NOT NULL,           -- freeze, unfreeze, ack
  agent       TEXT    NOT NULL,
  by          TEXT    NOT NULL,
  reason      TEXT    NOT NULL
) STRICT;
