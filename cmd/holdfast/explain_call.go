package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/config"
	"holdfast/gateway"
)

// adminURL is where a gateway's admin listener is by default.
func adminURL() string { return "http://" + new(config.File).AdminAddress() }

// lastCall stands, in place of an id, for the last call that failed or was cut.
const lastCall = "last"

// explained is a call and what would have helped it.
type explained struct {
	gateway.CallReport
	Advice []string `json:"advice"`
}

// runCall tells what happened to a call of a running gateway.
func (o explainOptions) runCall(ctx context.Context, id string, s streams) error {
	if o.status != 0 || o.event != "" || o.body != "" || len(o.headers) > 0 || o.config != "" || len(o.set) > 0 {
		return badUsage("leave out the id, or the flags other than --admin and --json", "%q is the id of a call, and the flags describe a reply", id)
	}
	call, err := fetchCall(ctx, o.admin, id)
	if err != nil {
		return err
	}
	e := explained{call, advice(&call)}
	if o.json {
		return giveJSON(s.out, e)
	}
	return give(s.out, e.text())
}

// adminPatience is how long an admin listener may take to answer.
const adminPatience = 10 * time.Second

// mostAnswered is how much of an answer of the admin listener is read.
const mostAnswered = 8 << 20

func fetchCall(ctx context.Context, admin, id string) (call gateway.CallReport, err error) {
	base, ok := webURL(admin)
	if !ok {
		return call, badUsage("it looks like "+adminURL(), "--admin %q is not the URL of an admin listener", admin)
	}
	if id != lastCall {
		return call, fetchAdmin(ctx, base.JoinPath("api", "calls", url.PathEscape(id)), &call)
	}
	var list struct{ Calls []gateway.CallReport }
	at := base.JoinPath("api", "calls")
	at.RawQuery = "failed=1&limit=1"
	if err := fetchAdmin(ctx, at, &list); err != nil {
		return call, err
	}
	if len(list.Calls) == 0 {
		return call, failed("give the id of a call that was answered, as its header holdfast-trace has it", "no call failed since the gateway started")
	}
	return list.Calls[0], nil
}

func fetchAdmin(ctx context.Context, at *url.URL, value any) error {
	ctx, cancel := context.WithTimeout(ctx, adminPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return badUsage("it looks like "+adminURL(), "%w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return failed("start one with: holdfast serve; --admin says where its admin listener is", "no gateway answers: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, mostAnswered))
	if err != nil {
		return failed("", "the gateway's answer broke off: %w", err)
	}
	var refused gateway.ErrorReport
	switch {
	case res.StatusCode == http.StatusOK && json.Unmarshal(text, value) == nil:
		return nil
	case res.StatusCode != http.StatusOK && json.Unmarshal(text, &refused) == nil && strings.HasPrefix(refused.Error, "gateway: "):
		return failed(refused.Hint, "%s", strings.TrimPrefix(refused.Error, "gateway: "))
	}
	return failed("--admin says where the admin listener is; it is not the address that clients use", "what answers at %s is no admin listener of a gateway", at.Host)
}

// text tells the call in words: what was asked, how it ended, attempt by attempt, and what would have helped.
func (e *explained) text() string {
	var b strings.Builder
	c := &e.CallReport
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("call %s: %s %s%s", c.ID, c.Method, c.Path, wordIf(" for ", c.Model)+yesNo(c.Stream, ", streamed", ""))
	line("began %s%s%s", c.Start.UTC().Format("2006-01-02 15:04:05.000 MST"), wordIf(", on route ", c.Route), wordIf(", from client ", c.Client))
	line("%s", ended(c))
	skips := c.Skips
	for _, a := range c.Attempts {
		for ; len(skips) > 0 && skips[0].AfterSeconds <= a.AfterSeconds; skips = skips[1:] {
			line("\n%s", skipped(&skips[0]))
		}
		line("\nattempt %d at %s%s", a.Number, span(a.AfterSeconds), wordIf(", ", a.Target))
		for _, words := range attempted(&a, c) {
			line("  %s", words)
		}
	}
	for i := range skips {
		line("\n%s", skipped(&skips[i]))
	}
	if len(e.Advice) > 0 {
		line("\nwhat would have helped:")
		for _, words := range e.Advice {
			line("  - %s", words)
		}
	}
	return b.String()
}

// ended is how the call ended for its caller, in a sentence.
func ended(c *gateway.CallReport) string {
	spent := span(c.ElapsedSeconds)
	if c.WaitedSeconds > 0 {
		spent += ", " + span(c.WaitedSeconds) + " of them between attempts"
	}
	if c.PacedSeconds > 0 {
		spent += ", " + span(c.PacedSeconds) + " in the queue"
	}
	var text string
	switch c.Outcome {
	case gateway.Answered:
		text = fmt.Sprintf("answered after %s, %s", spent, answerFrom(c))
	case gateway.Refused:
		text = fmt.Sprintf("answered with a refusal of the model after %s, %s", spent, answerFrom(c))
	case gateway.Cut:
		text = fmt.Sprintf("cut after %s, when %d bytes of the answer had been handed over", spent, c.Bytes)
	case gateway.Left:
		text = fmt.Sprintf("the caller left after %s, with %d bytes of an answer", spent, c.Bytes)
	case gateway.Rejected:
		text = fmt.Sprintf("rejected by the gateway with status %d, and sent nowhere", c.Status)
	default:
		text = fmt.Sprintf("failed with status %d after %s", c.Status, spent)
	}
	why := strings.TrimPrefix(c.Error, "holdfast: ")
	for _, word := range []string{c.GaveUp, c.Reason} {
		if why == "" && c.Outcome != gateway.Left {
			why = reasonText(word)
		}
	}
	return text + wordIf(": ", why)
}

// reasons say in words what the words of holdfast-reason mean.
var reasons = map[string]string{
	"upstream-error": "the upstream's own error, as it came",
	"cut":            "the upstream broke off",
	"error-event":    "the upstream said itself that it breaks off",
	"attempts":       "all attempts were used",
	"deadline":       "the deadline leaves no time",
	"budget":         "the retry budget is empty",
	"open":           "the circuit is open",
	"pace":           "the pace gives no permission in time",
	"server-wait":    "the upstream asks for too long a wait",
	"spent":          "a limit on money is reached",
	"rejected":       "the upstream does not take the key",
	"no-retry":       "the upstream says not to repeat",
}

func reasonText(word string) string {
	if text, known := reasons[word]; known {
		return text
	}
	return word
}

func answerFrom(c *gateway.CallReport) string {
	switch c.Source {
	case "fallback":
		return "by a further target" + wordIf(", ", c.Target)
	case "saved":
		if c.SavedAt.IsZero() {
			return "from the answer that the route has for it"
		}
		return "with the saved answer of " + c.SavedAt.UTC().Format("2006-01-02 15:04 MST")
	}
	return "live" + wordIf(" by ", c.Target)
}

// meanings say in words what the kinds of verdicts mean.
var meanings = map[string]string{
	"ok":         "a complete answer",
	"throttled":  "this key and model are asked to slow down; that says nothing about the upstream's health",
	"overloaded": "the upstream has no capacity left",
	"broken":     "the upstream, or the way to it, failed",
	"spent":      "a limit on money is reached, and no wait of a call's length cures that",
	"terminal":   "the same request would fail again",
	"overflow":   "the prompt is too long for this model",
	"refused":    "the model refused, and would most likely refuse again",
	"cancelled":  "the caller went away, which says nothing about the upstream",
	"unsafe":     "nobody knows what was done there, and it must not be done twice",
}

// attempted are the lines about one attempt: what came, what it means, and what the call did then.
func attempted(a *gateway.AttemptReport, c *gateway.CallReport) []string {
	came := "no answer"
	if a.Status != 0 {
		came = fmt.Sprint(a.Status)
	} else if a.Verdict == "ok" {
		came = "an answer"
	}
	switch {
	case a.NotSent:
		came = "no connection"
	case a.Silent:
		came = "not one byte of an answer"
	}
	came += wordIf(" ", a.Type) + wordIf(" ", a.Code) + " after " + span(a.TookSeconds) + wordIf(", request ", a.RequestID)
	lines := []string{came}
	if a.Message != "" {
		lines = append(lines, "it says: "+a.Message)
	}
	if a.Verdict != "ok" {
		lines = append(lines, a.Verdict+wordIf(", by the rule ", a.Rule)+wordIf(": ", meanings[a.Verdict]))
	}
	return append(lines, then(a, c))
}

// then is what the call did after the attempt, and why.
func then(a *gateway.AttemptReport, c *gateway.CallReport) string {
	switch a.Next {
	case "answered":
		return "so its answer is the call's"
	case "retried":
		if a.ServerWaitSeconds > 0 {
			return fmt.Sprintf("it asked to wait %s; so the call waited %s and asked again", span(a.ServerWaitSeconds), span(a.WaitSeconds))
		}
		return fmt.Sprintf("it named no wait; so the call waited %s of its own and asked again", span(a.WaitSeconds))
	case "moved on":
		if a.Silent {
			return "one that is silent is not asked again while another is left; so the call went on to the next target"
		}
		if a.ServerWaitSeconds > 0 {
			return fmt.Sprintf("it asked to wait %s; so the call went on to the next target", span(a.ServerWaitSeconds))
		}
		return "so the call went on to the next target"
	case "left":
		return "then the caller left"
	case "stopped", "gave up":
		if c.Source == "saved" {
			return "so the saved answer stands in" + wordIf(": ", reasonText(c.GaveUp))
		}
		if c.GaveUp == "" {
			return "no further attempt cures that, so it was handed to the caller as it came"
		}
		return "so the call gave up: " + reasonText(c.GaveUp)
	}
	return "then: " + a.Next
}

func skipped(s *gateway.SkipReport) string {
	text := fmt.Sprintf("at %s the target %s was not asked: ", span(s.AfterSeconds), s.Target)
	text += reasonText(s.Reason)
	if s.WaitSeconds > 0 {
		text += fmt.Sprintf(", for another %s", span(s.WaitSeconds))
	}
	return text
}

// span is a time as people read it.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d > 0 && d < time.Millisecond:
		return "less than 1ms"
	}
	return d.Round(time.Millisecond).String()
}

// wordIf is the word behind its beginning, or nothing.
func wordIf(start, word string) string {
	if word == "" {
		return ""
	}
	return start + word
}
