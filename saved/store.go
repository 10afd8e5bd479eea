package saved

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Options bound a store. The zero value is useful.
type Options struct {
	// MaxAge of an answer. One that is older is not given and is dropped. Default: 720h. Negative: no limit.
	MaxAge time.Duration
	// MaxBytes of all answers together. Beyond it the oldest are dropped. Default: 256 MiB. Negative: no limit.
	MaxBytes int64
	// MaxAnswers is how many answers there may be. Beyond it the oldest are dropped. Default: no limit.
	MaxAnswers int
	// Mark puts a line in front of the text of each answer that is given, "[saved answer of 2026-11-30 14:05 UTC]". Answers
	// without text, and answers whose text is to be JSON, have none. What is kept is never marked.
	Mark bool
}

const (
	defaultMaxAge   = 720 * time.Hour
	defaultMaxBytes = 256 << 20
)

// Stats are the numbers of a store. The counts are of this process, since the store was opened.
type Stats struct {
	// Answers and Bytes that are kept.
	Answers int
	Bytes   int64
	// Hits and Misses of Load.
	Hits, Misses int64
	// Keeps are the answers that were written, or gave way to a fresher one before that. Refused were not good, or answered no question that can be saved. Drops
	// were good and lost: they came faster than they could be written, were larger than the store, or could not be written.
	Keeps, Refused, Drops int64
	// Err is why the file could not be used the last time; nil once a write has worked again.
	Err error
}

// Store keeps answers. Use [Open]. All methods may be called by any number of goroutines, and several processes may use one
// file at once.
type Store struct {
	db      *sql.DB
	path    string
	options Options

	hits, misses          atomic.Int64
	keeps, refused, drops atomic.Int64
	fault                 atomic.Pointer[error]

	queue   chan job
	waiting atomic.Int64 // bytes in the queue
	over    chan struct{}

	closing sync.RWMutex // held to send into the queue
	closed  bool
}

// ErrClosed is the error of a store that was closed.
var ErrClosed = errors.New("saved: the store is closed")

// Open opens the file at path, which only its owner can read, and makes it if there is none. With no path the answers are
// kept in memory. A file of another program, of a newer version or one that is damaged is an [*Error] and is left as it is.
// The store must be closed.
func Open(path string, o Options) (*Store, error) {
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	db, err := openFile(path)
	if err != nil {
		return nil, openError(path, err)
	}
	s := &Store{db: db, path: path, options: o, queue: make(chan job, queueLength), over: make(chan struct{})}
	go s.write()
	return s, nil
}

// Close writes what is still to be written and closes the file.
func (s *Store) Close() error {
	s.closing.Lock()
	if s.closed {
		s.closing.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.closing.Unlock()
	<-s.over
	if err := s.db.Close(); err != nil {
		return &Error{Op: "write", Path: s.path, Err: err}
	}
	return nil
}

// Load returns the answer to a question in the form that the question asks for, and false when there is none, or none that
// is young enough. A file that cannot be read counts as one without an answer, and shows in [Store.Stats].
func (s *Store) Load(ctx context.Context, q *Question) (*Answer, bool) {
	a, err := s.find(ctx, q)
	if err != nil {
		s.misses.Add(1)
		return nil, false
	}
	s.hits.Add(1)
	return a, true
}

func (s *Store) find(ctx context.Context, q *Question) (*Answer, error) {
	key, asked, err := q.read()
	if err != nil {
		return nil, err
	}
	var (
		a    Answer
		at   int64
		body []byte
	)
	row := s.db.QueryRowContext(ctx, "SELECT model, at, body FROM answers WHERE key = ? AND at >= ?", key[:], s.oldest(time.Now()))
	if err := row.Scan(&a.Model, &at, &body); err != nil {
		if !errors.Is(err, sql.ErrNoRows) && ctx.Err() == nil {
			err = s.failed("read", err)
		}
		return nil, err
	}
	a.At = time.UnixMilli(at).UTC()
	answer, err := readWhole(body)
	if err != nil {
		return nil, err
	}
	return asked.give(&a, asked.echo(answer), s.options.Mark), nil
}

// oldest returns the time of the oldest answer that may be given.
func (s *Store) oldest(now time.Time) int64 {
	if s.options.MaxAge < 0 {
		return 0
	}
	return now.Add(-s.options.MaxAge).UnixMilli()
}

// Stats returns the numbers of the store.
func (s *Store) Stats() Stats {
	stats := Stats{
		Hits: s.hits.Load(), Misses: s.misses.Load(),
		Keeps: s.keeps.Load(), Refused: s.refused.Load(), Drops: s.drops.Load(),
	}
	if err := s.db.QueryRow("SELECT answers, bytes FROM totals").Scan(&stats.Answers, &stats.Bytes); err != nil {
		stats.Err = &Error{Op: "read", Path: s.path, Err: err}
	}
	if fault := s.fault.Load(); fault != nil {
		stats.Err = *fault
	}
	return stats
}

// failed notes why the file cannot be used.
func (s *Store) failed(op string, err error) error {
	err = &Error{Op: op, Path: s.path, Err: err, hint: "see whether the disk is full, and whether the file can be written"}
	s.fault.Store(&err)
	return err
}
