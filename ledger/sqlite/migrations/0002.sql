-- What reconciliation needs. A live slot is found by payments.slot; one that
-- ended is found here, so that it costs nothing while a payment is made.

CREATE TABLE slots (
  slot        BLOB    PRIMARY KEY,        -- hash of the slot
  n           INTEGER NOT NULL REFERENCES payments -- the payment that had it last
) STRICT, WITHOUT ROWID;

-- cursors are how far something outside was read.
CREATE TABLE cursors (
  name        TEXT    PRIMARY KEY,
  at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
