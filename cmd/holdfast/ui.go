package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// The rules of the command line, which every subcommand keeps:
//
//   - Data goes to stdout, words to stderr, so that a pipe carries the data alone.
//   - A failure is one line "error: …" and, where the user can do something, one line "hint: …".
//   - Colours appear on a terminal only, and never when NO_COLOR is set.
//   - No output holds a key, and no log line holds a question or an answer.
//   - Only main exits. Everything else returns an error, and the exit code travels in it as an *exitError.
const (
	exitFailed      = 1   // the job failed
	exitUsage       = 2   // bad usage or input: nothing was attempted
	exitIncomplete  = 3   // an answer came, but refused or cut at max_tokens
	exitInterrupted = 130 // SIGINT or SIGTERM came before the end
)

// exitError is an error with the exit code that it ends the command with. Without an err nothing is printed: the
// command has said already what is wrong.
type exitError struct {
	code  int
	err   error
	hint  string
	ended bool // an interrupt is how the command ends; the error is not about that
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Hint is what the user can do about it.
func (e *exitError) Hint() string { return e.hint }

// hintOf returns the hint that an error carries, if it carries one.
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// badUsage is bad usage or input; the hint may be empty.
func badUsage(hint, format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// failed is a job that failed; the hint may be empty.
func failed(hint, format string, args ...any) error {
	return &exitError{code: exitFailed, err: fmt.Errorf(format, args...), hint: hint}
}

// report says what went wrong and returns the exit code. started tells that the subcommand ran: an error before that
// is one of usage.
func report(ctx context.Context, stderr io.Writer, err error, started bool) int {
	if err == nil {
		return 0
	}
	var coded *exitError
	isCoded := errors.As(err, &coded)
	if ctx.Err() != nil && !(isCoded && coded.ended) {
		say(stderr, "error: interrupted")
		return exitInterrupted
	}
	code := exitFailed
	if !started {
		code = exitUsage
	}
	if isCoded {
		if code = coded.code; coded.err == nil {
			return code
		}
	}
	// Several mistakes, joined, stand on a line each.
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		say(stderr, "error: %s", strings.TrimRight(line, "\n"))
	}
	if hint := hintOf(err); hint != "" {
		say(stderr, "hint: %s", hint)
	}
	return code
}

// say writes a line of words. Nobody can be told that stderr is closed.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// give writes data. A full disk or a closed pipe is a failure of the job.
func give(w io.Writer, data string) error {
	if _, err := io.WriteString(w, data); err != nil {
		return failed("", "cannot write the output: %w", err)
	}
	return nil
}

// giveJSON writes data as indented JSON.
func giveJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return give(w, string(text)+"\n")
}

// webURL reads an http or https URL with a host.
func webURL(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// paint returns a func that colours text, and one that leaves it alone where w is no terminal or the user wants none.
func paint(w io.Writer) func(colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The colours in use.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)
