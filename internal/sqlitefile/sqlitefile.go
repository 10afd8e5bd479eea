// Package sqlitefile opens SQLite files that several processes of one machine share. What is in them, and whose they are, is
// for its callers to say.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite" // also registers the driver
)

// What [Code] may return, as of https://sqlite.org/rescode.html.
const (
	CodeBusy   = 5  // SQLITE_BUSY
	CodeNotADB = 26 // SQLITE_NOTADB
)

const (
	busyTimeout = 5 * time.Second // how long one process waits for another that writes
	busyPause   = 10 * time.Millisecond
	connections = 4
)

// Open opens the file at path, which must be there, and lets prepare make it ready; only then it gets its journal.
// synchronous is SQLite's setting of that name. While another process prepares it too, SQLite may say busy at once instead
// of waiting, since two that wait for each other would wait for ever: then prepare is called again, for 5 seconds at most.
func Open(path, synchronous string, prepare func(context.Context, *sql.Conn) error) (*sql.DB, error) {
	db, err := sql.Open("sqlite", address(path, synchronous))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	for end := time.Now().Add(busyTimeout); ; {
		err := prepareOnce(context.Background(), db, prepare)
		if err == nil {
			return db, nil
		}
		if Code(err) != CodeBusy || time.Now().After(end) {
			return nil, errors.Join(err, db.Close())
		}
		<-time.After(busyPause)
	}
}

// address is the file with the settings of each connection. What was dropped is overwritten and not only forgotten. The
// journal mode is not among them: it would be written into whatever file this is.
func address(path, synchronous string) string {
	settings := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "synchronous(" + synchronous + ")", "secure_delete(on)"},
	}
	return "file:" + strings.ReplaceAll(url.PathEscape(filepath.ToSlash(path)), "%2F", "/") + "?" + settings.Encode()
}

func prepareOnce(ctx context.Context, db *sql.DB, prepare func(context.Context, *sql.Conn) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := prepare(ctx, conn); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "PRAGMA journal_mode = wal")
	return err
}

// Kind says whose a file is, and makes its tables.
type Kind struct {
	Application, Version int
	Schema               string
	// Made reports whether the tables are there already.
	Made func(context.Context, *sql.Conn) (bool, error)
}

// Create makes the tables and the mark of the file in one transaction, unless another process did so a moment ago. Whoever
// looks at the file meanwhile sees an empty one or a marked one.
func (k *Kind) Create(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	made, err := k.Made(ctx, conn)
	if err == nil && !made {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; %s", k.Application, k.Version, k.Schema))
	}
	if err != nil {
		_, undone := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, undone)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// Code is the primary result code of an error of SQLite, 0 of any other.
func Code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
