package saved

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"holdfast/internal/sqlitefile"
)

// Error is a store that cannot be opened, read or written.
type Error struct {
	// Op is what failed: open, read or write.
	Op string
	// Path of the file; empty for a store in memory.
	Path string
	Err  error
	hint string
}

func (e *Error) Error() string {
	where := e.Path
	if where == "" {
		where = "memory"
	}
	return fmt.Sprintf("saved: cannot %s %s: %v", e.Op, where, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint is what the user can do about it; "" when there is nothing to say.
func (e *Error) Hint() string { return e.hint }

// What a file can be besides a store of this version.
var (
	errForeign = errors.New("it is not a file of saved answers")
	errNewer   = errors.New("a newer version of holdfast made it")
)

const (
	// application marks a SQLite file as one of saved answers: "HFsa".
	application = 0x48467361
	version     = 1

	// The places of the two in the header of a SQLite file, which is headerSize long.
	headerSize        = 100
	versionOffset     = 60
	applicationOffset = 68
	magic             = "SQLite format 3\x00"
)

// schema is that of version 1. The totals follow the answers by themselves, so that no process has to count, whoever else
// writes. The body stands last: what is asked without it does not read it.
const schema = `
CREATE TABLE answers (
	id    INTEGER PRIMARY KEY,
	key   BLOB    NOT NULL UNIQUE,
	at    INTEGER NOT NULL, -- milliseconds since 1970
	path  TEXT    NOT NULL,
	model TEXT    NOT NULL,
	size  INTEGER NOT NULL, -- bytes of the row, roughly
	body  BLOB    NOT NULL
) STRICT;
CREATE INDEX answers_by_age ON answers (at);
CREATE TABLE totals (answers INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER answer_kept AFTER INSERT ON answers BEGIN
	UPDATE totals SET answers = answers + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER answer_dropped AFTER DELETE ON answers BEGIN
	UPDATE totals SET answers = answers - 1, bytes = bytes - old.size;
END;
CREATE TRIGGER answer_refreshed AFTER UPDATE OF size ON answers BEGIN
	UPDATE totals SET bytes = bytes - old.size + new.size;
END;
`

// openFile opens the file, or makes it if there is none. A file of something else is left as it is.
func openFile(path string) (*sql.DB, error) {
	if path == "" {
		return openMemory()
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	return sqlitefile.Open(path, "normal", prepare)
}

// openMemory opens a store that nobody else sees. It lives as long as its one connection.
func openMemory() (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if _, err := db.Exec(schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkFile looks at the header of a file before SQLite does, and makes the file, for its owner alone, if there is none.
func checkFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	header := make([]byte, headerSize)
	switch n, err := io.ReadFull(f, header); {
	case n == 0 && err == io.EOF:
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case err != nil, string(header[:len(magic)]) != magic, binary.BigEndian.Uint32(header[applicationOffset:]) != application:
		return errForeign
	}
	if binary.BigEndian.Uint32(header[versionOffset:]) > version {
		return errNewer
	}
	return nil
}

// answerFile has its mark written with its tables and before the file gets its journal: the header that checkFile looks at is that
// of an empty file or of a marked one.
var answerFile = sqlitefile.Kind{Application: application, Version: version, Schema: schema, Made: isMade}

// prepare makes the tables if there are none, or else sees whether what is there can be read.
func prepare(ctx context.Context, conn *sql.Conn) error {
	made, err := isMade(ctx, conn)
	switch {
	case err != nil:
		return err
	case made:
		return check(ctx, conn)
	}
	return answerFile.Create(ctx, conn)
}

func isMade(ctx context.Context, conn *sql.Conn) (bool, error) {
	var found int
	err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found)
	return found != 0, err
}

func check(ctx context.Context, conn *sql.Conn) error {
	var state string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&state); err != nil {
		return err
	}
	if state != "ok" {
		return fmt.Errorf("it is damaged: %s", state)
	}
	return nil
}

// openError says what is wrong with a file, and what to do.
func openError(path string, err error) error {
	e := &Error{Op: "open", Path: path, Err: err}
	switch {
	case errors.Is(err, errNewer):
		e.hint = "use that version, or name another file"
	case errors.Is(err, errForeign):
		e.hint = "name another file: this one is left as it is"
	case errors.Is(err, fs.ErrNotExist):
		e.hint = "make the folder first"
	case errors.Is(err, fs.ErrPermission):
		e.hint = "the file and its folder must be writable"
	default:
		e.hint = "move the file away, or name another: it is left as it is"
	}
	return e
}
