package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What was fetched is kept, a failure is not, and nobody waits longer than credentials may take.
func TestHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetched, fault := 0, errors.New("not now")
		h := held[int]{fetch: func(context.Context) (int, error) { fetched++; return fetched, fault }}
		if _, err := h.get(t.Context()); !errors.Is(err, fault) {
			t.Error(err)
		}
		fault = nil
		for range 3 {
			if v, err := h.get(t.Context()); v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		}
		if fetched != 2 {
			t.Errorf("fetched %d times", fetched)
		}
		slow := held[int]{fetch: func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }}
		began := time.Now()
		if _, err := slow.get(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != credentialTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
