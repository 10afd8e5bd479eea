package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"holdfast/standin"
)

// recordGrace is how long exchanges may go on when the recording is to end.
const recordGrace = 10 * time.Second

// recordOptions are the flags of holdfast standin record.
type recordOptions struct {
	upstream  string
	out       string
	listen    string
	noPrompts bool
}

func newStandinRecordCommand() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Keep real exchanges with an API on a tape",
		Long: `Pass requests through to a real API and keep every exchange on a tape: a file that holdfast standin --tape plays back,
each read of a reply at its time. What passes is neither changed nor delayed.

A tape holds prompts and answers, so keep it as you keep those; only you can read the file. It holds no keys, cookies or
organization ids. Ctrl-C ends the recording; open exchanges get 10s to end, and a second Ctrl-C ends it at once.`,
		Example: `  holdfast standin record --upstream https://api.anthropic.com --out tape.jsonl
  holdfast standin --tape tape.jsonl`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = command(func(ctx context.Context, _ []string, s streams) error { return o.run(ctx, s) })
	f := cmd.Flags()
	f.StringVar(&o.upstream, "upstream", "", "`URL` of the API, with or without a base path")
	f.StringVar(&o.out, "out", "", "new `file` for the tape")
	f.StringVar(&o.listen, "listen", standinAddress, "TCP `address`; port 0 takes a free one")
	f.BoolVar(&o.noPrompts, "no-prompts", false, "keep digest and size of request bodies in place of the bodies")
	return cmd
}

func (o recordOptions) run(ctx context.Context, s streams) error {
	upstream, err := o.target()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return badUsage("--listen takes another address; 127.0.0.1:0 finds a free port", "cannot listen on %s: %w", o.listen, err)
	}
	defer func() { _ = listener.Close() }() // the server has closed it, if it came so far
	file, err := o.create()
	if err != nil {
		return err
	}
	recorder, err := standin.Record(upstream, file, standin.RecordOptions{NoPrompts: o.noPrompts})
	if err != nil {
		return badUsage("", "%w", errors.Join(err, file.Close()))
	}
	err = give(s.out, exports("http://"+listener.Addr().String()))
	if err == nil {
		say(s.err, "the recorder listens; paste the lines above where the client runs, and end with Ctrl-C")
		err = serveUntil(ctx, listener, recorder)
	}
	lost := errors.Join(recorder.Close(), file.Close())
	say(s.err, "%s on %s", plural(recorder.Kept(), "exchange"), o.out)
	if n := recorder.Missed(); n > 0 {
		say(s.err, "%s did not reach the upstream", plural(n, "request"))
	}
	if lost != nil {
		return &exitError{code: exitFailed, err: lost, ended: true, hint: "what is on the tape can be played; record the rest anew, where there is room"}
	}
	return err
}

// target returns the upstream. Its text may hold a password, so no error shows it.
func (o recordOptions) target() (*url.URL, error) {
	const hint = "--upstream https://api.anthropic.com records the Claude API"
	if o.upstream == "" {
		return nil, badUsage(hint, "--upstream is missing")
	}
	upstream, ok := webURL(o.upstream)
	if !ok {
		return nil, badUsage(hint, "--upstream is no http or https URL")
	}
	return upstream, nil
}

// create makes the file of the tape, for its owner alone. What is there is not overwritten: it cannot be had again.
func (o recordOptions) create() (*os.File, error) {
	if o.out == "" {
		return nil, badUsage("--out tape.jsonl makes one", "--out is missing: the file for the tape")
	}
	file, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, badUsage("--out takes a new file; a recording is not overwritten", "%s exists", o.out)
	case err != nil:
		return nil, badUsage("", "cannot make the tape: %w", err)
	}
	return file, nil
}

// serveUntil serves until ctx ends and the open requests have ended or their grace is over.
func serveUntil(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return failed("", "cannot serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordGrace)
	defer cancel()
	if server.Shutdown(grace) == nil {
		return nil
	}
	if err := server.Close(); err != nil {
		return failed("", "cannot close the recorder: %w", err)
	}
	return nil
}
