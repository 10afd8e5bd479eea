package once_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"holdfast/internal/testpg"
	"holdfast/once"
	"holdfast/once/storetest"
)

func TestMain(m *testing.M) {
	lifeOf()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		testpg.Stop()
		os.Exit(code)
	}))
}

// memory is a place whose handles are one store.
func memory(testing.TB) storetest.Place {
	s := once.NewMemory()
	return storetest.Place{Open: func(testing.TB) once.Store { return s }}
}

func sqlite(t testing.TB) storetest.Place {
	path := filepath.Join(t.TempDir(), "a b?c#d%25.db")
	return storetest.Place{
		Open: func(t testing.TB) once.Store {
			s, err := once.OpenSQLite(path)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Spoil: func(t testing.TB, key string, data []byte) {
			db, err := sql.Open("sqlite", "file:"+filepath.Dir(path)+"/a%20b%3Fc%23d%2525.db?_pragma=busy_timeout(5000)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if r, err := db.Exec("UPDATE effects SET record = ? WHERE key = ?", data, key); err != nil {
				t.Fatal(err)
			} else if n, _ := r.RowsAffected(); n != 1 {
				t.Fatalf("%d rows of %s", n, key)
			}
		},
	}
}

func postgres(t testing.TB) storetest.Place {
	address := testpg.URL(t)
	return storetest.Place{
		Open: func(t testing.TB) once.Store {
			s, err := once.OpenPostgres(t.Context(), address, once.PostgresOptions{MaxConns: 2})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Spoil: func(t testing.TB, key string, data []byte) {
			conn, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			if tag, err := conn.Exec(t.Context(), "UPDATE holdfast_once SET record = $1 WHERE key = $2", data, key); err != nil || tag.RowsAffected() != 1 {
				t.Fatalf("%v rows, %v", tag, err)
			}
		},
	}
}

func TestMemoryKeepsWhatStoresPromise(t *testing.T)   { storetest.Run(t, memory) }
func TestSQLiteKeepsWhatStoresPromise(t *testing.T)   { storetest.Run(t, sqlite) }
func TestPostgresKeepsWhatStoresPromise(t *testing.T) { storetest.Run(t, postgres) }
