package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// credentialTime is how long credentials may take to come.
const credentialTime = 10 * time.Second

var errNotCredentials = errors.New("the file holds no Google credentials") // and is not quoted

// held keeps what was fetched once; a failure is not kept, for it may pass.
type held[T any] struct {
	fetch func(context.Context) (T, error)

	gate  gate
	made  bool
	value T
}

// get returns what is held, or fetches it within the time for credentials. Who comes meanwhile waits, as long as his context allows.
func (h *held[T]) get(ctx context.Context) (T, error) {
	var none T
	if err := h.gate.enter(ctx); err != nil {
		return none, err
	}
	defer h.gate.leave()
	if h.made {
		return h.value, nil
	}
	own, cancel := aside(ctx)
	defer cancel()
	value, err := h.fetch(own)
	if err != nil {
		return none, err
	}
	h.value, h.made = value, true
	return value, nil
}

// aside is a context in which credentials are looked for. It ends with the request's, or when the time for credentials is over,
// and carries nothing else: who watches the connections of the request must not take those of a token for them.
func aside(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(endOf{ctx}, credentialTime)
}

// endOf is the end of a context alone.
type endOf struct{ context.Context }

// Value returns nil.
func (endOf) Value(any) any { return nil }

// gate lets one through at a time.
type gate struct {
	once sync.Once
	free chan struct{}
}

func (g *gate) enter(ctx context.Context) error {
	g.once.Do(func() { g.free = make(chan struct{}, 1) })
	select {
	case g.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.free }
