package main

import (
	"time"

	"holdfast"
)

// askReport is what holdfast ask --json prints.
type askReport struct {
	Text       string     `json:"text"`
	Source     string     `json:"source"`             // live, fallback or saved
	Target     string     `json:"target,omitempty"`   // who answered, where several could
	Label      string     `json:"label,omitempty"`    // of a saved answer, to show with it
	SavedAt    *time.Time `json:"saved_at,omitempty"` // of a saved answer
	Model      string     `json:"model"`
	StopReason string     `json:"stop_reason,omitempty"`
	Attempts   int        `json:"attempts"`
	Seconds    float64    `json:"seconds"`
	Input      int64      `json:"input_tokens"` // of the answer, when it was made
	Output     int64      `json:"output_tokens"`
	RequestID  string     `json:"request_id"`
	Failure    string     `json:"failure,omitempty"` // why nothing live worked
}

func (a *asker) report(r *reply, trace *holdfast.Trace, elapsed time.Duration) askReport {
	return askReport{
		Text: text(r.message), Source: trace.Source.String(), Target: trace.Target(), Model: string(r.message.Model), StopReason: string(r.message.StopReason),
		Attempts: trace.Sent(), Seconds: elapsed.Seconds(),
		Input: r.message.Usage.InputTokens, Output: r.message.Usage.OutputTokens, RequestID: r.requestID,
	}
}

func (a *asker) savedReport(trace *holdfast.Trace) askReport {
	return askReport{
		Text: a.kept.Text, Source: trace.Source.String(), Label: label(a.kept.SavedAt), SavedAt: &a.kept.SavedAt, Model: a.kept.Model,
		Attempts: trace.Sent(), Seconds: trace.Elapsed.Seconds(),
		Input: a.kept.Input, Output: a.kept.Output, RequestID: a.kept.RequestID, Failure: a.why.Error(),
	}
}
