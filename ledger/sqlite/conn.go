package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// conn is one connection to the file, with the statements that were prepared
// on it. One goroutine at a time uses it.
type conn struct {
	raw   driver.Conn
	stmts map[string]*stmt

	// failed is the first error since it was last cleared: it makes a step
	// worthless.
	failed error
}

type stmt struct {
	raw  driver.Stmt
	args []driver.NamedValue // reused
	row  []driver.Value      // reused
}

// pragmas are set on every connection before anything is read through it.
// Waiting is done on the lock file; SQLite's own busy handler only covers
// opening, recovery and strangers.
var pragmas = [...]string{
	"PRAGMA busy_timeout = 10000",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA cell_size_check = ON",
	"PRAGMA mmap_size = 0",
	"PRAGMA foreign_keys = ON",
	"PRAGMA temp_store = MEMORY",
}

// connect opens path, which must exist where it names a file.
func connect(path string) (*conn, error) {
	dsn := ":memory:?_defensive=1&_dqs=0"
	if path != "" {
		u := url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: "mode=rw&_defensive=1&_dqs=0"}
		dsn = u.String()
	}
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, stmts: map[string]*stmt{}}
	for _, p := range pragmas {
		if err := c.script(p); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *conn) close() error {
	var err error
	for _, s := range c.stmts {
		err = errors.Join(err, s.raw.Close())
	}
	return errors.Join(err, c.raw.Close())
}

func (c *conn) prepare(sql string, args []driver.Value) (*stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		raw, err := c.raw.(driver.ConnPrepareContext).PrepareContext(context.Background(), sql)
		if err != nil {
			return nil, c.fail(fmt.Errorf("preparing %.60q: %w", sql, err))
		}
		s = &stmt{raw: raw}
		c.stmts[sql] = s
	}
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s, nil
}

// exec runs a prepared statement and tells how many rows it changed and the
// last row that it inserted.
func (c *conn) exec(sql string, args ...driver.Value) (changed, last int64, err error) {
	changed, last, err = c.try(sql, args...)
	return changed, last, c.fail(err)
}

// try is exec whose error the caller judges: fail has not been told of it.
func (c *conn) try(sql string, args ...driver.Value) (changed, last int64, err error) {
	s, err := c.prepare(sql, args)
	if err != nil {
		return 0, 0, err
	}
	r, err := s.raw.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
	clear(s.args)
	if err != nil {
		return 0, 0, err
	}
	changed, _ = r.RowsAffected()
	last, _ = r.LastInsertId()
	return changed, last, nil
}

// query calls row for each row of a prepared statement. The slice is reused;
// the values in it are not. row does not use the connection.
func (c *conn) query(sql string, args []driver.Value, row func([]driver.Value) error) error {
	s, err := c.prepare(sql, args)
	if err != nil {
		return err
	}
	rows, err := s.raw.(driver.StmtQueryContext).QueryContext(context.Background(), s.args)
	clear(s.args)
	if err != nil {
		return c.fail(err)
	}
	if s.row == nil {
		s.row = make([]driver.Value, len(rows.Columns()))
	}
	for {
		if err = rows.Next(s.row); err == nil {
			err = row(s.row)
		}
		if err != nil {
			break
		}
	}
	clear(s.row)
	if err == io.EOF {
		err = nil
	}
	if e := rows.Close(); err == nil {
		err = e
	}
	return c.fail(err)
}

// fail takes note of an error that makes the step worthless.
func (c *conn) fail(err error) error {
	if err != nil && c.failed == nil {
		c.failed = err
	}
	return err
}

// first copies the first row into dest and tells whether there was one.
func (c *conn) first(sql string, args []driver.Value, dest ...any) (bool, error) {
	found := false
	err := c.query(sql, args, func(row []driver.Value) error {
		found = true
		if err := scan(row, dest...); err != nil {
			return err
		}
		return io.EOF
	})
	return found, err
}

// scan copies a row's values. NULL leaves the zero value.
func scan(row []driver.Value, dest ...any) error {
	for i, d := range dest {
		ok := true
		switch d := d.(type) {
		case *int64:
			*d, ok = row[i].(int64)
		case *string:
			*d, ok = row[i].(string)
		case *[]byte:
			*d, ok = row[i].([]byte)
		case *bool:
			var n int64
			n, ok = row[i].(int64)
			*d = n != 0
		case *driver.Value:
			*d = row[i]
		default:
			return fmt.Errorf("sqlite: no column is a %T", d)
		}
		if !ok && row[i] != nil {
			return fmt.Errorf("sqlite: column %d is a %T: %w", i, row[i], ErrDamaged)
		}
	}
	return nil
}
