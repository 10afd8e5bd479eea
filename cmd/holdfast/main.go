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
	os.Exit(run(untilInterrupted(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// untilInterrupted is a context that ends at the first signal. Whoever sees it ended may send a second one, which ends the
// process at once: signals have their usual effect again before the context ends, not some time after it.
func untilInterrupted() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
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
