package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/standin"
)

// SIGHUP reads the plan again. One with mistakes is told and changes nothing.
func TestStandinReadsItsPlanAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no such signal")
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	write := func(plan string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("steps: [{kind: empty}]")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, listens := make(chan string, 100), make(chan struct{}, 1)
	out := watched{seen: func(string) { listens <- struct{}{} }}
	words := watched{seen: func(text string) { said <- text }}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"standin", "--listen", "127.0.0.1:0", "--plan", file}, streams{strings.NewReader(""), &out, &words})
	}()
	<-listens

	hangUp := func(want string) {
		t.Helper()
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGHUP)
		}
		if err != nil {
			t.Fatal(err)
		}
		for {
			select {
			case text := <-said:
				if strings.Contains(text, want) {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("it does not say %q but\n%s", want, words.String())
			}
		}
	}
	write("steps: [{kind: epmty}]")
	hangUp("the plan before stays in force")
	if !strings.Contains(words.String(), `plan.yaml:1: steps.0.kind: unknown kind "epmty"; did you mean "empty"?`) {
		t.Error(words.String())
	}
	write("steps: [{kind: html}]")
	hangUp("plan.yaml is in force; all begins anew")
	interrupt()
	if code := <-ended; code != 0 || strings.Count(words.String(), "0 requests") != 2 {
		t.Errorf("exit code %d\n%s", code, words.String())
	}
}

// The terminal that is gone sends the same signal. Then nobody reads what is said, and the stand-in ends.
func TestStandinEndsWithItsTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	for plan, hold := range map[string]string{"{}": "a good plan", "[]": "a plan with mistakes"} {
		if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
		o := standinOptions{plan: file, speed: 1, given: func(string) bool { return false }}
		server := standin.New(standin.Plan{})
		if o.reload(server, streams{err: closedPipe{}}) {
			t.Errorf("it goes on with %s", hold)
		}
		if !o.reload(server, streams{err: &strings.Builder{}}) {
			t.Errorf("it ends with %s although somebody listens", hold)
		}
	}
}
