package once

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"holdfast"
)

// Source says where a result comes from.
type Source uint8

const (
	// Ran: the effect was run for this call, or for another one that shared it.
	Ran Source = iota
	// Recorded: it had happened before, and this is its recorded outcome.
	Recorded
	// LookedUp: the far side was asked, and says that it had happened.
	LookedUp
)

// String returns the source's word. It never returns an empty one.
func (s Source) String() string {
	switch s {
	case Recorded:
		return "recorded"
	case LookedUp:
		return "looked up"
	}
	return "ran"
}

// Result is the one outcome of an effect.
type Result[T any] struct {
	// Value is what the effect returned. For all callers but the one whose call ran it, it is read from its JSON.
	Value T
	// Source says whether the effect ran now.
	Source Source
	// Starts is how often the effect was started in all, 1 when nothing went wrong.
	Starts int
	// Shared means that another caller in this process ran the effect, at the same time.
	Shared bool
}

// Do makes an effect happen once, and returns its outcome to every caller who comes with the key, at any time and from any process
// that shares the store.
//
// Before the effect starts, that it does is recorded; when it has happened, its outcome is. Callers who come meanwhile share the
// execution or wait for it. A failure that certainly did nothing frees the key, and its error is returned as [holdfast.Do] returns
// it. One that leaves doubt is repeated with the same key if the far side replays, or the far side is asked; where neither is
// possible the error is an [*UnknownError], now and for every caller with the key, until somebody resolves it.
//
// Other errors are a [*MismatchError], an [*InProgressError], an [*OutcomeError], a [*KeyError] and a [*StoreError]; with the Op
// record of the last, and with an [*OutcomeError], the effect happened and the result has its value.
//
// A caller whose context ends leaves the execution to the others; when nobody waits for it any more, its context ends. The last
// one returns only when the effect has, so that nothing goes on behind a caller's back. A panic of the effect leaves doubt, and goes
// on in the caller whose call started it.
//
// Of callers who share an execution, the first one's effect is run, with the first one's Limit, Policy and the rest. A context that
// ends before anything is started gives its own error.
//
// Do never starts an effect whose earlier start is in doubt, unless the far side replays its key; never returns two outcomes for
// one key; never records an error's text; and never lets a record expire.
func Do[T any](ctx context.Context, l *Ledger, key string, effect Effect[T]) (Result[T], error) {
	if err := checkKey(key); err != nil {
		return Result[T]{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result[T]{}, left(ctx)
	}
	j := effect.job(key)
	out, shared := l.share(ctx, j)
	r := Result[T]{Source: out.source, Starts: out.starts, Shared: shared}
	switch value, own := out.value.(T); {
	case out.err != nil && out.data == nil && !out.happened:
		return Result[T]{}, out.err
	case own && !shared:
		r.Value = value
	case out.data != nil:
		if err := json.Unmarshal(out.data, &r.Value); err != nil {
			return Result[T]{}, &OutcomeError{Key: key, Why: "it is not of the type that is asked for"}
		}
	}
	return r, out.err
}

// job is an effect without its type.
type job struct {
	key     string
	request string
	run     func(ctx context.Context) (any, error)
	lookup  func(ctx context.Context) (any, bool, error) // nil: cannot be asked
	effect  Effect[any]                                  // what does not depend on the type

	left outcome // how the key stands if the effect or the lookup does not return
}

func (e *Effect[T]) job(key string) *job {
	j := &job{key: key, effect: Effect[any]{
		Replays: e.Replays, KeyLife: e.KeyLife, NothingHappened: e.NothingHappened, Policy: e.Policy, Limit: e.Limit, Keep: e.Keep,
		NoWait: e.NoWait,
	}}
	if e.Request != nil {
		sum := sha256.Sum256(e.Request)
		j.request = hex.EncodeToString(sum[:])
	}
	if j.effect.NothingHappened == nil {
		j.effect.NothingHappened = NothingHappened
	}
	if j.effect.Limit <= 0 {
		j.effect.Limit = defaultLimit
	}
	run, lookup := e.Run, e.Lookup
	j.run = func(ctx context.Context) (any, error) {
		if run == nil {
			return nil, Nothing(errNoRun)
		}
		return run(ctx, key)
	}
	if lookup != nil {
		j.lookup = func(ctx context.Context) (any, bool, error) { return lookup(ctx, key) }
	}
	return j
}

var errNoRun = errors.New("once: the effect has no Run")

// outcome is how one execution ended.
type outcome struct {
	value    any
	data     []byte // the value as it is recorded
	happened bool   // there is a value, whatever err says
	source   Source
	starts   int
	err      error
}

// judged is an error of an effect with the verdict that it gets here.
type judged struct {
	error
	verdict holdfast.Verdict
}

func (j *judged) Unwrap() error             { return j.error }
func (j *judged) Verdict() holdfast.Verdict { return j.verdict }

// attempts runs the effect, again and again as far as that is safe. It reports whether something may have happened.
func (j *job) attempts(ctx context.Context, doubt bool) (value any, doubtful bool, err error) {
	policy := holdfast.Policy{}
	if j.effect.Policy != nil {
		policy = *j.effect.Policy
	}
	judge := policy.Judge
	if judge == nil {
		judge = holdfast.Judge
	}
	if policy.Deadline == 0 {
		policy.Deadline = -1 // the limit's, which is the context's
	}
	if usage := policy.Usage; usage != nil {
		policy.Usage = func(answer any) holdfast.Tokens { return usage(answer.(opaque).value) }
	}
	policy.Targets, policy.Judge = nil, nil // an error carries its verdict, which also holds where a timer ended the attempt
	if j.effect.Replays {
		ctx = WithKey(ctx, j.key)
	}
	value, _, err = holdfast.Do(ctx, &policy, func(ctx context.Context) (any, error) {
		value, err := j.run(ctx)
		if err == nil {
			return opaque{value}, nil
		}
		v := judge(err)
		if !j.effect.NothingHappened(err) {
			doubt = true
			v = inDoubt(v, j.effect.Replays)
		}
		return nil, &judged{err, v}
	})
	if held, ok := value.(opaque); ok {
		return held.value, false, nil
	}
	return nil, doubt, plain(err)
}

// opaque keeps a value from being taken for a stream that is still open.
type opaque struct{ value any }

// inDoubt is the verdict of a failure after which something may have happened.
func inDoubt(v holdfast.Verdict, replays bool) holdfast.Verdict {
	switch {
	case !replays && v.Kind != holdfast.Unsafe:
		v.Kind, v.Was = holdfast.Unsafe, v.Kind
	case replays && v.Kind == holdfast.Terminal && v.Status == 0, replays && v.Kind == holdfast.Unsafe:
		v.Kind = holdfast.Broken // repeating is safe with any error, also one that nobody knows
	}
	return v
}

// plain takes the verdicts off again.
func plain(err error) error {
	if own, ok := err.(*judged); ok {
		return own.error
	}
	if call, ok := err.(*holdfast.Error); ok {
		if own, ok := call.Err.(*judged); ok {
			call.Err = own.error
		}
	}
	return err
}
