package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// holdfastSaved runs a command line under holdfast saved and returns what it prints.
func holdfastSaved(t *testing.T, args ...string) (code int, out, words string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"saved"}, args...), streams{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func TestSavedShowsAndDropsByID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, lines := filepath.Join(dir, "answers.db"), filepath.Join(dir, "demo.jsonl")
	const calls = `{"headers":{"anthropic-version":"v"},"request":{"a":1},"response":{"type":"message","model":"m","content":[{"type":"text","text":"Be"},{"type":"text","text":"cause."}],"stop_reason":"end_turn"},"saved_at":"2026-03-14T15:09:00Z"}
{"headers":{"anthropic-version":"v"},"request":{"a":2},"response":{"type":"message","model":"m","content":[{"type":"tool_use","id":"t","name":"n","input":{"b":1.50}}],"stop_reason":"tool_use"},"saved_at":"2026-03-14T15:10:00Z"}`
	if err := os.WriteFile(lines, []byte(calls), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, words := holdfastSaved(t, "import", lines, "--store", store); code != 0 {
		t.Fatal(words)
	}
	_, out, _ := holdfastSaved(t, "list", "--json", "--store", store)
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 {
		t.Fatalf("%v in %s", err, out)
	}
	code, out, words := holdfastSaved(t, "show", list[1].ID[:6], "--store", store)
	if code != 0 || out != "Because.\n" || words != "[saved answer of 2026-03-14 15:09 UTC] by m\n" {
		t.Errorf("show: %d, %q, %q", code, out, words)
	}
	for _, args := range [][]string{{"show", list[0].ID}, {"show", list[1].ID, "--json"}} {
		if code, out, _ := holdfastSaved(t, append(args, "--store", store)...); code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, `"stop_reason"`) {
			t.Errorf("%v: %d, %q", args, code, out)
		}
	}
	if code, _, words := holdfastSaved(t, "drop", list[0].ID, "ffffffffffff", "--store", store); code != exitUsage || !strings.Contains(words, "no such answer") {
		t.Errorf("an ID that is not there: %d, %q", code, words)
	}
	if code, _, words := holdfastSaved(t, "drop", list[0].ID, list[1].ID, "--store", store); code != 0 || words != "dropped 2 answers\n" {
		t.Errorf("drop: %d, %q", code, words)
	}
}
