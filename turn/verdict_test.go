package turn_test

import (
	"context"
	"errors"
	"testing"

	"holdfast"
	"holdfast/turn"
)

// A stream that cannot be read is asked for again, as its hint says; what its cause says of itself stands.
func TestVerdictOfAStreamThatBroke(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cause error
		want  holdfast.Kind
	}{
		{errors.New("invalid character"), holdfast.Broken},
		{holdfast.ErrCut, holdfast.Broken},
		{holdfast.ErrRefused, holdfast.Refused},
		{context.Canceled, holdfast.Cancelled},
	} {
		if got := holdfast.Judge(&turn.StreamError{Err: tt.cause}); got.Kind != tt.want {
			t.Errorf("%v: %v by %s, want %v", tt.cause, got.Kind, got.Rule, tt.want)
		}
	}
}
