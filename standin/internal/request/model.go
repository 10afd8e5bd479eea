package request

import (
	"strconv"
	"strings"
)

// model is what the API knows of a model and decides by. All of it comes from the name; the zero value is a model that
// nothing is known of, and that is refused nothing.
type model struct {
	claude     bool
	family     string // opus, sonnet, haiku, fable, mythos
	generation int    // ten times the version: 45 is 4.5. 0: not in the name
}

// modelOf reads a model's name: claude-opus-4-8, claude-3-7-sonnet-latest, and the same behind a prefix or in front of
// a date as clouds have it.
func modelOf(name string) model {
	_, rest, found := strings.Cut(name, "claude-")
	if !found {
		return model{}
	}
	m := model{claude: true}
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "-")
		part, _, _ = strings.Cut(part, "@")
		part, _, _ = strings.Cut(part, "[")
		n, err := strconv.Atoi(part)
		switch {
		case err != nil || n < 0:
			if m.family == "" {
				m.family = part
			}
		case n > 99: // a date
			rest = ""
		case m.generation == 0:
			m.generation = 10 * min(n, 9)
		case m.generation%10 == 0:
			m.generation += min(n, 9)
			if m.family != "" {
				rest = ""
			}
		}
	}
	if m.family == "mythos" && m.generation == 0 { // claude-mythos-preview
		m.generation = 46
	}
	return m
}

// since says whether the model is of a generation or later.
func (m model) since(generation int) bool { return m.claude && m.generation >= generation }

// before says whether the model is known to be earlier than a generation.
func (m model) before(generation int) bool {
	return m.claude && m.generation > 0 && m.generation < generation
}

// window is the context window in tokens, 0 when it is not known.
// platform.claude.com/docs/en/build-with-claude/context-windows.
func (m model) window() int {
	switch {
	case m.generation == 0:
		return 0
	case m.since(46) && m.family != "haiku":
		return 1_000_000
	}
	return 200_000
}

// maxTokens is the most that max_tokens may be, 0 when it is not known.
func (m model) maxTokens() int {
	switch {
	case m.generation == 0:
		return 0
	case m.since(46):
		return 128_000
	case m.since(45), m.since(37) && m.family != "opus":
		return 64_000
	case m.since(40):
		return 32_000
	case m.since(35):
		return 8192
	}
	return 4096
}

// alwaysThinks says whether thinking cannot be turned off.
func (m model) alwaysThinks() bool {
	return m.since(50) && (m.family == "fable" || m.family == "mythos")
}

// openAIWindow is the context window of a model of OpenAI, 0 when it is not known.
func openAIWindow(name string) int {
	for _, known := range []struct {
		prefix string
		tokens int
	}{
		{"gpt-5", 400_000}, {"gpt-4.1", 1_047_576}, {"gpt-4o", 128_000}, {"gpt-4-turbo", 128_000},
		{"gpt-4", 8192}, {"gpt-3.5", 16_385}, {"o1", 200_000}, {"o3", 200_000}, {"o4", 200_000},
	} {
		if strings.HasPrefix(name, known.prefix) {
			return known.tokens
		}
	}
	return 0
}

// reasons says whether a model of OpenAI takes max_completion_tokens alone.
func reasons(name string) bool {
	return strings.HasPrefix(name, "gpt-5") || strings.HasPrefix(name, "o1") || strings.HasPrefix(name, "o3") || strings.HasPrefix(name, "o4")
}

// named says whether a text can be the name of a model at all: without spaces and control characters.
func named(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
