package wire

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scrubInput bounds the work of Scrub: an error page can be megabytes long and
// only its first words are shown.
const scrubInput = 16 << 10

const redacted = "[redacted]"

// secrets lists what must not be shown, in the order in which it is removed.
// Query strings go first: a key inside one goes with it. A pattern can match
// only where one of its hints occurs, in lower case; looking for those first
// spares the patterns on ordinary text.
var secrets = []struct {
	hints   []string
	pattern *regexp.Regexp
	with    string
}{
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@"']*@`), "$1"},
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s?#"']*)[?#][^\s"']*`), "$1"},
	{[]string{"?"}, regexp.MustCompile(`\?[A-Za-z0-9_.~\[\]-]+=[^\s"']*`), ""},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/*=-]{6,}`), "$1 " + redacted},
	{[]string{"eyj"}, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)*`), redacted},
	{[]string{"sk-", "vk-", "hf-"}, regexp.MustCompile(`(?i)(sk|vk|hf)-[A-Za-z0-9*_-]{12,}`), redacted},
	{keyPrefixes, regexp.MustCompile(`(?i)\b(` + strings.Join(keyPrefixes, "|") + `)[A-Za-z0-9*._-]*[A-Za-z0-9*]`), redacted},
	{[]string{"gh", "akia", "asia", "aiza", "ya29."}, regexp.MustCompile(`\bgh[a-z]_[A-Za-z0-9]{8,}|\b(AKIA|ASIA)[0-9A-Z]{8,}|AIza[0-9A-Za-z_-]{12,}|\bya29\.[A-Za-z0-9._-]+`), redacted},
	{[]string{"="}, regexp.MustCompile(`(?i)\b(x-api-key|api[-_ ]?key|access[-_ ]?token|auth[-_ ]?token|token|secret|password|key)(["']?\s*=\s*["']?)[^\s"',;&)\]}]+`), "$1$2" + redacted},
	{[]string{"api-key", "authorization", "cookie"}, regexp.MustCompile(`(?i)\b(x-api-key|api-key|authorization|cookie)(["']?\s*:\s*["']?)[^\s"',;)\]}]{6,}`), "$1$2" + redacted},
	{[]string{"key", "token", "secret", "password"}, regexp.MustCompile(`(?i)\b(api[_ ]?key|access[-_ ]?token|auth[-_ ]?token|secret|password)(["']?\s*:\s*["']?)([^\s"',;)\]}]*[0-9][^\s"',;)\]}]*)`), "$1$2" + redacted},
	{[]string{"key", "token"}, regexp.MustCompile(`(?i)\b(api[-_ ]?key|access[-_ ]?token|token)((?:\s+[a-z]+){1,2}\s*:\s*["']?)[A-Za-z0-9+/=_*-]{12,}`), "$1$2" + redacted}, // of no known form, as a provider repeats it
}

// keyPrefixes begin the keys of providers and of the gateways in front of them.
var keyPrefixes = []string{"sk-", "sk_", "vk-", "vk_", "pk-", "pk_", "rk-", "rk_", "xai-", "pplx-", "nvapi-", "csk-", "gsk_", "hf_", "r8_", "fw_", "glpat-", "xoxa-", "xoxb-", "xoxp-"}

// Scrub makes text from elsewhere fit to be shown or logged: one line of at
// most max runes, without HTML tags, control characters, URL query strings,
// URL passwords, or anything that looks like a key or a token. What was a key
// reads "[redacted]"; a text that was cut ends in "…". Zero and negative max
// give "".
func Scrub(text string, max int) string {
	if max <= 0 {
		return ""
	}
	if isName(text) && len(text) <= max && withoutSecrets(text) == text {
		return text // as a rule, for the names that replies bring
	}
	text, cut := bound(text)
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = stripTags(html.UnescapeString(text))
	text = strings.Join(strings.FieldsFunc(text, invisible), " ")
	return shorten(strings.TrimSpace(withoutSecrets(text)), max, cut)
}

func withoutSecrets(text string) string {
	lower := lowerASCII(text)
	for _, secret := range secrets {
		for _, hint := range secret.hints {
			if strings.Contains(lower, hint) {
				text = secret.pattern.ReplaceAllString(text, secret.with)
				break
			}
		}
	}
	return text
}

// bound limits the text and drops the word the limit falls into, because half
// a key is not recognised as one.
func bound(text string) (string, bool) {
	if len(text) <= scrubInput {
		return text, false
	}
	text = text[:scrubInput]
	if i := strings.LastIndexAny(text, " \n\t<"); i > 0 {
		return text[:i], true
	}
	return "", true
}

func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func shorten(text string, max int, cut bool) string {
	if utf8.RuneCountInString(text) <= max {
		if cut && text != "" && utf8.RuneCountInString(text) < max {
			return text + "…"
		}
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:max-1]), " ") + "…"
}

// silent names the elements whose content is not text for people.
var silent = []string{"script", "style", "svg", "head"}

// stripTags replaces each tag, comment and silent element by a space. A "<"
// that opens no tag stays: "a < b" is text.
func stripTags(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var out strings.Builder
	lower := lowerASCII(text)
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			break
		}
		out.WriteString(text[:i])
		text, lower = text[i:], lower[i:]
		end := 1
		if opensTag(lower) {
			out.WriteByte(' ')
			end = tagEnd(lower)
		} else {
			out.WriteByte('<')
		}
		text, lower = text[end:], lower[end:]
	}
	out.WriteString(text)
	return out.String()
}

// lowerASCII keeps the length of the text, which strings.ToLower does not.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

func opensTag(text string) bool {
	if len(text) < 2 {
		return false
	}
	c := text[1]
	return c == '/' || c == '!' || c == '?' || isLetter(c)
}

// tagEnd returns the index behind the tag that the lower-case text begins with,
// together with its whole element when that is silent. An unclosed tag takes
// the rest.
func tagEnd(text string) int {
	if strings.HasPrefix(text, "<!--") {
		return behind(text, "-->")
	}
	for _, name := range silent {
		rest, found := strings.CutPrefix(text[1:], name)
		if !found || rest != "" && isLetter(rest[0]) {
			continue
		}
		if end := strings.Index(text, "</"+name); end >= 0 {
			return end + behind(text[end:], ">")
		}
	}
	return behind(text, ">")
}

func behind(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + len(mark)
	}
	return len(text)
}

// isLetter expects lower case.
func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z'
}
