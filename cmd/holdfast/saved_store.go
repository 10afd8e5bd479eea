package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/saved"
)

// storeOptions are the flags of holdfast saved and what is below it.
type storeOptions struct {
	store string
	json  bool
	all   bool
	older time.Duration

	given func(flag string) bool // on the command line
}

func newSavedCommand() *cobra.Command {
	var o storeOptions
	cmd := &cobra.Command{
		Use:   "saved",
		Short: "Look at the answers that a gateway has saved",
		Long: `Look at the answers that a gateway has saved, drop some, or bring some in.
The file is the one that the gateway's configuration has as saved.path. It may be running meanwhile.
It holds answers, and no questions: a question is known by its hash alone.`,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&o.store, "store", "", "`file` with the answers")
	cmd.AddCommand(o.newList(), o.newShow(), o.newDrop(), o.newImport())
	return cmd
}

func (o *storeOptions) newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the saved answers, the newest first",
		Example: `  holdfast saved list --store answers.db`,
		Args:    cobra.NoArgs,
		RunE:    command(func(ctx context.Context, _ []string, s streams) error { return o.list(ctx, s) }),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o *storeOptions) newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Print a saved answer",
		Long:    "Print the text of a saved answer. ID is what list shows, or as much of its beginning as no other has.",
		Example: `  holdfast saved show 3f9b04c1 --store answers.db`,
		Args:    cobra.ExactArgs(1),
		RunE:    command(func(ctx context.Context, args []string, s streams) error { return o.show(ctx, args[0], s) }),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the whole answer as JSON")
	return cmd
}

func (o *storeOptions) newDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop [ID]...",
		Short: "Forget saved answers",
		Long:  "Forget saved answers: those named, those older than a time, or all. What is forgotten is overwritten in the file.",
		Example: `  holdfast saved drop 3f9b04c1 --store answers.db
  holdfast saved drop --older 72h --store answers.db`,
		RunE: command(func(ctx context.Context, args []string, s streams) error { return o.drop(ctx, args, s) }),
	}
	o.given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&o.all, "all", false, "all of them")
	cmd.Flags().DurationVar(&o.older, "older", 0, "those older than a `time`, such as 72h")
	return cmd
}

func (o *storeOptions) newImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Bring answers in, for demos",
		Long: `Bring answers in from a file of JSON lines, - is standard input. A line is

  {"request": {…}, "response": {…}}

with the bodies of a call; a response that was streamed may be the text of its
events. It may also have a "path", which otherwise is told from the response,
"headers" with anthropic-version and anthropic-beta as the client sends them, and
"saved_at". Without a version the answer holds for each that the API has had.`,
		Example: `  holdfast saved import demo.jsonl --store answers.db`,
		Args:    cobra.ExactArgs(1),
		RunE:    command(func(ctx context.Context, args []string, s streams) error { return o.bringIn(ctx, args[0], s) }),
	}
}

// open opens the store without bounds, which are the gateway's affair. Only an import makes a file.
func (o *storeOptions) open(mayMake bool) (*saved.Store, error) {
	if o.store == "" {
		return nil, badUsage("it is the file that the gateway's configuration has as saved.path", "--store is missing")
	}
	if _, err := os.Stat(o.store); !mayMake && errors.Is(err, fs.ErrNotExist) {
		return nil, badUsage("a gateway makes it when its configuration has a saved.path", "there is no %s", o.store)
	}
	store, err := saved.Open(o.store, saved.Options{MaxAge: -1, MaxBytes: -1})
	if err != nil {
		return nil, badUsage(hintOf(err), "%w", err)
	}
	return store, nil
}

// with does something with the store and closes it.
func (o *storeOptions) with(mayMake bool, do func(*saved.Store) error) error {
	store, err := o.open(mayMake)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// savedLine is a line of the list as JSON.
type savedLine struct {
	ID      string    `json:"id"`
	SavedAt time.Time `json:"saved_at"`
	Path    string    `json:"path"`
	Model   string    `json:"model"`
	Bytes   int64     `json:"bytes"`
}

func (o *storeOptions) list(ctx context.Context, s streams) error {
	return o.with(false, func(store *saved.Store) error {
		entries, err := store.List(ctx)
		if err != nil {
			return err
		}
		lines := make([]savedLine, len(entries))
		for i, e := range entries {
			lines[i] = savedLine{ID: e.ID, SavedAt: e.At, Path: e.Path, Model: e.Model, Bytes: e.Bytes}
		}
		if o.json {
			return giveJSON(s.out, lines)
		}
		if len(lines) == 0 {
			say(s.err, "no answers are saved in %s", o.store)
			return nil
		}
		return give(s.out, listText(lines))
	})
}

func listText(lines []savedLine) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tSAVED AT\tMODEL\tBYTES\tPATH") // a builder takes everything
	for _, l := range lines {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", l.ID, l.SavedAt.Format("2006-01-02 15:04 UTC"), printable(l.Model), l.Bytes, l.Path)
	}
	_ = w.Flush()
	return b.String()
}

func (o *storeOptions) show(ctx context.Context, id string, s streams) error {
	return o.with(false, func(store *saved.Store) error {
		answer, text, err := store.Find(ctx, id)
		if err != nil {
			return notFound(err)
		}
		say(s.err, "%s by %s", label(answer.At), printable(answer.Model))
		if !o.json && text != "" {
			return give(s.out, text+"\n")
		}
		return giveJSON(s.out, json.RawMessage(answer.Body)) // an answer without text is shown whole
	})
}

func notFound(err error) error {
	if errors.Is(err, saved.ErrUnknown) || errors.Is(err, saved.ErrAmbiguous) {
		return badUsage("holdfast saved list shows them", "%w", err)
	}
	return err
}

func (o *storeOptions) drop(ctx context.Context, ids []string, s streams) error {
	ways := 0
	for _, way := range []bool{len(ids) > 0, o.all, o.given("older")} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return badUsage("holdfast saved drop ID, or --older 72h, or --all", "what to drop is one of IDs, --older and --all")
	}
	return o.with(false, func(store *saved.Store) error {
		dropped, err := o.dropFrom(ctx, store, ids)
		if err != nil {
			return err
		}
		say(s.err, "dropped %s", answers(dropped))
		return nil
	})
}

func (o *storeOptions) dropFrom(ctx context.Context, store *saved.Store, ids []string) (int, error) {
	switch {
	case o.all:
		return store.DropAll(ctx)
	case len(ids) == 0:
		return store.DropOlder(ctx, time.Now().Add(-o.older))
	}
	for _, id := range ids { // all are there, or none is dropped
		if _, _, err := store.Find(ctx, id); err != nil {
			return 0, notFound(err)
		}
	}
	for i, id := range ids {
		if err := store.Drop(ctx, id); err != nil {
			return i, notFound(err)
		}
	}
	return len(ids), nil
}

func answers(n int) string {
	if n == 1 {
		return "1 answer"
	}
	return fmt.Sprintf("%d answers", n)
}

func (o *storeOptions) bringIn(ctx context.Context, name string, s streams) error {
	text, err := readAll(name, s.in)
	if err != nil {
		return badUsage("", "cannot read the answers: %w", err)
	}
	var (
		calls    []savedCall
		mistakes []error
	)
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		call, err := readSavedCall(line)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("line %d: %w", i+1, err))
		}
		calls = append(calls, call)
	}
	if len(mistakes) > 0 { // all at once, and nothing is imported
		return badUsage(`a line is {"request": {…}, "response": {…}} with a complete good answer`, "%w", errors.Join(mistakes...))
	}
	return o.with(true, func(store *saved.Store) error {
		for _, call := range calls {
			for _, question := range call.questions() {
				if err := store.Put(ctx, question, call.answer()); err != nil {
					return err
				}
			}
		}
		say(s.err, "imported %s", answers(len(calls)))
		return nil
	})
}
