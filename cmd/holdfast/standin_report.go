package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"holdfast/standin"
)

// reportOptions are the flags of holdfast standin report.
type reportOptions struct {
	journal string
	json    bool
}

func newStandinReportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [URL]",
		Short: "Judge a client by what it did to the stand-in",
		Long: `Judge a client by what it did to a running stand-in: attempts for each call, waits that were kept, tokens paid twice,
requests that were repeated in vain. Each line passes or warns, with a hint.
Without URL it is ANTHROPIC_BASE_URL, and without that the address that the stand-in listens on by default.
The exit code is 1 when a line warns.`,
		Example: `  holdfast standin report
  holdfast standin report http://127.0.0.1:4010 --json
  holdfast standin report --journal journal.json`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = command(func(ctx context.Context, args []string, s streams) error {
		report, err := o.read(ctx, args, s)
		if err != nil {
			return err
		}
		return o.print(report, s)
	})
	f := cmd.Flags()
	f.StringVar(&o.journal, "journal", "", "read a `file` with what GET /_standin/journal gave; - is standard input")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// read gets the report from a stand-in, or makes it of a journal in a file.
func (o reportOptions) read(ctx context.Context, args []string, s streams) (standin.Report, error) {
	if o.journal == "" {
		return fetchReport(ctx, args)
	}
	if len(args) > 0 {
		return standin.Report{}, badUsage("leave one of them out", "--journal goes with no URL")
	}
	from := s.in
	if o.journal != "-" {
		file, err := os.Open(o.journal)
		if err != nil {
			return standin.Report{}, badUsage("", "cannot read the journal: %w", err)
		}
		defer func() { _ = file.Close() }() // it is only read
		from = file
	}
	journal, err := standin.ReadJournal(from)
	if err != nil {
		return standin.Report{}, badUsage("a journal is what GET /_standin/journal gives", "%w", err)
	}
	return journal.Report(), nil
}

// reportPatience is how long a stand-in may take to tell its report.
const reportPatience = 30 * time.Second

func fetchReport(ctx context.Context, args []string) (report standin.Report, err error) {
	address := "http://" + standinAddress
	if set := os.Getenv("ANTHROPIC_BASE_URL"); set != "" {
		address = set
	}
	if len(args) > 0 {
		address = args[0]
	}
	base, ok := webURL(address)
	if !ok {
		return report, badUsage("it looks like http://127.0.0.1:4010", "%q is not the URL of a stand-in", address)
	}
	base.Path, base.RawQuery = "/_standin/report", ""
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return report, badUsage("it looks like http://127.0.0.1:4010", "%w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return report, badUsage("start one with: holdfast standin", "no stand-in answers: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if res.StatusCode != http.StatusOK || err != nil || report.Lines == nil {
		return report, badUsage("the URL is that of a gateway or an API, perhaps", "what answers at %s is no stand-in", base.Host)
	}
	return report, nil
}

func (o reportOptions) print(report standin.Report, s streams) error {
	var err error
	if o.json {
		err = giveJSON(s.out, report)
	} else {
		err = give(s.out, report.String())
	}
	if err != nil {
		return err
	}
	if report.Verdict() == standin.Warn {
		return &exitError{code: exitFailed}
	}
	return nil
}
