package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"holdfast"
)

// What is known beforehand not to work is not sent: a target that cannot take a request is passed over while there is another
// one. The first of a chain is passed over as an attempt that failed at once, so that who answers in its place is seen to be a
// fallback; all others are left out.

// model is the upstream's name of what is asked for.
func (e *entry) model(asked string) string {
	if e.Model != "" {
		asked = e.Model
	}
	if name, ok := e.up.Models[asked]; ok {
		return name
	}
	return asked
}

// takes reports whether the target takes a body of that size, as far as is known.
func (st *stop) takes(size int64) bool {
	most := st.entry.up.Lacks.MaxBody
	return most <= 0 || size <= most
}

// fitting is the lineup for a request of that size.
func (l *lineup) fitting(size int64) *lineup {
	fits := func(st *stop, first bool) bool { return first || st.takes(size) }
	all := true
	for i, st := range l.stops {
		all = all && fits(st, i == 0)
	}
	if all {
		return l
	}
	narrow := *l
	narrow.stops, narrow.policy.Targets = nil, nil
	for i, st := range l.stops {
		if fits(st, i == 0) {
			narrow.stops = append(narrow.stops, st)
			narrow.policy.Targets = append(narrow.policy.Targets, l.policy.Targets[i])
		}
	}
	return &narrow
}

// unfit is why the target is passed over; nil when it is asked. The only one there is says itself what it does not take.
func (c *call) unfit(st *stop) error {
	if len(c.lineup.stops) < 2 || st != c.lineup.stops[0] {
		return nil
	}
	up := st.entry.up
	switch {
	case !st.takes(int64(len(c.body.data))):
		return &unfitError{fmt.Sprintf("target %s takes no more than %d bytes", up.Name, up.Lacks.MaxBody)}
	case up.Lacks.CountTokens && strings.HasSuffix(c.r.URL.Path, "/count_tokens"):
		return &unfitError{fmt.Sprintf("target %s does not count tokens", up.Name)}
	}
	return nil
}

// unfitError is a request that a target is known not to take.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return "gateway: " + e.text }

// Verdict moves on to the next target and tells the breaker nothing: nothing was sent.
func (e *unfitError) Verdict() holdfast.Verdict {
	return holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, Neutral: true, ShouldRetry: "false", Rule: "target-unfit"}
}

// dropBetas takes betas that begin so out of the header.
func dropBetas(h http.Header, beginnings []string) {
	given := h["Anthropic-Beta"]
	if len(beginnings) == 0 || len(given) == 0 {
		return
	}
	var kept []string
	for name := range strings.SplitSeq(strings.Join(given, ","), ",") {
		name = strings.TrimSpace(name)
		unknown := name == ""
		for _, b := range beginnings {
			unknown = unknown || strings.HasPrefix(name, b)
		}
		if !unknown {
			kept = append(kept, name)
		}
	}
	delete(h, "Anthropic-Beta")
	if len(kept) > 0 {
		h["Anthropic-Beta"] = []string{strings.Join(kept, ",")}
	}
}
