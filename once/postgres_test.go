package once_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testpg"
	"holdfast/once"
)

func postgresURL(t testing.TB) string { return testpg.URL(t) }

// ask returns the one value of a query.
func ask[T any](t *testing.T, address, query string, args ...any) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var value T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPostgresTablesHaveTheNameThatIsAskedFor(t *testing.T) {
	t.Parallel()
	address := postgresURL(t)
	schema := ask[string](t, address, "SELECT current_schema()")
	for _, name := range []string{"", "mine", schema + ".theirs", "select", "_1", strings.Repeat("a", 51)} {
		s, err := once.OpenPostgres(t.Context(), address, once.PostgresOptions{Table: name})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		t.Cleanup(func() { s.Close() })
		ledger := once.New(s, once.Options{})
		if _, found, err := ledger.Record(t.Context(), key); found || err != nil {
			t.Errorf("%q knows the record of another table: %v", name, err)
		}
		if err := once.Resolve(t.Context(), ledger, key, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := ask[int](t, address, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"); n != 6 {
		t.Errorf("%d tables", n)
	}
}

func TestPostgresRefusesNamesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", `a"; DROP TABLE users; --`, "a.b.c", ".a", "a.", "1a", "Table", "täble", strings.Repeat("a", 52), "a-b", " "} {
		_, err := once.OpenPostgres(t.Context(), "postgres://nobody@127.0.0.1:1/x", once.PostgresOptions{Table: name})
		var failed *once.StoreError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "name") || failed.Hint() == "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A password is in no error, whatever is wrong with the address.
func TestPostgresErrorsShowNoPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://user:CANARY@127.0.0.1:1/x", "postgres://user:CANARY@127.0.0.1:port/x", "postgres://user:CAN%ARY CANARY@[/x",
		"host=127.0.0.1 port=1 password=CANARY", "host=127.0.0.1 port=x password=CANARY", "password='CANARY", "CANARY", "postgres://127.0.0.1:1/x?password=CANARY&connect_timeout=CANARY",
	} {
		_, err := once.OpenPostgres(t.Context(), address, once.PostgresOptions{})
		var failed *once.StoreError
		if !errors.As(err, &failed) || failed.Hint() == "" {
			t.Errorf("%v", err)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%v", err)
			}
		}
	}
}

// Whoever has turned it off, a write is on the server's disk when it returns.
func TestPostgresWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"off": "on", "on": "on", "remote_write": "remote_write"} {
		address := with(t, postgresURL(t), "synchronous_commit", set)
		s, err := once.OpenPostgres(t.Context(), address, once.PostgresOptions{MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ledger := once.New(s, once.Options{})
		if err := once.Resolve(t.Context(), ledger, key, 1); err != nil {
			t.Fatal(err)
		}
		// A trigger notes the setting under which the next record is written.
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		if _, err := conn.Exec(t.Context(), `CREATE TABLE seen (setting text);
			CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
			CREATE TRIGGER note AFTER INSERT ON holdfast_once FOR EACH ROW EXECUTE FUNCTION note()`); err != nil {
			t.Fatal(err)
		}
		if err := once.Resolve(t.Context(), ledger, once.Key("next"), 1); err != nil {
			t.Fatal(err)
		}
		if got := ask[string](t, address, "SELECT setting FROM seen"); got != want {
			t.Errorf("set to %s, written under %s", set, got)
		}
	}
}

// One who may not make tables can use one that is there.
func TestPostgresNeedsTheRightToMakeTablesOnlyOnce(t *testing.T) {
	t.Parallel()
	address := postgresURL(t)
	schema := ask[string](t, address, "SELECT current_schema()")
	role := "role_" + schema
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	execute := func(statement string) {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Skipf("roles cannot be made here: %v", err)
		}
	}
	execute("CREATE ROLE " + role + " LOGIN PASSWORD 'x'")
	t.Cleanup(func() {
		execute("DROP OWNED BY " + role)
		execute("DROP ROLE " + role)
		conn.Close(context.Background())
	})
	execute("GRANT USAGE ON SCHEMA " + schema + " TO " + role)
	u, _ := url.Parse(address)
	u.User = url.UserPassword(role, "x")
	var failed *once.StoreError
	if _, err := once.OpenPostgres(t.Context(), u.String(), once.PostgresOptions{}); !errors.As(err, &failed) || !strings.Contains(failed.Hint(), "create tables") {
		t.Fatalf("without a table: %v, %v", err, failed)
	}
	s, err := once.OpenPostgres(t.Context(), address, once.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	execute("GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_once TO " + role)
	if s, err = once.OpenPostgres(t.Context(), u.String(), once.PostgresOptions{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := once.Resolve(t.Context(), once.New(s, once.Options{}), key, 1); err != nil {
		t.Error(err)
	}
}

// with sets a parameter of an address.
func with(t testing.TB, address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
