package once_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"holdfast/once"
)

func TestOpenSQLiteLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	execute := func(name string, statements ...string) {
		db, err := sql.Open("sqlite", path(name))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(path("text"), bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	execute("tables", "CREATE TABLE mine (x)")
	execute("marked", "PRAGMA application_id = 42", "CREATE TABLE effects (x)")
	execute("versioned", "PRAGMA user_version = 3")
	s, err := once.OpenSQLite(path("newer"))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	execute("newer", "PRAGMA user_version = 2")
	for _, name := range []string{"text", "tables", "marked", "versioned", "newer", "missing/file", ""} {
		full := path(name)
		if name == "" {
			full = ""
		}
		before, _ := os.ReadFile(full)
		_, err := once.OpenSQLite(full)
		var failed *once.StoreError
		if !errors.As(err, &failed) || failed.Op != "open" || failed.Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(full); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestSQLiteFilesBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are another thing there")
	}
	place := filepath.Join(t.TempDir(), "effects.db")
	s, err := once.OpenSQLite(place)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := once.Resolve(t.Context(), once.New(s, once.Options{}), key, "x"); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(place + "*")
	if len(files) < 2 {
		t.Errorf("files %q: it does not write ahead", files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// Stores that come to a new place at once all find it made, by one of them.
func TestManyOpenANewPlaceAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) func() (once.Store, error){
		"SQLite": func(t testing.TB) func() (once.Store, error) {
			path := filepath.Join(t.TempDir(), "effects.db")
			return func() (once.Store, error) { return once.OpenSQLite(path) }
		},
		"Postgres": func(t testing.TB) func() (once.Store, error) {
			address := postgresURL(t)
			return func() (once.Store, error) {
				return once.OpenPostgres(context.Background(), address, once.PostgresOptions{MaxConns: 2})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			again := open(t)
			var all sync.WaitGroup
			for n := range 10 {
				all.Go(func() {
					s, err := again()
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					if err := once.Resolve(context.Background(), once.New(s, once.Options{}), once.Key(fmt.Sprint(n)), n); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			s, err := again()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for n := range 10 {
				if r, err := once.Do(t.Context(), once.New(s, once.Options{}), once.Key(fmt.Sprint(n)), once.Effect[int]{}); err != nil || r.Value != n {
					t.Errorf("%d: %+v, %v", n, r, err)
				}
			}
		})
	}
}
