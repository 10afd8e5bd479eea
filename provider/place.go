package provider

import (
	"regexp"
	"slices"
	"strings"
)

// What names a place becomes a part of an address that a key is sent to, so it holds what such a name can hold and no more.
var (
	// label is one word of a host, as RFC 1123 has it.
	label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	// projectName is a project of Google, which may stand behind a domain and a colon.
	projectName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,126}[A-Za-z0-9])?$`)
	// workspaceName is one segment of a path, and a header.
	workspaceName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,126}[A-Za-z0-9])?$`)
)

// misplaced finds a name that would lead elsewhere, wherever it was taken from. No mistake shows one: it may be a key.
func (s Settings) misplaced() error {
	resource := ""
	if s.URL == "" {
		resource = s.namedResource()
	}
	for _, f := range []struct {
		name, value, may string
		good             *regexp.Regexp
		of               []string
	}{
		{"region", s.region(), "letters, digits and hyphens", label, []string{Bedrock, BedrockMantle, AWS, Vertex, GoogleCloud}},
		{"project", s.project(), "letters, digits, hyphens, dots and colons", projectName, []string{Vertex, GoogleCloud}},
		{"workspace", s.workspace(), "letters, digits, hyphens and underscores", workspaceName, []string{AWS, GoogleCloud}},
		{"resource", resource, "letters, digits and hyphens", label, []string{Foundry}},
	} {
		if f.value == "" || !slices.Contains(f.of, s.Provider) || f.good.MatchString(f.value) && !strings.Contains(f.value, "..") {
			continue
		}
		return s.wrong("the name alone, without a host, a path or spaces", "its %s has more than %s, or begins or ends with another than a letter or a digit", f.name, f.may)
	}
	switch {
	case strings.ContainsFunc(s.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return s.wrong("give the key alone; a file that holds one often ends in a newline", "its key holds a space, a control character or one beyond ASCII")
	case strings.ContainsFunc(s.Profile, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return s.wrong("the name that stands in AWS's shared files", "its profile holds a control character")
	}
	return nil
}
