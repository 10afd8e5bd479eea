package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"golang.org/x/oauth2"

	"holdfast"
	"holdfast/internal/endpoint"
	"holdfast/internal/wire"
)

// Why a provider is not asked, for errors.Is.
var (
	// ErrSettings: what [Settings] say cannot be.
	ErrSettings = errors.New("provider: the settings cannot be used")
	// ErrCredentials: there are no credentials, or none came in time.
	ErrCredentials = errors.New("provider: no credentials")
	// ErrTooLarge: the request is larger than the provider takes.
	ErrTooLarge = errors.New("provider: the request is too large")
	// ErrRequest: the SDK's client of the provider does not take the request.
	ErrRequest = errors.New("provider: the request cannot be made")
)

// Error is a request that was never sent to a provider. It answers to its Reason and to its cause. It never shows a key, a
// prompt or an address.
type Error struct {
	// Provider is its name.
	Provider string
	// Reason is one of the sentinels of this package.
	Reason error
	// Err is the cause. It may be nil.
	Err error

	text, hint string
}

const longestCause = 300 // runes of what others say

// Error tells the provider, the reason and the cause, in one line. It never holds what a server said of a token.
func (e *Error) Error() string {
	text := e.Reason.Error() + " of " + e.Provider
	if e.Reason != ErrCredentials {
		text = e.Reason.Error() + " for " + e.Provider
	}
	switch {
	case e.text != "":
		text += ": " + e.text
	case e.Err != nil:
		text += ": " + causeOf(e.Err)
	}
	return text
}

// causeOf is what a cause says, in one short line. Of Google's reply to a request for a token only its code is shown.
func causeOf(err error) string {
	var google *oauth2.RetrieveError
	if errors.As(err, &google) {
		if google.Response == nil {
			return "no token was given"
		}
		return fmt.Sprintf("no token was given: status %d %s", google.Response.StatusCode, wire.Scrub(google.ErrorCode, longestCause))
	}
	return wire.Scrub(err.Error(), longestCause)
}

// Hint says what to do about it. It never says more than is known.
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the reason and the cause, and never an empty list.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Verdict leaves the target for the next one: nothing was sent, so nothing can have happened twice. Only credentials that a
// network kept from coming are asked for again. It never allows a saved answer for a request that is too large.
func (e *Error) Verdict() holdfast.Verdict {
	v := holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, ShouldRetry: "false", Rule: "provider-settings"}
	switch e.Reason {
	case ErrCredentials:
		v.Rule = "provider-credentials"
		if e.passing() {
			v.ShouldRetry = ""
		}
	case ErrTooLarge:
		v.Kind, v.Status, v.Rule = holdfast.Overflow, http.StatusRequestEntityTooLarge, "provider-too-large"
		v.Message = e.Error()
	case ErrRequest:
		v.Rule, v.Neutral = "provider-request", true // it says nothing of the next request
	}
	return v
}

// passing reports whether it was the way to the credentials that failed.
func (e *Error) passing() bool {
	var network *net.OpError
	var name *net.DNSError
	var google *oauth2.RetrieveError
	switch {
	case errors.As(e.Err, &google):
		return google.Response != nil && google.Response.StatusCode >= http.StatusInternalServerError
	case errors.Is(e.Err, context.DeadlineExceeded):
		return false // who waited once need not wait again: the next target is asked
	}
	return errors.As(e.Err, &network) || errors.As(e.Err, &name)
}

func (s Settings) wrong(hint, format string, args ...any) error {
	name := s.Provider
	if name == "" {
		name = "a provider without a name"
	}
	return &Error{Provider: name, Reason: ErrSettings, text: fmt.Sprintf(format, args...), hint: hint}
}

// noCredentials is the error of a provider whose credentials did not come.
func (s Settings) noCredentials(err error) error {
	return &Error{Provider: s.Provider, Reason: ErrCredentials, Err: err, hint: credentialHints[s.Provider]}
}

var credentialHints = map[string]string{
	Bedrock:       "give it a key, a profile, AWS_BEARER_TOKEN_BEDROCK or AWS's own variables; aws sts get-caller-identity shows what AWS finds",
	BedrockMantle: "give it a key, a profile, AWS_BEARER_TOKEN_BEDROCK or AWS's own variables; aws sts get-caller-identity shows what AWS finds",
	AWS:           "give it a key, a profile, ANTHROPIC_AWS_API_KEY or AWS's own variables; aws sts get-caller-identity shows what AWS finds",
	Vertex:        "name a file of credentials, or run gcloud auth application-default login",
	GoogleCloud:   "name a file of credentials, or run gcloud auth application-default login",
	Foundry:       "give it a key, or set ANTHROPIC_FOUNDRY_API_KEY",
}

// orVariable is a field, or what it is taken from when it is empty.
func (s Settings) orVariable(field, value string) string {
	names := variables[field+" "+s.Provider]
	if field == "key" {
		names = endpoint.KeyVariables(s.Provider)
	}
	for _, name := range names {
		if value == "" {
			value = os.Getenv(name)
		}
	}
	return value
}
