package once

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps records. [NewMemory], [OpenSQLite] and [OpenPostgres] are three; the package storetest holds a further one against
// what [Do] relies on. All methods must be safe for concurrent use, by several processes too if they share the store, and must
// return when the context ends. A write must be durable when it returns: a start that is forgotten is an effect that happens twice.
type Store interface {
	// Load returns the record of a key, and false when there is none. A record that cannot be read is [ErrCorrupt], never a
	// missing one; its Key and Revision are returned with the error, so that it can be replaced.
	Load(ctx context.Context, key string) (Record, bool, error)
	// Swap writes next in the place of the key's record if that still has the revision, and reports whether it did. No
	// revision means that there must be no record, no next that the record is removed. After an error it may or may not have
	// been written.
	Swap(ctx context.Context, key, revision string, next *Record) (bool, error)
	// Unfinished returns up to limit records that are not [Done], with keys above after, in the order of their bytes. A record that
	// cannot be read is among them as [Unknown], with its Key and Revision.
	Unfinished(ctx context.Context, after string, limit int) ([]Record, error)
	// Expire removes the records that are [Done] and have an Expires before the time, and returns how many they were.
	Expire(ctx context.Context, before time.Time) (int, error)
	// Close ends the use of the store. All other methods return [ErrClosed] afterwards; Close may be called again.
	Close() error
}

// ErrClosed is the error of a store that was closed.
var ErrClosed = errors.New("once: the store is closed")

// StoreError is a store that could not be opened, read or written.
type StoreError struct {
	// Op is what failed: open, read, start, record, free, resolve, forget, list or expire. After record the effect did
	// happen, and its value stands beside the error; after free it did not.
	Op string
	// Where names the store: a path, or a table. Empty: not known.
	Where string
	Err   error
	hint  string
}

// Error says what failed, where and why. It never contains a record.
func (e *StoreError) Error() string {
	where := "the store"
	if e.Where != "" {
		where = e.Where
	}
	return fmt.Sprintf("once: cannot %s in %s: %v", e.Op, where, e.Err)
}

// Unwrap returns the cause. It never hides it from errors.Is.
func (e *StoreError) Unwrap() error { return e.Err }

// Hint says what the caller can do about it; "" when there is nothing to say. It never tells
// to repeat an effect.
func (e *StoreError) Hint() string {
	switch {
	case e.hint != "":
		return e.hint
	case errors.Is(e.Err, ErrCorrupt):
		return "find out whether the effect happened, then resolve or forget the key; nothing was repeated"
	case e.Op == "record":
		return "the effect happened; keep its value, and resolve the key when the store works again"
	case e.Op == "free":
		return "nothing happened, but the key counts as doubtful; forget it when the store works again"
	}
	return ""
}
