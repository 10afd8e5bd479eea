package once

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"holdfast/internal/sqlitefile"
)

const (
	// application marks a SQLite file as one of effects: "HFon".
	application   = 0x48466f6e
	sqliteVersion = 1
)

// sqliteSchema is that of version 1. What is asked for by more than the key stands in a column of its own; the rest is the record.
const sqliteSchema = `
CREATE TABLE effects (
	key      TEXT    NOT NULL PRIMARY KEY,
	revision TEXT    NOT NULL,
	state    INTEGER NOT NULL, -- 1 started, 2 done, 3 unknown
	expires  INTEGER NOT NULL, -- milliseconds since 1970; 0: never
	record   BLOB    NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;
CREATE INDEX effects_unfinished ON effects (key) WHERE state <> 2;
CREATE INDEX effects_to_expire ON effects (expires) WHERE expires > 0;
`

var (
	errForeign = errors.New("it is not a file of effects")
	errNewer   = errors.New("a newer version of holdfast made it")
)

// sqliteStore is a file that several processes may use at once.
type sqliteStore struct {
	db     *sql.DB
	path   string
	closed atomic.Bool
}

// OpenSQLite opens the file at path, which only its owner can read, and makes it if there is none. Any number of processes of one
// machine may use it at once; it must not lie on a network file system. Every write is on the disk when it returns, so that a
// loss of power forgets no start. The store must be closed, and the error is a [*StoreError]. OpenSQLite never changes a file of
// another program, of a newer version or one that is damaged.
func OpenSQLite(path string) (Store, error) {
	db, err := openSQLite(path)
	if err != nil {
		return nil, openError(path, err)
	}
	return &sqliteStore{db: db, path: path}, nil
}

func openSQLite(path string) (*sql.DB, error) {
	if path == "" || path == ":memory:" { // which would be a file of that name
		return nil, fs.ErrInvalid
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return sqlitefile.Open(path, "full", prepareSQLite)
}

var effectsFile = sqlitefile.Kind{Application: application, Version: sqliteVersion, Schema: sqliteSchema, Made: sqliteMade}

func prepareSQLite(ctx context.Context, conn *sql.Conn) error {
	made, err := sqliteMade(ctx, conn)
	if err == nil && !made {
		err = effectsFile.Create(ctx, conn)
	}
	return err
}

// sqliteMade reports whether the file is one of ours; one that is empty may become it.
func sqliteMade(ctx context.Context, conn *sql.Conn) (bool, error) {
	var app, version, objects int
	row := conn.QueryRowContext(ctx, "SELECT (SELECT * FROM pragma_application_id), (SELECT * FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)")
	switch err := row.Scan(&app, &version, &objects); {
	case sqlitefile.Code(err) == sqlitefile.CodeNotADB:
		return false, errForeign
	case err != nil:
		return false, err
	case app == application && version > sqliteVersion:
		return false, errNewer
	case app == application:
		return true, nil
	case app != 0 || version != 0 || objects > 0:
		return false, errForeign
	}
	return false, nil
}

func openError(path string, err error) error {
	e := &StoreError{Op: "open", Where: path, Err: err, hint: "move the file away, or name another: it is left as it is"}
	switch {
	case errors.Is(err, fs.ErrInvalid):
		e.Where, e.hint = "what is no name of a file", "name a file; once.NewMemory needs none"
	case errors.Is(err, errNewer):
		e.hint = "use that version, or name another file"
	case errors.Is(err, errForeign):
		e.hint = "name another file: this one is left as it is"
	case errors.Is(err, fs.ErrNotExist):
		e.hint = "make the folder first"
	case errors.Is(err, fs.ErrPermission):
		e.hint = "the file and its folder must be writable"
	}
	return e
}

// wrap names the file, and says closed or cancelled where that is the reason.
func (s *sqliteStore) wrap(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err() // SQLite says interrupted
	}
	return &StoreError{Op: op, Where: s.path, Err: err, hint: "see whether the disk is full, and whether the file can be written"}
}

func (s *sqliteStore) Load(ctx context.Context, key string) (Record, bool, error) {
	var revision string
	var data []byte
	err := s.db.QueryRowContext(ctx, "SELECT revision, record FROM effects WHERE key = ?", key).Scan(&revision, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, s.wrap(ctx, "read", err)
	}
	return readRow(key, revision, data)
}

// readRow reads a row of a table. The revision beside the record is the one that counts.
func readRow(key, revision string, data []byte) (Record, bool, error) {
	r := Record{Key: key}
	if err := r.UnmarshalBinary(data); err != nil {
		return Record{Key: key, Revision: revision}, true, err
	}
	if r.Revision != revision {
		return Record{Key: key, Revision: revision}, true, fmt.Errorf("%w: its revision is another", ErrCorrupt)
	}
	return r, true, nil
}

// unreadable is a corrupt record in a list.
func unreadable(r Record) Record {
	return Record{Key: r.Key, Revision: r.Revision, State: Unknown, Why: "its record cannot be read"}
}

func (s *sqliteStore) Swap(ctx context.Context, key, revision string, next *Record) (bool, error) {
	var data []byte
	if next != nil {
		var err error
		if data, err = next.MarshalBinary(); err != nil {
			return false, err
		}
	}
	var result sql.Result
	var err error
	switch {
	case next == nil:
		result, err = s.db.ExecContext(ctx, "DELETE FROM effects WHERE key = ? AND revision = ?", key, revision)
	case revision == "":
		result, err = s.db.ExecContext(ctx, "INSERT INTO effects (key, revision, state, expires, record) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			key, next.Revision, next.State, millis(next.Expires), data)
	default:
		result, err = s.db.ExecContext(ctx, "UPDATE effects SET revision = ?, state = ?, expires = ?, record = ? WHERE key = ? AND revision = ?",
			next.Revision, next.State, millis(next.Expires), data, key, revision)
	}
	if err != nil {
		return false, s.wrap(ctx, "write", err)
	}
	n, err := result.RowsAffected()
	return n == 1, s.wrap(ctx, "write", err)
}

func (s *sqliteStore) Unfinished(ctx context.Context, after string, limit int) ([]Record, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT key, revision, record FROM effects WHERE state <> 2 AND key > ? ORDER BY key LIMIT ?", after, max(limit, 0))
	if err != nil {
		return nil, s.wrap(ctx, "list", err)
	}
	defer func() { _ = rows.Close() }() // an error of reading shows in rows.Err
	var open []Record
	for rows.Next() {
		var key, revision string
		var data []byte
		if err := rows.Scan(&key, &revision, &data); err != nil {
			return nil, s.wrap(ctx, "list", err)
		}
		r, _, err := readRow(key, revision, data)
		if err != nil {
			r = unreadable(r)
		}
		open = append(open, r)
	}
	return open, s.wrap(ctx, "list", rows.Err())
}

func (s *sqliteStore) Expire(ctx context.Context, before time.Time) (int, error) {
	// Only what is done has an expires: no other record can be written with one.
	result, err := s.db.ExecContext(ctx, "DELETE FROM effects WHERE expires > 0 AND expires < ?", millis(before))
	if err != nil {
		return 0, s.wrap(ctx, "expire", err)
	}
	n, err := result.RowsAffected()
	return int(n), s.wrap(ctx, "expire", err)
}

func (s *sqliteStore) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return &StoreError{Op: "close", Where: s.path, Err: err}
	}
	return nil
}
