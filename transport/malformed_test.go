package transport_test

import (
	"testing"

	"holdfast"
	"holdfast/transport"
)

// B80: nobody knows what was in an event that cannot be read, so a stream that has one is not whole. Live it is passed on as it
// came.
func TestB80_WholeAnswersHaveNoMalformedEvent(t *testing.T) {
	const broken = "data: {broken\n\n"
	damaged := stream(preamble, delta, broken, delta, stop, reason, end)
	good := preamble + delta + stop + reason + end
	bubble(t, "once", func(t *testing.T) {
		u := serve(t, damaged, stream(good))
		tr := transport.New(&holdfast.Policy{}, nil)
		tr.Whole = true
		if got := text(t, askStream(t, u.through(tr), u.URL)); got != good {
			t.Errorf("got %q", got)
		}
		u.expect(t, 2)
	})
	bubble(t, "for ever", func(t *testing.T) {
		u := serve(t, damaged)
		tr := transport.New(&holdfast.Policy{Attempts: 2}, nil)
		tr.Whole = true
		resp := askStream(t, u.through(tr), u.URL)
		said := refusalOf(t, resp)
		if e := transport.ErrorOf(resp); resp.StatusCode != 502 || said.Error.Type != "api_error" || e == nil || e.Verdict.Rule != "stream-malformed" {
			t.Errorf("got %d %+v, %v", resp.StatusCode, said, e)
		}
		u.expect(t, 2)
	})
}

// B64: behind the stop reason nothing is missing, so a last event that is torn is not asked for again.
func TestB64_TornEndOfAWholeAnswer(t *testing.T) {
	bubble(t, "every time", func(t *testing.T) {
		u := serve(t, stream(preamble, delta, stop, reason, end[:len(end)-5]))
		tr := transport.New(&holdfast.Policy{}, nil)
		tr.Whole, tr.Events = true, true
		if got := text(t, askStream(t, u.through(tr), u.URL)); got != preamble+delta+stop+reason+end {
			t.Errorf("got %q", got)
		}
		u.expect(t, 1)
	})
}
