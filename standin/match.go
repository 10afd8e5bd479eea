package standin

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// facts are what a decision depends on besides the plan and the counts.
type facts struct {
	now      time.Duration // since New or the last Reset
	path     string        // of the URL, without a base path in front of /v1
	model    string
	header   http.Header
	prompt   string
	customID string // "": none
	sdkRetry int    // x-stainless-retry-count; 0 and below: none
	stream   bool
	item     bool   // of a batch: only what names items touches it
	digest   string // of the body; the job of a request that has no other
}

// matcher is a Match made ready for many requests.
type matcher struct {
	Match
	headers []headerGlob
}

type headerGlob struct{ name, glob string }

func newMatcher(m Match) matcher {
	ready := matcher{Match: m}
	for name, glob := range m.Header {
		ready.headers = append(ready.headers, headerGlob{http.CanonicalHeaderKey(name), glob})
	}
	return ready
}

// fits reports whether a request fits everything but Nth. The cheap comes first.
func (m *matcher) fits(f *facts) bool {
	switch {
	case f.item && m.CustomID == "" && m.Path == "",
		m.Attempt != nil && *m.Attempt != max(f.sdkRetry, 0),
		m.Stream != nil && *m.Stream != f.stream,
		m.Path != "" && !glob(m.Path, f.path),
		m.Model != "" && !glob(m.Model, f.model),
		m.CustomID != "" && (f.customID == "" || !glob(m.CustomID, f.customID)):
		return false
	}
	for _, h := range m.headers {
		if !slices.ContainsFunc(f.header[h.name], func(value string) bool { return glob(h.glob, value) }) {
			return false
		}
	}
	return m.Text == "" || strings.Contains(f.prompt, m.Text)
}

// includes reports whether the nth request, from 1, is in the span.
func (s Span) includes(n uint64) bool {
	return n >= uint64(s.From) && (s.To == 0 || n <= uint64(s.To)) && (s.Every == 0 || n%uint64(s.Every) == 0)
}

// glob reports whether the whole text fits a pattern in which * is any run of
// characters and ? is one. It takes time in proportion to the product of both
// lengths at worst, and no memory.
func glob(pattern, text string) bool {
	star, mark := -1, 0 // behind the last star, and where the text of its run ends
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			p++
			star, mark = p, t
		case p < len(pattern) && pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(text[t:])
			p, t = p+1, t+size
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case star >= 0: // the run takes one character more
			_, size := utf8.DecodeRuneInString(text[mark:])
			mark += size
			p, t = star, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
