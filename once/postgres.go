package once

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgresOptions say where in a database the records are. The zero value is useful.
type PostgresOptions struct {
	// Table is the table's name, with or without a schema before it: lower-case letters, digits and underscores. Stores with
	// different tables know nothing of each other. Default: holdfast_once.
	Table string
	// MaxConns is how many connections are opened at most. Default: that of pgx, 4 or the number of processors, or
	// pool_max_conns in the address. Negative: the same.
	MaxConns int
}

const defaultTable = "holdfast_once"

var (
	tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,50}(\.[a-z_][a-z0-9_]{0,50})?$`) // longer, and the names of its indexes would be cut
	errTable  = errors.New("the table's name has other characters than a-z, 0-9 and _, begins with a digit, or is too long")
)

// postgresStore is a table that several processes and machines may use at once.
type postgresStore struct {
	pool   *pgxpool.Pool
	table  string // as it stands in SQL
	name   string // without its schema
	where  string
	closed atomic.Bool
}

// OpenPostgres opens a table in the database at address, a URL or a list of settings as pgx takes them, and makes it if there is
// none, which needs the right to. Any number of processes and machines may use it at once. A write is as durable as the server's
// settings make it; where they turn synchronous_commit off, it is turned on for these connections. The store must be closed, and the error
// is a [*StoreError], which never shows a password. OpenPostgres never changes a table that exists.
func OpenPostgres(ctx context.Context, address string, o PostgresOptions) (Store, error) {
	if o.Table == "" {
		o.Table = defaultTable
	}
	if !tableName.MatchString(o.Table) {
		return nil, &StoreError{Op: "open", Where: "Postgres", Err: errTable, hint: "name the table as in the options' documentation"}
	}
	parts := strings.Split(o.Table, ".")
	s := &postgresStore{table: pgx.Identifier(parts).Sanitize(), name: parts[len(parts)-1], where: "table " + o.Table}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// pgx's error quotes the address, in which a password may stand where it does not look for one.
		return nil, &StoreError{Op: "open", Where: s.where, Err: errors.New("the address cannot be read"), hint: "it has the form postgres://user:password@host:5432/database"}
	}
	if o.MaxConns > 0 {
		config.MaxConns = int32(min(o.MaxConns, 1<<16))
	}
	config.AfterConnect = durable
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		if s.pool != nil {
			s.pool.Close()
		}
		return nil, s.openError(err)
	}
	return s, nil
}

// durable makes a connection wait for the disk, where somebody has turned that off.
func durable(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err
}

func (s *postgresStore) openError(err error) error {
	e := &StoreError{Op: "open", Where: s.where, Err: err, hint: "see whether the server runs, and whether the address, the user and the password are right"}
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said) && said.Code == "42501": // insufficient_privilege
		e.hint = "let the user create tables in the schema once, or make the table as one who may"
	case errors.As(err, &said) && said.Code == "3F000": // invalid_schema_name
		e.hint = "make the schema first"
	}
	return e
}

// prepare makes the table if there is none. Processes that come at the same time wait for each other: CREATE TABLE IF NOT EXISTS
// alone fails when two run at once. Under the lock it is the only question that is surely answered with what others have made
// meanwhile; to_regclass may answer from a cache.
func (s *postgresStore) prepare(ctx context.Context) error {
	var made bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.table).Scan(&made); err != nil || made {
		return err // who may not make tables can use one that is there
	}
	lock := fnv.New64a()
	lock.Write([]byte("holdfast/once " + s.table))
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(lock.Sum64())); err != nil { //nolint:gosec // any 64 bits
			return err
		}
		_, err := tx.Exec(ctx, s.schema())
		return err
	})
}

// schema orders keys by their bytes, whatever the language of the database.
func (s *postgresStore) schema() string {
	return fmt.Sprintf(`
CREATE TABLE IF NOT EXISTS %[1]s (
	key      text COLLATE "C" NOT NULL PRIMARY KEY,
	revision text COLLATE "C" NOT NULL,
	state    smallint NOT NULL, -- 1 started, 2 done, 3 unknown
	expires  bigint   NOT NULL, -- milliseconds since 1970; 0: never
	record   bytea    NOT NULL  -- JSON; convert_from(record, 'UTF8') shows it
);
CREATE INDEX IF NOT EXISTS %[2]s_unfinished ON %[1]s (key) WHERE state <> 2;
CREATE INDEX IF NOT EXISTS %[2]s_expires ON %[1]s (expires) WHERE expires > 0;
`, s.table, s.name)
}

// wrap names the table, and says closed or cancelled where that is the reason.
func (s *postgresStore) wrap(ctx context.Context, op string, err error) error {
	var said *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &said):
		err = fmt.Errorf("%s (SQLSTATE %s)", said.Message, said.Code) //nolint:errorlint // its details may quote the row
	}
	return &StoreError{Op: op, Where: s.where, Err: err, hint: "see whether the server runs, and whether the table is as this version makes it"}
}

func (s *postgresStore) Load(ctx context.Context, key string) (Record, bool, error) {
	var revision string
	var data []byte
	err := s.pool.QueryRow(ctx, "SELECT revision, record FROM "+s.table+" WHERE key = $1", key).Scan(&revision, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, s.wrap(ctx, "read", err)
	}
	return readRow(key, revision, data)
}

func (s *postgresStore) Swap(ctx context.Context, key, revision string, next *Record) (bool, error) {
	var data []byte
	if next != nil {
		var err error
		if data, err = next.MarshalBinary(); err != nil {
			return false, err
		}
	}
	var tag pgconn.CommandTag
	var err error
	switch {
	case next == nil:
		tag, err = s.pool.Exec(ctx, "DELETE FROM "+s.table+" WHERE key = $1 AND revision = $2", key, revision)
	case revision == "":
		tag, err = s.pool.Exec(ctx, "INSERT INTO "+s.table+" (key, revision, state, expires, record) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
			key, next.Revision, int16(next.State), millis(next.Expires), data)
	default:
		tag, err = s.pool.Exec(ctx, "UPDATE "+s.table+" SET revision = $1, state = $2, expires = $3, record = $4 WHERE key = $5 AND revision = $6",
			next.Revision, int16(next.State), millis(next.Expires), data, key, revision)
	}
	return err == nil && tag.RowsAffected() == 1, s.wrap(ctx, "write", err)
}

func (s *postgresStore) Unfinished(ctx context.Context, after string, limit int) ([]Record, error) {
	rows, err := s.pool.Query(ctx, "SELECT key, revision, record FROM "+s.table+" WHERE state <> 2 AND key > $1 ORDER BY key LIMIT $2", after, max(limit, 0))
	if err != nil {
		return nil, s.wrap(ctx, "list", err)
	}
	open, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record, error) {
		var key, revision string
		var data []byte
		if err := row.Scan(&key, &revision, &data); err != nil {
			return Record{}, err
		}
		r, _, corrupt := readRow(key, revision, data)
		if corrupt != nil {
			r = unreadable(r)
		}
		return r, nil
	})
	return open, s.wrap(ctx, "list", err)
}

func (s *postgresStore) Expire(ctx context.Context, before time.Time) (int, error) {
	// Only what is done has an expires: no other record can be written with one.
	tag, err := s.pool.Exec(ctx, "DELETE FROM "+s.table+" WHERE expires > 0 AND expires < $1", millis(before))
	return int(tag.RowsAffected()), s.wrap(ctx, "expire", err)
}

func (s *postgresStore) Close() error {
	if !s.closed.Swap(true) {
		s.pool.Close()
	}
	return nil
}
