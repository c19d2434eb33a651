// Package sqlite is the embedded ledger: one SQLite file that several processes
// of one user on one machine may share, and its side files.
//
// Every commit is on the disk before a caller hears of it (WAL with
// synchronous=FULL). Payments that arrive together share one commit and one
// sync; one caller alone pays one sync a commit. Processes take turns by a lock
// file in the order of asking, so that none of them starves.
//
// Beside canopy.db stand canopy.db-wal and canopy.db-shm (SQLite's own),
// canopy.db-lock (taken around each commit) and, for each process that has the
// ledger open, canopy.db-owner- and a ULID. All are made 0600 and refused where
// others could reach them.
package sqlite
