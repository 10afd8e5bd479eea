package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/testnet"
	"holdfast/standin"
)

// What the README says about the stand-in, held against it.

// The test in Go is one that runs.
func TestReadmeQuotesATestOfTheStandin(t *testing.T) {
	source, err := os.ReadFile("../../standin/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if quote := readmeBlock(t, "go", "func Test"); !bytes.Contains(source, quote) {
		t.Errorf("standin/example_test.go does not hold\n%s", quote)
	}
}

var faultRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$")

func TestReadmeListsTheFaults(t *testing.T) {
	var want, got []string
	for _, f := range standin.Faults() {
		want = append(want, fmt.Sprintf("%s: %s", f.Kind, f.What))
	}
	for _, row := range faultRow.FindAllStringSubmatch(readReadme(t), -1) {
		got = append(got, row[1]+": "+row[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults, want -, README +:\n%s", diff)
	}
}

// The report is that of the Go SDK on the plan of the README, which it meets with four streams.
func TestReadmeReportComesOut(t *testing.T) {
	plan, err := standin.ParsePlan(readmeBlock(t, "yaml", "seed:"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, n := standin.New(plan), testnet.New()
		url := n.Serve(t, "api.test:80", s).URL
		t.Cleanup(s.Close)
		client := anthropic.NewClient(option.WithBaseURL(url), option.WithHTTPClient(n.Client()), option.WithAPIKey("any"))
		for i := range 4 {
			stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
				Model: "claude-sonnet-5-5", MaxTokens: 100,
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(fmt.Sprint("Why is the sky blue? ", i)))},
			})
			for stream.Next() {
			}
			if broken := i == 2; (stream.Err() != nil) != broken {
				t.Errorf("stream %d: %v", i, stream.Err())
			}
			_ = stream.Close()
		}
		synctest.Wait()
		report := s.Report().String()
		for line := range strings.Lines(string(readmeBlock(t, "text", "PASS"))) {
			if !strings.Contains(report, line) {
				t.Errorf("the report has no line %q:\n%s", line, report)
			}
		}
	})
}
