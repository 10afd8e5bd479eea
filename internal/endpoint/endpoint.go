package endpoint

import (
	"net/url"
	"slices"
	"strings"
)

// Auth is how an endpoint wants its key.
type Auth string

const (
	// AnyAuth takes a key either way, or none. The zero value.
	AnyAuth Auth = ""
	// APIKey is the header x-api-key.
	APIKey Auth = "x-api-key"
	// Bearer is the header Authorization with the word Bearer, and no other credential beside it.
	Bearer Auth = "bearer"
)

// Feature is something of the Messages API that an endpoint may lack.
type Feature string

// The features that are lacked somewhere.
const (
	CountTokens     Feature = "count_tokens"
	Batches         Feature = "batches"
	ModelList       Feature = "the models API"
	Files           Feature = "files"
	Betas           Feature = "betas"
	Fallbacks       Feature = "server-side fallbacks"
	LimitHeaders    Feature = "rate-limit headers"
	ToolChoice      Feature = "tool_choice"
	Metadata        Feature = "metadata"
	CacheControl    Feature = "cache_control"
	Citations       Feature = "citations"
	Documents       Feature = "PDF documents"
	ContainerAndMCP Feature = "container and mcp_servers"
)

// Endpoint is what is known of one API. The zero value is one of which nothing is known.
type Endpoint struct {
	// Name is one word: that of a provider in a configuration.
	Name string
	// Title is its name for people.
	Title string
	// Cloud endpoints are asked with a client of the SDK that signs for them, and are named by Name instead of by URL.
	Cloud bool
	// Claude endpoints serve real Claude models. All others serve models of their own.
	Claude bool
	// Renames means that models are named otherwise than on the Claude API.
	Renames bool
	// Example is a model as this endpoint names it, as far as a name is known.
	Example string
	// Base is the base URL, with {resource} for a part that is the user's own. Empty for clouds that derive it.
	Base string
	// Hosts by which a URL is recognised; one that begins with a dot is any host below it. A port belongs to it.
	Hosts []string
	// Auth that it wants.
	Auth Auth
	// MaxBody is the largest request in bytes. 0: that of the Claude API, or unknown.
	MaxBody int64
	// Only are the paths that it serves. Empty: all but those of the features that it lacks.
	Only []string
	// Lacks are features that it does not have.
	Lacks []Feature
	// Bites are differences to know beforehand, a sentence each.
	Bites []string
	// AsOf is the date of the newest source.
	AsOf string
}

// Known reports whether anything is known of it.
func (e Endpoint) Known() bool { return e.Name != "" }

// Has reports whether the endpoint has a feature, as far as is known.
func (e Endpoint) Has(f Feature) bool { return !slices.Contains(e.Lacks, f) }

// Serves reports whether the endpoint serves a path such as /v1/messages, as far as is known. A base path before it and a
// query behind it make no difference.
func (e Endpoint) Serves(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimSuffix(path, "/")
	if i := strings.LastIndex(path, "/v1/"); i > 0 {
		path = path[i:]
	}
	if len(e.Only) > 0 {
		return slices.Contains(e.Only, path)
	}
	for prefix, feature := range featurePaths {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && !e.Has(feature) {
			return false
		}
	}
	return true
}

var featurePaths = map[string]Feature{
	"/v1/messages/count_tokens": CountTokens,
	"/v1/messages/batches":      Batches,
	"/v1/models":                ModelList,
	"/v1/files":                 Files,
}

// Cloud returns the endpoint of a provider that is asked with a client of the SDK. It reports false for any other word.
func Cloud(name string) (Endpoint, bool) {
	for _, e := range table {
		if e.Cloud && e.Name == name {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Clouds returns the names that Cloud knows.
func Clouds() (names []string) {
	for _, e := range table {
		if e.Cloud {
			names = append(names, e.Name)
		}
	}
	return names
}

// At returns the endpoint at a base URL. It reports false when the URL is none, or of a host of which nothing is known.
func At(base string) (Endpoint, bool) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return Endpoint{}, false
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	for _, e := range table {
		for _, h := range e.Hosts {
			if host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h) {
				return e, true
			}
		}
	}
	return Endpoint{}, false
}

// All returns every endpoint that is known, in the order of the table.
func All() []Endpoint { return slices.Clone(table) }

// WrongPath returns the base path that a URL of this endpoint should have, and false when the URL has it or none is known.
func (e Endpoint) WrongPath(base string) (want string, wrong bool) {
	known, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(e.Base))
	u, bad := url.Parse(base)
	if err != nil || bad != nil || e.Base == "" {
		return "", false
	}
	has := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") // a version that stands twice is sent once
	return known.Path, has != strings.TrimSuffix(known.Path, "/")
}
