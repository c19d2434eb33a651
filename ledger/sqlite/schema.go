package sqlite

import (
	"context"
	"database/sql/driver"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/ulid"
)

// applicationID stands in the header of every ledger: the letters Cnpy.
const applicationID = 0x436e7079

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations bring a ledger from version i to i+1. They are never changed once
// released.
var migrations = sync.OnceValue(func() []string {
	names, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic("sqlite: " + err.Error())
	}
	var out []string
	for _, n := range names {
		b, err := migrationFiles.ReadFile("migrations/" + n.Name())
		if err != nil {
			panic("sqlite: " + err.Error())
		}
		out = append(out, string(b))
	}
	return out
})

// object is one row of a file's schema.
type object struct{ kind, name, sql string }

func readSchema(c *conn) ([]object, error) {
	var out []object
	err := c.query(`SELECT type, name, sql FROM sqlite_schema ORDER BY type, name`, nil, func(row []driver.Value) error {
		var o object
		err := scan(row, &o.kind, &o.name, &o.sql)
		out = append(out, o)
		return err
	})
	return out, err
}

// wantSchema is the schema that migrations up to a version make.
func wantSchema(version int) ([]object, error) {
	c, err := connect("")
	if err != nil {
		return nil, err
	}
	defer c.close()
	for _, m := range migrations()[:version] {
		if err := c.script(m); err != nil {
			return nil, err
		}
	}
	return readSchema(c)
}

var latestSchema = sync.OnceValues(func() ([]object, error) { return wantSchema(len(migrations())) })

// checkSchema refuses a file with an object that is not ours: a trigger or a
// view could change what a payment does.
func checkSchema(c *conn, path string, version int) error {
	have, err := readSchema(c)
	if err != nil {
		return err
	}
	want, err := latestSchema()
	if version != len(migrations()) {
		want, err = wantSchema(version)
	}
	if err != nil {
		return err
	}
	const fix = "look into it with a copy; if the ledger is yours, restore it from a backup and run canopy ledger ack"
	for _, o := range have {
		if !slices.Contains(want, o) {
			return &FileError{path, fmt.Sprintf("holds the %s %s, which is not part of a ledger", o.kind, o.name), fix, ErrForeign}
		}
	}
	for _, o := range want {
		if !slices.Contains(have, o) {
			return &FileError{path, fmt.Sprintf("lacks the %s %s", o.kind, o.name), fix, ErrForeign}
		}
	}
	return nil
}

// identify tells the version of the schema, 0 for an empty file.
func identify(c *conn, path string) (int, error) {
	app, err := c.pragma("application_id")
	if err != nil {
		return 0, err
	}
	version, err := c.pragma("user_version")
	if err != nil {
		return 0, err
	}
	objects, err := readSchema(c)
	if err != nil {
		return 0, err
	}
	switch {
	case app == 0 && version == 0 && len(objects) == 0:
		return 0, nil
	case app != applicationID || version < 1:
		return 0, &FileError{path, "is a database of another program", "give the path of a Canopy ledger, or of no file yet", ErrForeign}
	case version > int64(len(migrations())):
		return 0, newer(path, version)
	}
	return int(version), nil
}

func newer(path string, version int64) error {
	return &FileError{path, fmt.Sprintf("was made by a newer canopy (schema %d, this one knows %d)", version, len(migrations())), "use that canopy", ErrNewer}
}

// migrate brings the file up from a version, one transaction for each step.
func migrate(c *conn, version int, now time.Time) error {
	for ; version < len(migrations()); version++ {
		if err := c.script("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		err := c.script(migrations()[version])
		if err == nil && version == 0 {
			// A pragma takes no parameters; these are constants.
			if err = c.script("PRAGMA application_id = " + strconv.Itoa(applicationID)); err == nil {
				id := ulid.New(now)
				_, _, err = c.exec(`INSERT INTO meta (one, ledger, created, sum, seen) VALUES (1, ?, ?, ?, ?)`,
					id, now.UnixMicro(), metaSum(id, now.UnixMicro()), time.Time{}.UnixMicro())
			}
		}
		if err == nil && version == 1 {
			err = fillSlots(c)
		}
		if err == nil && version == 6 {
			err = fillPlaces(c)
		}
		if err == nil {
			err = c.script("PRAGMA user_version = " + strconv.Itoa(version+1))
		}
		if err == nil {
			err = c.script("COMMIT")
		}
		if err != nil {
			c.script("ROLLBACK")
			return fmt.Errorf("migrating to schema %d: %w", version+1, err)
		}
	}
	return nil
}

// quickCheck reads the whole file and refuses it where its structure is broken.
func quickCheck(c *conn, path string) error {
	var said []string
	err := c.query(`PRAGMA quick_check(3)`, nil, func(row []driver.Value) error {
		var s string
		err := scan(row, &s)
		said = append(said, s)
		return err
	})
	if err == nil && len(said) == 1 && said[0] == "ok" {
		return nil
	}
	if err != nil {
		said = append(said, err.Error())
	}
	return damaged(path, strings.Join(said, "; "))
}

func damaged(path, how string) error {
	return &FileError{path, "is damaged: " + how, "restore it from a backup and run canopy ledger ack", ErrDamaged}
}

// pragma reads a pragma that is a number.
func (c *conn) pragma(name string) (int64, error) {
	var n int64
	_, err := c.first("PRAGMA "+name, nil, &n)
	return n, err
}

// script runs SQL of our own, of one statement or several.
func (c *conn) script(sql string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}
