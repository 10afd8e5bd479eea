package tape

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"holdfast/internal/wire"
)

// What may be on a tape is listed; all else stays away, because the next header
// with a key in it has no name yet. A name that ends in "-" stands for all that
// begin with it.
var (
	askedHeaders = []string{
		"accept", "accept-encoding", "anthropic-beta", "anthropic-version", "content-encoding", "content-length", "content-type",
		"openai-beta", "user-agent", "x-custom-id", "x-stainless-",
	}
	repliedHeaders = []string{
		"allow", "anthropic-fast-", "anthropic-priority-", "anthropic-ratelimit-", "anthropic-version", "cache-control", "cf-cache-status",
		"content-disposition", "content-encoding", "content-length", "content-type", "date", "openai-processing-ms", "openai-version",
		"request-id", "retry-after", "retry-after-ms", "server", "vary", "via", "x-envoy-upstream-service-time", "x-ratelimit-",
		"x-request-id", "x-robots-tag", "x-should-retry",
	}
	parameters = []string{
		"after", "after_id", "alt", "api-version", "before", "before_id", "beta", "include", "include[]", "limit", "order", "page",
		"purpose", "scope_id", "starting_after", "status", "stream",
	}
)

// listed reports whether a lower-case name is in the list.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return name == entry || strings.HasSuffix(entry, "-") && strings.HasPrefix(name, entry)
	})
}

// keep returns the headers that may be kept. A value that looks like a key, or
// holds one of the secrets, may not, whatever its name.
func keep(h http.Header, list, secrets []string) http.Header {
	kept := make(http.Header)
	for name, values := range h {
		if !listed(list, strings.ToLower(name)) {
			continue
		}
		for _, value := range values {
			if !looksSecret(value, secrets) {
				kept.Add(name, value)
			}
		}
	}
	return kept
}

func looksSecret(text string, secrets []string) bool {
	return strings.Contains(wire.Scrub(text, len(text)+len("[redacted]")), "[redacted]") ||
		slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(text, secret) })
}

// keepPath returns the path with a word in place of every segment that looks
// like a key.
func keepPath(path string, secrets []string) string {
	if !strings.HasPrefix(path, "/") { // "*" of OPTIONS, or nothing
		path = "/" + path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if looksSecret(segment, secrets) {
			segments[i] = "redacted"
		}
	}
	return strings.Join(segments, "/")
}

// keepQuery returns the parameters that may be kept, sorted by name.
func keepQuery(raw string, secrets []string) string {
	all, _ := url.ParseQuery(raw) // what cannot be read is not kept
	kept := make(url.Values)
	for name, values := range all {
		for _, value := range values {
			if slices.Contains(parameters, name) && !looksSecret(value, secrets) {
				kept.Add(name, value)
			}
		}
	}
	return kept.Encode()
}

// shortest is the length of the shortest secret that is looked for in bodies:
// a shorter one is found in ordinary text.
const shortest = 8

// secretsOf lists what must not be on the tape of a request, wherever it turns
// up: the values of its credentials. user is the one in the upstream's URL.
func secretsOf(r *http.Request, user *url.Userinfo) []string {
	var found []string
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if listed(askedHeaders, name) || !mayHoldKey(name) {
			continue
		}
		for _, value := range values {
			found = append(found, credentials(value)...)
		}
	}
	for _, cookie := range r.Cookies() {
		found = append(found, cookie.Value)
	}
	query, _ := url.ParseQuery(r.URL.RawQuery)
	for name, values := range query {
		if !slices.Contains(parameters, name) {
			found = append(found, values...)
		}
	}
	if user != nil {
		password, _ := user.Password()
		found = append(found, password, user.Username())
	}
	found = slices.DeleteFunc(found, func(s string) bool { return len(s) < shortest })
	slices.SortFunc(found, func(a, b string) int { // the longest first: it may hold another
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return slices.Compact(found)
}

func mayHoldKey(name string) bool {
	return slices.ContainsFunc([]string{"key", "auth", "token", "secret", "password", "credential", "signature"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// credentials returns what the value of a header says of a key: the value, what
// follows its scheme, and the two halves of a basic one.
func credentials(value string) []string {
	found := []string{value}
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return found
	}
	rest = strings.TrimSpace(rest)
	found = append(found, rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		user, password, _ := strings.Cut(string(plain), ":")
		found = append(found, user, password)
	}
	return found
}
