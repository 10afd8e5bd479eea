// Command holdfast keeps calls to LLM APIs working, and shows how that is done. See holdfast --help.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run carries out one command line and returns its exit code. ctx ends when the user interrupts.
func run(ctx context.Context, args []string, s streams) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	refuseUnknownTopics(root)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	return report(ctx, s.err, root.ExecuteContext(ctx), started)
}
