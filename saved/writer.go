package saved

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"
)

const (
	queueLength = 256
	queueBytes  = 64 << 20 // of questions and answers that wait to be written; one alone may be larger
	batchLength = 64       // answers written in one transaction
	rowOverhead = 200      // bytes that a row takes besides its texts, roughly
)

// job is an answer to be written, or a mark in the queue.
type job struct {
	question Question
	answer   Answer
	size     int64
	reached  chan struct{} // of a mark: closed when all before it is written
}

// ErrFull is the error of an answer that came faster than the ones before it could be written.
var ErrFull = errors.New("saved: too many answers wait to be written")

// Keep takes an answer as it went to the caller, and returns at once: a goroutine sees whether it is complete and good and
// writes it. An answer that is not is passed over and counted. The error is [ErrQuestion], [ErrFull] or [ErrClosed]; the
// answer is lost then, and counted too. The answer's body must not be changed afterwards; the question may be.
func (s *Store) Keep(_ context.Context, q *Question, a *Answer) error {
	if q.Method != http.MethodPost || kindOf(q.Path) == nil {
		s.refused.Add(1)
		return badQuestion(notOurs)
	}
	size := int64(len(q.Body) + len(a.Body))
	if waiting := s.waiting.Add(size); waiting > queueBytes && waiting > size {
		s.waiting.Add(-size)
		s.drops.Add(1)
		return ErrFull
	}
	j := newJob(q, a)
	j.question.Body = bytes.Clone(q.Body) // whose memory may be used for the next call
	err := s.enqueue(j)
	if err != nil {
		s.waiting.Add(-size)
		s.drops.Add(1)
	}
	return err
}

// newJob copies what a caller may change: of the header, the two fields that count.
func newJob(q *Question, a *Answer) job {
	j := job{question: *q, answer: *a, size: int64(len(q.Body) + len(a.Body))}
	j.question.Header = http.Header{versionHeader: {versionOf(q.Header)}, betaHeader: betasOf(q.Header)}
	if now := time.Now(); j.answer.At.IsZero() || j.answer.At.After(now) {
		j.answer.At = now
	}
	return j
}

func (s *Store) enqueue(j job) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return ErrClosed
	}
	select {
	case s.queue <- j:
		return nil
	default:
		return ErrFull
	}
}

// Flush waits until all that was kept before it is written, or ctx ends.
func (s *Store) Flush(ctx context.Context) error {
	mark := job{reached: make(chan struct{})}
	if open, err := s.send(ctx, mark); err != nil || !open {
		return err // a store that was closed is flushed
	}
	select {
	case <-mark.reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send puts a job into the queue when there is room, and reports whether the store is open.
func (s *Store) send(ctx context.Context, j job) (bool, error) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return false, nil
	}
	select {
	case s.queue <- j:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// write is the goroutine that writes, until the queue is closed.
func (s *Store) write() {
	defer close(s.over)
	for j := range s.queue {
		batch := []job{j}
		for len(batch) < batchLength {
			select {
			case more, open := <-s.queue:
				if open {
					batch = append(batch, more)
					continue
				}
			default:
			}
			break
		}
		s.writeBatch(batch)
		for _, j := range batch {
			s.waiting.Add(-j.size)
			if j.reached != nil {
				close(j.reached)
			}
		}
	}
}

// row is an answer as it is written.
type row struct {
	key   Key
	at    time.Time
	path  string // how that of the question ends; what stands before may be private
	model string
	body  []byte
}

func (r *row) size() int64 { return int64(len(r.body)+len(r.path)+len(r.model)) + rowOverhead }

// writeBatch writes the good answers of a batch, of several to one question the last alone.
func (s *Store) writeBatch(batch []job) {
	var rows []row
	seen := map[Key]bool{}
	for i := len(batch) - 1; i >= 0; i-- {
		j := &batch[i]
		if j.reached != nil {
			continue
		}
		key, asked, err := j.question.read()
		if err == nil && seen[key] {
			s.keeps.Add(1)
			continue
		}
		var r row
		if err == nil {
			r, err = newRow(key, asked, j)
		}
		switch {
		case err != nil:
			s.refused.Add(1)
		case s.tooLarge(r.size()):
			s.drops.Add(1)
		default:
			seen[key] = true
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return
	}
	if err := s.put(context.Background(), rows); err != nil {
		s.drops.Add(int64(len(rows)))
		return
	}
	s.keeps.Add(int64(len(rows)))
}

func newRow(key Key, asked asked, j *job) (row, error) {
	answer, err := asked.kind.read(&j.answer)
	if err != nil {
		return row{}, err
	}
	return row{key: key, at: j.answer.At, path: asked.kind.path, model: j.answer.modelOf(answer), body: silence(answer).raw()}, nil
}

func (s *Store) tooLarge(size int64) bool { return s.options.MaxBytes > 0 && size > s.options.MaxBytes }

// errTooLarge is the error of an answer that is larger than the store may be.
var errTooLarge = errors.New("saved: the answer is larger than the store may be")

// Put keeps an answer and waits until it is written. Unlike [Store.Keep] it says what is wrong: the error is [ErrQuestion],
// [ErrNotGood] or an [*Error].
func (s *Store) Put(ctx context.Context, q *Question, a *Answer) error {
	key, asked, err := q.read()
	if err != nil {
		return err
	}
	j := newJob(q, a)
	r, err := newRow(key, asked, &j)
	if err != nil {
		s.refused.Add(1)
		return err
	}
	if s.tooLarge(r.size()) {
		s.drops.Add(1)
		return errTooLarge
	}
	if err := s.put(ctx, []row{r}); err != nil {
		s.drops.Add(1)
		return err
	}
	s.keeps.Add(1)
	return nil
}

// upsert writes an answer, unless there is a fresher one.
const upsert = `INSERT INTO answers (key, at, path, model, size, body) VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT (key) DO UPDATE SET at = excluded.at, model = excluded.model, size = excluded.size, body = excluded.body
	WHERE excluded.at >= answers.at`

// put writes rows and drops what is too old or too much, all in one transaction.
func (s *Store) put(ctx context.Context, rows []row) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		statement, err := tx.PrepareContext(ctx, upsert)
		if err != nil {
			return err
		}
		defer func() { _ = statement.Close() }()
		for _, r := range rows {
			if _, err := statement.ExecContext(ctx, r.key[:], r.at.UnixMilli(), r.path, r.model, r.size(), r.body); err != nil {
				return err
			}
		}
		return s.evict(ctx, tx)
	})
	if err == nil {
		s.fault.Store(nil)
	}
	return err
}

func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed("write", err)
	}
	if err := do(tx); err != nil {
		return s.failed("write", errors.Join(err, tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return s.failed("write", err)
	}
	return nil
}

// evict drops what is too old, and the oldest of what is too much. It reads the index and the totals, never all answers.
func (s *Store) evict(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM answers WHERE at < ?", s.oldest(time.Now())); err != nil {
		return err
	}
	for {
		var answers, bytes int64
		if err := tx.QueryRowContext(ctx, "SELECT answers, bytes FROM totals").Scan(&answers, &bytes); err != nil {
			return err
		}
		tooMany := s.options.MaxAnswers > 0 && answers > int64(s.options.MaxAnswers)
		if answers == 0 || !tooMany && !s.tooLarge(bytes) {
			return nil
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM answers WHERE id = (SELECT id FROM answers ORDER BY at, id LIMIT 1)"); err != nil {
			return err
		}
	}
}
