package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"holdfast/standin"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"holdfast": main, "fetch": fetch})
}

// fetch is what curl is on every machine: fetch URL [FILE] gets the URL, or posts the JSON in the file, and prints
// headers and body.
func fetch() {
	req, err := http.NewRequest(http.MethodGet, os.Args[1], nil)
	if err == nil && len(os.Args) > 2 {
		var body *os.File
		if body, err = os.Open(os.Args[2]); err == nil {
			req, err = http.NewRequest(http.MethodPost, os.Args[1], body)
		}
	}
	if err == nil {
		req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"any"}, "Anthropic-Version": {"2023-06-01"}}
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			_ = res.Header.Write(crless{os.Stdout})
			_, err = io.Copy(os.Stdout, res.Body)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// crless leaves out carriage returns, which would stand before the end of the line that a script looks for.
type crless struct{ io.Writer }

func (w crless) Write(p []byte) (int, error) {
	_, err := w.Writer.Write(bytes.ReplaceAll(p, []byte("\r"), nil))
	return len(p), err
}

// The scripts use the program as people type it. Besides testscript's own commands they have:
//
//	api PLAN             starts a stand-in with a plan file and points ANTHROPIC_BASE_URL at it
//	arrived STATUS…      holds what the stand-in saw, in order, against the statuses
//	code N COMMAND…      runs a command that must end with exit code N
//	free NAME            puts an unused loopback address into the variable
//	ready ADDRESS        waits until something listens there
//	arrives ADDRESS      waits until the stand-in there has a request
//	streaming            waits until a reply of the script's stand-in is under way
//	signal NAME WORD     sends a signal to the command in the background that has the word in it
//	becomes WHAT URL RE  waits until what the URL answers matches
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ANTHROPIC_API_KEY", "good")
			env.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1") // nothing leaves this machine by mistake
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"api": startAPI, "arrived": checkArrived, "code": checkCode, "free": findAddress, "ready": awaitListener,
			"arrives": awaitRequest, "streaming": awaitStream, "becomes": awaitAnswer, "signal": sendSignal,
		},
	})
}

// apis are the stand-ins of the scripts that run, by script.
var apis sync.Map

func startAPI(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: api PLAN")
	}
	plan, err := standin.ParsePlan([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	server := standin.New(plan)
	url, stop, err := server.Start("")
	ts.Check(err)
	ts.Defer(func() { _ = stop() })
	ts.Setenv("ANTHROPIC_BASE_URL", url)
	apis.Store(ts, server)
}

func checkArrived(ts *testscript.TestScript, neg bool, want []string) {
	server, ok := apis.Load(ts)
	if neg || !ok {
		ts.Fatalf("usage: arrived STATUS…, after api")
	}
	if got := statuses(server.(*standin.Server).Journal()); got != strings.Join(want, " ") {
		ts.Fatalf("the stand-in answered %q, want %q", got, strings.Join(want, " "))
	}
}

func checkCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func findAddress(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

func awaitListener(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, "nothing listens on "+args[0], func() bool {
		c, err := net.DialTimeout("tcp", args[0], time.Second)
		return err == nil && c.Close() == nil
	})
}

func awaitRequest(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, "no request on "+args[0], func() bool {
		resp, err := http.Get("http://" + args[0] + "/_standin/journal")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), `"fault":"timeout"`)
	})
}

func awaitStream(ts *testscript.TestScript, _ bool, _ []string) {
	server, ok := apis.Load(ts)
	if !ok {
		ts.Fatalf("usage: streaming, after api")
	}
	await(ts, "no stream has begun", func() bool {
		return slices.ContainsFunc(server.(*standin.Server).Journal(), func(e standin.Exchange) bool {
			return e.Open() && !e.FirstByteAt.IsZero()
		})
	})
}

func awaitAnswer(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: becomes WHAT URL RE")
	}
	want := regexp.MustCompile(args[2])
	await(ts, "it never becomes "+args[0], func() bool {
		resp, err := http.Get(args[1])
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && want.Match(text)
	})
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|HUP WORD")
	}
	for _, cmd := range ts.BackgroundCmds() {
		if slices.Contains(cmd.Args, args[1]) {
			ts.Check(cmd.Process.Signal(signals[args[0]]))
			return
		}
	}
	ts.Fatalf("no command in the background has %q in it", args[1])
}

// await looks at another process, which has a clock of its own, until it is ready.
func await(ts *testscript.TestScript, otherwise string, ready func() bool) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if ready() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	ts.Fatalf("%s", otherwise)
}

// TestHelp holds the help of every subcommand against its golden file. UPDATE=1 writes the files anew.
func TestHelp(t *testing.T) {
	for _, line := range []string{
		"", "ask", "completion", "completion bash", "completion zsh", "completion fish", "completion powershell",
		"demo", "drill", "explain", "key", "key hash", "key new", "serve", "standin", "standin faults", "standin record", "standin report", "standin schema", "validate", "version",
	} {
		t.Run("holdfast "+line, func(t *testing.T) {
			out, words, code := runLine(t, strings.Fields(line+" --help")...)
			if code != 0 || words != "" {
				t.Fatalf("exit code %d, stderr %q", code, words)
			}
			file := "testdata/help/" + strings.ReplaceAll(strings.TrimSpace("holdfast "+line), " ", "-") + ".txt"
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out != string(want) {
				t.Errorf("the help differs from %s; UPDATE=1 go test -run TestHelp ./cmd/holdfast writes it anew:\n%s", file, out)
			}
			for i, l := range strings.Split(out, "\n") {
				if len([]rune(l)) > 120 {
					t.Errorf("line %d has %d columns", i+1, len([]rune(l)))
				}
			}
		})
	}
}

// Every subcommand is in the list above, so that none goes without its golden file.
func TestHelpKnowsEverySubcommand(t *testing.T) {
	var look func(of *cobra.Command)
	look = func(of *cobra.Command) {
		for _, c := range of.Commands() {
			if _, err := os.Stat("testdata/help/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".txt"); err != nil {
				t.Errorf("%s has no golden help: %v", c.CommandPath(), err)
			}
			if c.Short == "" || c.RunE == nil {
				t.Errorf("%s lacks a line of help or returns no error", c.CommandPath())
			}
			look(c)
		}
	}
	look(newRootCommand())
}

// runLine runs a command line inside this process.
func runLine(t *testing.T, args ...string) (out, words string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), args, streams{strings.NewReader(""), &o, &e})
	return o.String(), e.String(), code
}
