package saved

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Entry is what is known of an answer in a store.
type Entry struct {
	// ID is the beginning of its key in hex, as [Store.Find] and [Store.Drop] take it.
	ID string
	// Path is how the path of the question ends, such as /v1/messages.
	Path string
	// Model that answered, and when.
	Model string
	At    time.Time
	// Bytes that the answer takes.
	Bytes int64
}

// idLength is how much of a key is an ID. A shorter beginning finds an answer too, as long as it is of one only.
const idLength = 12

// What can be wrong with an ID. Test with errors.Is.
var (
	// ErrUnknown is the error of an ID that no answer has.
	ErrUnknown = errors.New("saved: no such answer")
	// ErrAmbiguous is the error of an ID that several answers have.
	ErrAmbiguous = errors.New("saved: more than one answer begins so")
)

// List returns what there is, the newest first, those that are too old to be given included.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT key, path, model, at, size FROM answers ORDER BY at DESC, id DESC")
	if err != nil {
		return nil, s.unread(err)
	}
	defer func() { _ = rows.Close() }()
	entries := []Entry{}
	for rows.Next() {
		var (
			e   Entry
			key []byte
			at  int64
		)
		if err := rows.Scan(&key, &e.Path, &e.Model, &at, &e.Bytes); err != nil {
			return nil, s.unread(err)
		}
		e.ID, e.At = hex.EncodeToString(key)[:idLength], time.UnixMilli(at).UTC()
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, s.unread(err)
	}
	return entries, nil
}

// Find returns an answer by its ID, as JSON and without a mark, and its text. What the API repeats of the question in it is
// not there. The error is [ErrUnknown], [ErrAmbiguous] or an [*Error].
func (s *Store) Find(ctx context.Context, id string) (a *Answer, text string, err error) {
	row, err := s.rowOf(ctx, id)
	if err != nil {
		return nil, "", err
	}
	a = &Answer{ContentType: typeJSON}
	var (
		at   int64
		path string
	)
	if err := s.db.QueryRowContext(ctx, "SELECT path, model, at, body FROM answers WHERE id = ?", row).Scan(&path, &a.Model, &at, &a.Body); err != nil {
		if errors.Is(err, sql.ErrNoRows) { // dropped a moment ago
			return nil, "", ErrUnknown
		}
		return nil, "", s.unread(err)
	}
	a.At = time.UnixMilli(at).UTC()
	if answer, isObject := readObject(a.Body); isObject {
		if kind := kindOf(path); kind != nil {
			text = kind.text(answer)
		}
	}
	return a, text, nil
}

// rowOf returns the row that an ID, or the beginning of one, is of.
func (s *Store) rowOf(ctx context.Context, id string) (int64, error) {
	id = strings.ToUpper(id)
	if len(id) < 4 || strings.Trim(id, "0123456789ABCDEF") != "" {
		return 0, fmt.Errorf("%w: %q is not an ID", ErrUnknown, strings.ToLower(id))
	}
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM answers WHERE substr(hex(key), 1, ?) = ? LIMIT 2", len(id), id)
	if err != nil {
		return 0, s.unread(err)
	}
	defer func() { _ = rows.Close() }()
	var found []int64
	for rows.Next() {
		var row int64
		if err := rows.Scan(&row); err != nil {
			return 0, s.unread(err)
		}
		found = append(found, row)
	}
	switch {
	case rows.Err() != nil:
		return 0, s.unread(rows.Err())
	case len(found) == 0:
		return 0, fmt.Errorf("%w: %s", ErrUnknown, strings.ToLower(id))
	case len(found) > 1:
		return 0, fmt.Errorf("%w: %s", ErrAmbiguous, strings.ToLower(id))
	}
	return found[0], nil
}

// Drop forgets an answer by its ID. Its bytes in the file are overwritten.
func (s *Store) Drop(ctx context.Context, id string) error {
	row, err := s.rowOf(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.drop(ctx, "DELETE FROM answers WHERE id = ?", row)
	return err
}

// DropOlder forgets the answers that were made before a time, and returns how many there were.
func (s *Store) DropOlder(ctx context.Context, than time.Time) (int, error) {
	return s.drop(ctx, "DELETE FROM answers WHERE at < ?", than.UnixMilli())
}

// DropAll forgets all answers and returns how many there were.
func (s *Store) DropAll(ctx context.Context) (int, error) {
	return s.drop(ctx, "DELETE FROM answers WHERE true") // with a condition, so that each is counted
}

func (s *Store) drop(ctx context.Context, statement string, args ...any) (int, error) {
	result, err := s.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, s.failed("write", err)
	}
	// Also out of the journal. Where somebody else reads it just now, it stays until the next time.
	if _, err := s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(truncate)"); err != nil {
		return 0, s.failed("write", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (s *Store) unread(err error) error { return &Error{Op: "read", Path: s.path, Err: err} }
