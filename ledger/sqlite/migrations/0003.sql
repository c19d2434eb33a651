-- The instant that the clocks of one boot of the machine are held against, with
-- a sum over it; empty for none yet.

ALTER TABLE meta ADD COLUMN anchor BLOB NOT NULL DEFAULT x'';
