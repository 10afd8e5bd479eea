package turn

import (
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// Usage is what one request or a whole turn was billed for, in tokens. A refusal before any output is not billed, though it
// counts against the rate limits: it is zero.
type Usage struct {
	// Input leaves out cached tokens: those read from the cache are CacheRead, those written to it CacheWrite.
	Input, CacheRead, CacheWrite int64
	// Output counts thinking too.
	Output int64
	// WebSearches and WebFetches are requests of the server's own tools.
	WebSearches, WebFetches int64
	// Partial: a stream broke off before it said what it cost. Input is what it began with, and Output an estimate of
	// what had arrived, so the bill may be higher.
	Partial bool
}

// Add adds another usage. It never drops the mark that a part of it is an estimate.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	u.WebSearches += v.WebSearches
	u.WebFetches += v.WebFetches
	u.Partial = u.Partial || v.Partial
}

// usageOf reads a message's usage. The counts in a stream are cumulative, and [anthropic.Message.Accumulate] has let the
// last one stand, so nothing is added here.
func usageOf(m *anthropic.Message) Usage {
	u := &m.Usage
	return Usage{
		Input: u.InputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens, Output: u.OutputTokens,
		WebSearches: u.ServerToolUse.WebSearchRequests, WebFetches: u.ServerToolUse.WebFetchRequests,
	}
}

// iteration is one entry of usage.iterations, which the SDK's plain Message does not model.
type iteration struct {
	Type       string `json:"type"`
	Model      string `json:"model"`
	Input      int64  `json:"input_tokens"`
	Output     int64  `json:"output_tokens"`
	CacheRead  int64  `json:"cache_read_input_tokens"`
	CacheWrite int64  `json:"cache_creation_input_tokens"`
}

// iterationsOf reads the attempts that the API made for one response: one for each model of a chain of fallbacks, and for
// each round of its own tools.
func iterationsOf(m *anthropic.Message) []iteration {
	raw := m.RawJSON()
	if !strings.Contains(raw, `"iterations"`) {
		return nil
	}
	var message struct {
		Usage struct {
			Iterations []iteration `json:"iterations"`
		} `json:"usage"`
	}
	if json.Unmarshal([]byte(raw), &message) != nil {
		return nil
	}
	return message.Usage.Iterations
}

// billed is the usage of a response. When several models worked on it the usage of the message is that of the last one
// alone, and all of them are billed.
func billed(m *anthropic.Message, rounds []iteration) Usage {
	usage := usageOf(m)
	if m.StopReason == anthropic.StopReasonRefusal && usage.Output == 0 {
		return Usage{}
	}
	var sum Usage
	several := false
	for _, i := range rounds {
		if i.Type != "message" && i.Type != "fallback_message" {
			continue // a compaction is no attempt at the answer
		}
		several = several || i.Type == "fallback_message" || i.Model != rounds[0].Model
		sum.Add(Usage{Input: i.Input, Output: i.Output, CacheRead: i.CacheRead, CacheWrite: i.CacheWrite})
	}
	if several {
		usage.Input, usage.Output, usage.CacheRead, usage.CacheWrite = sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite
	}
	return usage
}
