package gateway

import (
	"time"

	"holdfast"
)

// CallReport is a [Record] as the admin listener gives it under /api/calls. Times that end in Seconds are in seconds.
type CallReport struct {
	ID      string    `json:"id"`
	Start   time.Time `json:"start"`
	Route   string    `json:"route,omitempty"`
	Client  string    `json:"client,omitempty"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Dialect string    `json:"dialect,omitempty"`
	Model   string    `json:"model,omitempty"`
	Stream  bool      `json:"stream"`

	Status  int     `json:"status"`
	Outcome Outcome `json:"outcome"`
	Source  string  `json:"source"`
	Target  string  `json:"target,omitempty"`
	// Reason, Error and Hint say why there is no answer, and what to do about it. Empty for an answer.
	Reason string `json:"reason,omitempty"`
	// GaveUp is why no further attempt was made, in a word of [holdfast.ReasonWord]. Empty for an answer, and for an
	// error that no attempt cures.
	GaveUp  string    `json:"gave_up,omitempty"`
	Error   string    `json:"error,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	SavedAt time.Time `json:"saved_at,omitzero"`

	ElapsedSeconds      float64 `json:"elapsed_seconds"`
	FirstContentSeconds float64 `json:"first_content_seconds,omitempty"`
	// WaitedSeconds are those between attempts, PacedSeconds those in the queue for permission.
	WaitedSeconds float64 `json:"waited_seconds,omitempty"`
	PacedSeconds  float64 `json:"paced_seconds,omitempty"`

	InputTokens      int `json:"input_tokens,omitempty"`
	OutputTokens     int `json:"output_tokens,omitempty"`
	CacheReadTokens  int `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	// Partial tells that the tokens are an estimate: the answer was billed and did not come to its end.
	Partial        bool   `json:"partial,omitempty"`
	StopReason     string `json:"stop_reason,omitempty"`
	Bytes          int64  `json:"bytes"`
	StackedRetries int    `json:"stacked_retries,omitempty"`

	Attempts []AttemptReport `json:"attempts"`
	Skips    []SkipReport    `json:"skips"`
	// Summary is the text of [holdfast.Trace.Summary].
	Summary string `json:"summary"`
}

// AttemptReport is one [holdfast.Attempt].
type AttemptReport struct {
	Number       int     `json:"number"`
	Target       string  `json:"target"`
	AfterSeconds float64 `json:"after_seconds"`
	TookSeconds  float64 `json:"took_seconds"`
	Verdict      string  `json:"verdict"`
	// Rule that gave the verdict; empty for an answer.
	Rule string `json:"rule,omitempty"`
	// Status, Type, Code, Message and RequestID are the upstream's own.
	Status    int    `json:"status,omitempty"`
	Type      string `json:"type,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// ServerWaitSeconds is the wait that the upstream asked for, WaitSeconds the one that was planned.
	ServerWaitSeconds float64   `json:"server_wait_seconds,omitempty"`
	Resumes           time.Time `json:"resumes,omitzero"`
	NotSent           bool      `json:"not_sent,omitempty"`
	Silent            bool      `json:"silent,omitempty"`
	Next              string    `json:"next"`
	WaitSeconds       float64   `json:"wait_seconds,omitempty"`
}

// SkipReport is one [holdfast.Skip].
type SkipReport struct {
	Target       string  `json:"target"`
	AfterSeconds float64 `json:"after_seconds"`
	// Reason is the word of the header holdfast-reason for it.
	Reason      string  `json:"reason"`
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
}

// Report returns the record in the form of the admin listener.
func (r *Record) Report() CallReport {
	t := &r.Trace
	c := CallReport{
		ID: r.ID, Start: r.Start.UTC(), Route: r.Route, Client: r.Client, Method: r.Method, Path: r.Path, Dialect: r.Dialect, Model: r.Model, Stream: r.Stream,
		Status: r.Status, Outcome: r.Outcome, Source: r.Source.String(), Target: r.Target, Reason: r.Reason, GaveUp: holdfast.ReasonWord(t.Reason), Error: r.Error, SavedAt: r.SavedAt,
		ElapsedSeconds: seconds(r.Elapsed), FirstContentSeconds: seconds(r.FirstContent), WaitedSeconds: seconds(t.Waited), PacedSeconds: seconds(t.Paced),
		InputTokens: r.Input, OutputTokens: r.Output, CacheReadTokens: r.CacheRead, CacheWriteTokens: r.CacheWrite,
		Partial: r.Partial, StopReason: r.StopReason, Bytes: r.Bytes, StackedRetries: r.Stacked,
		Attempts: []AttemptReport{}, Skips: []SkipReport{}, Summary: t.Summary(),
	}
	if r.Outcome != Answered && r.Outcome != Refused {
		c.Hint = (&holdfast.Error{Reason: t.Reason}).Hint()
	}
	for _, a := range t.Attempts() {
		c.Attempts = append(c.Attempts, attemptReport(&a))
	}
	for _, s := range t.Skips() {
		c.Skips = append(c.Skips, SkipReport{Target: s.Target, AfterSeconds: seconds(s.After), Reason: holdfast.ReasonWord(s.Reason), WaitSeconds: seconds(s.Wait)})
	}
	return c
}

func attemptReport(a *holdfast.Attempt) AttemptReport {
	v := &a.Verdict
	return AttemptReport{
		Number: a.Number, Target: a.Target, AfterSeconds: seconds(a.After), TookSeconds: seconds(a.Took),
		Verdict: v.Kind.String(), Rule: v.Rule, Status: v.Status, Type: v.Type, Code: v.Code, Message: v.Message, RequestID: v.RequestID,
		ServerWaitSeconds: seconds(v.Wait), Resumes: v.Resumes, NotSent: v.NotSent, Silent: v.Silent,
		Next: a.Next.String(), WaitSeconds: seconds(a.Wait),
	}
}

// seconds of a time, to the microsecond, so that they print short.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
