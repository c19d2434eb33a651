-- A call with a key that an earlier payment answered, which has another key or
-- none: its key stands for that payment while it is not freed.

CREATE TABLE shared_keys (
  agent       TEXT    NOT NULL,
  key         TEXT    NOT NULL,
  n           INTEGER NOT NULL REFERENCES payments,
  PRIMARY KEY (agent, key)
) STRICT, WITHOUT ROWID;
