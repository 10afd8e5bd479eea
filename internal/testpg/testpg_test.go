package testpg_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testpg"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testpg.Stop()
	os.Exit(code)
}

func TestEachTestHasASchemaOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		address := testpg.URL(t)
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var schema string
		if err := conn.QueryRow(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil || seen[schema] {
			t.Errorf("schema %q, %v", schema, err)
		}
		seen[schema] = true
		if _, err := conn.Exec(t.Context(), "CREATE TABLE t (n int)"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
