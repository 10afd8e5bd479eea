package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// answer is what the stand-in says when nothing else is asked of it.
const answer = "This is the stand-in speaking: the call went through and here is its answer."

// nodeCase is one scenario: what the stand-in plays, what a Node client does, and what both have seen of it.
type nodeCase struct {
	name string
	plan standin.Plan
	ask  nodeAsk
	want nodeSaw
	// attempts is the number of requests when all are attempts at one: alike, and counted by the client. 0 leaves it to check.
	attempts int
	// gaps are the shortest times between the attempts. The longest are slack longer, for the machine may be busy.
	gaps []time.Duration
	// lossy lets the client have read less than the text that is wanted: a reset discards what is on its way.
	lossy bool
	// closed is who ended the last exchange.
	closed standin.Closer
	check  func(t *testing.T, saw nodeSaw, s *standin.Server)
}

// slack is how much later than asked a busy machine may be.
const slack = 20 * time.Second

// nodeAsk is a scenario as the Node side reads it.
type nodeAsk struct {
	Name       string `json:"name"`
	BaseURL    string `json:"base_url"`
	Call       string `json:"call"`
	Prompt     string `json:"prompt"`
	System     string `json:"system,omitempty"`
	Model      string `json:"model,omitempty"`
	APIKey     string `json:"api_key,omitempty"`
	MaxTokens  int    `json:"max_tokens,omitempty"`
	MaxRetries *int   `json:"max_retries,omitempty"` // nil: the SDK's default
	TimeoutMS  int    `json:"timeout_ms,omitempty"`  // of an attempt; 0: the SDK's default
	LeaveMS    int    `json:"leave_ms,omitempty"`    // when the caller gives up; 0: never
	// LeaveAfterText counts LeaveMS from the first text of a stream, not from the call.
	LeaveAfterText bool     `json:"leave_after_text,omitempty"`
	Stream         bool     `json:"stream,omitempty"`
	WantUsage      bool     `json:"want_usage,omitempty"`
	Display        string   `json:"display,omitempty"`
	IDs            []string `json:"ids,omitempty"`
}

// nodeSaw is what the Node side reports.
type nodeSaw struct {
	OK         bool   `json:"ok"`
	Class      string `json:"class"`
	Status     int    `json:"status"`
	Type       string `json:"type"`
	Code       string `json:"code"`
	Text       string `json:"text"`
	StopReason string `json:"stop_reason"`
	Category   string `json:"category"`

	nodeDetail
}

// nodeDetail is what only some scenarios look at.
type nodeDetail struct {
	Name      string                      `json:"name"`
	Message   string                      `json:"message"`
	RequestID string                      `json:"request_id"`
	ElapsedMS int                         `json:"elapsed_ms"`
	Usage     struct{ Input, Output int } `json:"usage"`
	Model     string                      `json:"model"`
	Streamed  string                      `json:"streamed"`
	Thinking  string                      `json:"thinking"`
	Signature string                      `json:"signature"`
	Blocks    []string                    `json:"blocks"`
	Events    []string                    `json:"events"`
	FirstStop string                      `json:"first_stop"`
	Rounds    int                         `json:"rounds"`
	Tool      string                      `json:"tool"`
	ToolID    string                      `json:"tool_id"`
	Input     map[string]any              `json:"input"`
	Count     int                         `json:"count"`
	Early     int                         `json:"early"`
	IDs       []string                    `json:"ids"`
	Left      []string                    `json:"left"`
	Results   map[string]string           `json:"results"`
	Texts     map[string]string           `json:"texts"`
	Counts    map[string]int              `json:"counts"`
}

// good is a complete answer.
func good(text string) nodeSaw { return nodeSaw{OK: true, Text: text, StopReason: "end_turn"} }

// failed is an error of the SDK.
func failed(class string, status int, typ string) nodeSaw {
	return nodeSaw{Class: class, Status: status, Type: typ}
}

// needNode skips the test, or fails it where nothing may be skipped, when the Node clients are not installed.
func needNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join("node_modules", "openai"))
	}
	switch {
	case err == nil:
		return node
	case os.Getenv("HOLDFAST_REQUIRE_SERVICES") != "":
		t.Fatalf("the Node clients are missing: %v. hint: install Node 18 or newer and run npm ci --prefix e2e", err)
	}
	t.Skipf("the Node clients are missing: %v. hint: install Node 18 or newer and run npm ci --prefix e2e", err)
	return ""
}

// playNode runs all cases in one process of the script, each against a stand-in of its own, and holds them to what they want.
func playNode(t *testing.T, script string, cases []nodeCase) {
	node := needNode(t)
	servers := map[string]*standin.Server{}
	asks := make([]nodeAsk, len(cases))
	for i, c := range cases {
		if servers[c.name] != nil {
			t.Fatalf("two cases have the name %q", c.name)
		}
		if err := c.plan.Validate(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		s := standin.New(c.plan)
		url, stop, err := s.Start("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stop() })
		servers[c.name] = s
		asks[i] = c.ask
		asks[i].Name, asks[i].BaseURL = c.name, url
		if asks[i].Prompt == "" {
			asks[i].Prompt = "hello"
		}
	}
	saw := runNode(t, node, script, asks)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, reported := saw[c.name]
			if !reported {
				t.Fatal("the client reported nothing")
			}
			c.judge(t, got, servers[c.name])
		})
	}
}

// runNode gives the scenarios to the script and reads what it saw, by name.
func runNode(t *testing.T, node, script string, asks []nodeAsk) map[string]nodeSaw {
	t.Helper()
	list, err := json.Marshal(asks)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join("node", script))
	// Nothing of the caller's environment, so that neither his settings nor his keys get into the test.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.Stdin = bytes.NewReader(list)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, stderr.String())
	}
	saw := map[string]nodeSaw{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one nodeSaw
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s said %q: %v", script, lines.Text(), err)
		}
		saw[one.Name] = one
	}
	if stderr.Len() > 0 {
		t.Logf("%s also said:\n%s", script, stderr.String())
	}
	return saw
}

// judge holds what both sides have seen to what the case wants.
func (c nodeCase) judge(t *testing.T, saw nodeSaw, s *standin.Server) {
	t.Helper()
	short := saw
	short.nodeDetail = nodeDetail{}
	if c.lossy && strings.HasPrefix(c.want.Text, saw.Text) {
		short.Text = c.want.Text
	}
	if diff := cmp.Diff(c.want, short, cmp.AllowUnexported(nodeSaw{})); diff != "" {
		t.Errorf("the client saw (-want +got):\n%s%s", diff, saw.Message)
	}
	j := s.Journal()
	if c.attempts > 0 {
		if len(j) != c.attempts {
			t.Errorf("%d attempts, want %d", len(j), c.attempts)
		}
		for i, e := range j {
			if e.SDKRetry != i || e.Digest != j[0].Digest || e.Path != j[0].Path {
				t.Errorf("attempt %d: counted %d by the client, same body %v, path %s", i+1, e.SDKRetry, e.Digest == j[0].Digest, e.Path)
			}
		}
		if len(j) > 0 && j[len(j)-1].ClosedBy != c.closed {
			t.Errorf("the last exchange was ended by %q, want %q", j[len(j)-1].ClosedBy, c.closed)
		}
	}
	if c.gaps != nil {
		c.judgeGaps(t, j)
	}
	if saw.RequestID != "" && (len(j) == 0 || saw.RequestID != j[len(j)-1].RequestID) {
		t.Errorf("the client read the request id %q, which is not that of the last exchange", saw.RequestID)
	}
	if c.check != nil {
		c.check(t, saw, s)
	}
}

func (c nodeCase) judgeGaps(t *testing.T, j standin.Journal) {
	t.Helper()
	gaps := j.Gaps()
	within := slices.EqualFunc(gaps, c.gaps, func(got, least time.Duration) bool {
		return got >= least-10*time.Millisecond && got <= least+slack // timers of Node count whole milliseconds
	})
	if !within {
		t.Errorf("gaps %v, want at least %v", gaps, c.gaps)
	}
}

// steps is a plan of steps alone.
func steps(steps ...standin.Step) standin.Plan { return standin.Plan{Steps: steps} }

// always is a plan of one step for all requests.
func always(step standin.Step) standin.Plan {
	step.Times = -1
	return steps(step)
}

// ownBackoff are the shortest waits that the SDKs take by themselves: 0.5 s doubled, less a quarter.
var ownBackoff = []time.Duration{375 * time.Millisecond, 750 * time.Millisecond}

// attemptTimeout is a limit on one attempt that a busy machine does not reach by itself.
const attemptTimeout = 4 * time.Second

// sleptOutTimeouts holds three attempts, by the client's own clock, to the timeout of each and the waits between them.
// A gap at the stand-in would not do: the timeout begins before the request arrives.
func sleptOutTimeouts(t *testing.T, saw nodeSaw, _ *standin.Server) {
	t.Helper()
	least := 3*attemptTimeout + ownBackoff[0] + ownBackoff[1] - 10*time.Millisecond
	if took := time.Duration(saw.ElapsedMS) * time.Millisecond; took < least || took > least+slack {
		t.Errorf("three attempts took %v, want at least %v", took, least)
	}
}

// leaveLate is when a caller gives up who wants the first reply to have come, in milliseconds.
const leaveLate = 10_000

func statusName(status int) string { return fmt.Sprintf("status %d", status) }
