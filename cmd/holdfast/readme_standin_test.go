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

// The test in Go is that of the comment on the package.
func TestReadmeQuotesATestOfTheStandin(t *testing.T) {
	quotes(t, "../../standin/doc.go", regexp.MustCompile("(?m)^//\t"), readmeBlock(t, "go", "server, url"))
}

// The job with a turn and its effect is one that is played through every fault.
func TestReadmeQuotesTheShipments(t *testing.T) {
	quotes(t, "../../e2e/shipment/example_test.go", nil, readmeBlock(t, "go", "// clerk"))
}

// quotes holds a block against the file that it is from, but for what precedes its lines there.
func quotes(t *testing.T, file string, prefix *regexp.Regexp, block []byte) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if prefix != nil {
		source = prefix.ReplaceAll(source, nil)
	}
	if !bytes.Contains(source, block) {
		t.Errorf("%s does not hold\n%s", file, block)
	}
}

func TestReadmeListsTheFaults(t *testing.T) {
	var want, got []string
	for _, f := range standin.Faults() {
		want = append(want, string(f.Kind))
	}
	_, list, _ := strings.Cut(readReadme(t), "`holdfast standin faults cut`: ")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(list, -1) {
		got = append(got, word[1])
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
