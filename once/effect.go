package once

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast"
)

// Effect is a side effect, and what is known of the far side where it takes place. Only Run is needed. An effect without Replays
// and Lookup is started once, and never again unless the start certainly did nothing.
type Effect[T any] struct {
	// Run makes the effect happen, in one request, and returns its value, which is recorded as JSON. The key is the one given
	// to [Do]; if Replays is set the context carries it for [Transport] too. Run must return when its context ends, and must
	// not repeat anything by itself unless the far side replays. It runs on a goroutine of its own, with the values of the
	// first caller's context.
	Run func(ctx context.Context, key string) (T, error)

	// Replays says that the far side honours keys: a second request with a key it knows does nothing and gets the first one's
	// answer, as with Stripe. Then a lost answer is asked for again with the same key, and so is one that a crash has lost.
	// Default: it does not, and the header, if it takes one, is an ornament.
	Replays bool
	// KeyLife is how long the far side remembers a key, from its first start on; take a little less than it promises. Stripe
	// promises 24 hours. After it nothing is repeated any more. Default: for ever. Negative: the same.
	KeyLife time.Duration
	// Lookup asks the far side what became of a key, where a start is in doubt and asking again with the key does not end it. It returns the
	// effect's value and true if it happened, and false only if it did not happen and cannot happen any more. An error
	// leaves the doubt. Default: it cannot be asked.
	Lookup func(ctx context.Context, key string) (T, bool, error)

	// Request is what the effect asks for, of which a SHA-256 is recorded. A caller who comes with the same key and another
	// request gets a [*MismatchError]. Default: nil, requests are not compared.
	Request []byte
	// NothingHappened reports that an error of Run proves that its request did nothing. It runs without locks. Default:
	// [NothingHappened], which is careful.
	NothingHappened func(error) bool
	// Policy says how what failed within one start is repeated, and how long to wait: what certainly did nothing, and with
	// Replays also what is in doubt. Its Targets are not used: another far side does not know the key; its Deadline
	// is Limit if it has none. Default: the zero Policy.
	Policy *holdfast.Policy
	// Limit is how long a start may take with all its attempts; Run's context ends then. A crash blocks the key a little longer
	// than that. Default: 2m. Negative: the same.
	Limit time.Duration

	// Keep is how long the outcome is kept before [Ledger.Expire] may remove it; an action whose key comes again after that
	// happens again. Default: for ever. Negative: the same.
	Keep time.Duration
	// NoWait returns an [*InProgressError] at once when another process runs the effect. Callers of the same process share
	// it anyway. Default: Do waits for it, as long as its context allows.
	NoWait bool
}

const defaultLimit = 2 * time.Minute

// nothing is an error of an effect that did nothing.
type nothing struct{ error }

func (n nothing) Unwrap() error { return n.error }

// Nothing wraps an error of an effect that certainly did nothing, for an effect that knows, as one that failed before it sent
// anything. [NothingHappened] believes it. The text stays the same. Nothing of nil is nil; it never makes a failure of a success.
func Nothing(err error) error {
	if err == nil {
		return nil
	}
	return nothing{err}
}

// rejections are the statuses with which a server says that it did not do what it was asked: it did not understand, did not allow,
// or did not find it. 409 is not among them: with it services that honour keys say that the first request is still under way.
var rejections = map[int]bool{
	http.StatusBadRequest: true, http.StatusUnauthorized: true, http.StatusPaymentRequired: true, http.StatusForbidden: true,
	http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusNotAcceptable: true, http.StatusGone: true,
	http.StatusLengthRequired: true, http.StatusPreconditionFailed: true, http.StatusRequestEntityTooLarge: true,
	http.StatusRequestURITooLong: true, http.StatusUnsupportedMediaType: true, http.StatusExpectationFailed: true,
	http.StatusUnprocessableEntity: true, http.StatusPreconditionRequired: true, http.StatusTooManyRequests: true,
	http.StatusRequestHeaderFieldsTooLarge: true,
}

// NothingHappened reports that an error proves that the request did nothing: one made by [Nothing], one that [holdfast.Judge] knows
// as never sent, and a reply that rejects the request (400, 401, 402, 403, 404, 405, 406, 410 to 415, 417, 422, 428, 429, 431).
// Everything else is in doubt: timeouts, lost connections, 409, 5xx, a caller who left, and every error it does not know. So is a
// [*holdfast.Error] after more than one attempt, since it tells of the last one alone. It cannot see retries that a client makes
// by itself: turn them off. It never says yes to an error it does not know.
func NothingHappened(err error) bool {
	if err == nil {
		return false
	}
	if certain := (nothing{}); errors.As(err, &certain) {
		return true
	}
	if call := (*holdfast.Error)(nil); errors.As(err, &call) && call.Attempts != 1 {
		return call.Attempts == 0
	}
	v := holdfast.Judge(err)
	if call := (*holdfast.Error)(nil); errors.As(err, &call) {
		v = call.Verdict
	}
	return v.NotSent || rejections[v.Status]
}
