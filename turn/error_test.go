package turn_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast"
	"holdfast/standin"
	"holdfast/turn"
)

// B26: an error inside a stream is told with the status of its type, and never with the 200 that it came under.
func TestB26_AnErrorInAStreamIsToldByItsType(t *testing.T) {
	for kind, want := range map[string]string{
		"overloaded_error": "529 overloaded_error", "rate_limit_error": "429 rate_limit_error", "api_error": "500 api_error",
		"authentication_error": "401 authentication_error", "invalid_request_error": "400 invalid_request_error",
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := follow(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Error, After: 1, Type: kind, Times: -1}}})
				_, err := turn.Run(t.Context(), &u.Messages, &turn.Policy{Stream: true}, question("hi", 60))
				if err == nil || !strings.Contains(err.Error(), ": "+want+": ") || strings.Contains(err.Error(), "200") {
					t.Errorf("error %q, want %q in it", err, want)
				}
				if status := holdfast.Judge(err).Status; !strings.HasPrefix(want, string(rune('0'+status/100))) {
					t.Errorf("judged as %d, told as %q", status, want)
				}
			})
		})
	}
}

// An answer that ended the turn is told with the id to ask the provider about, and a step with what was refused.
func TestWhatEndedATurnCanBeAskedAbout(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Refusal, Times: -1, Category: "bio"}}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
		synctest.Wait()
		id := u.server.Journal()[0].RequestID
		var own *turn.Error
		if !errors.As(err, &own) || own.RequestID != id || id == "" || !strings.Contains(err.Error(), "(request "+id+")") || own.Verdict().RequestID != id {
			t.Errorf("%v, want request %s", err, id)
		}
		if s := got.Steps[0]; s.Category != "bio" || own.StopReason != "refusal" {
			t.Errorf("%+v by %q", s, own.StopReason)
		}
	})
}
