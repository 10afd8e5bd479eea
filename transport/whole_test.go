package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/transport"
)

const (
	begun   = preamble + delta + delta
	refused = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"},\"usage\":{\"output_tokens\":3}}\n\n"
)

// midStream are failures after content. Handed over live none can be repeated.
var midStream = []struct {
	name   string
	script http.HandlerFunc
	final  int // the status when it repeats for ever
	rule   string
}{
	{"closed cleanly", stream(begun), 502, "cut-after-content"},
	{"closed without the last chunk", then(stream(begun), abort), 502, "cut-after-content"},
	{"reset", then(stream(begun), reset), 502, "cut-after-content"},
	{"stalled", then(stream(begun), hang), 504, "idle-timeout"},
	{"pings for ever", then(stream(begun), pings), 504, "idle-timeout"},
	{"an error event", stream(begun, failing), 529, ""},
	{"an error event behind the stop reason", stream(begun+stop+reason, failing), 529, ""},
	{"cut in the event of the stop reason", then(stream(begun+stop+reason[:len(reason)-50]), abort), 502, "cut-after-content"},
	{"cut in a character", then(stream(begun[:strings.LastIndex(begun, "é")+1]), reset), 502, "cut-after-content"},
}

func TestWholeStreamsAreRepeatedWhereverTheyFail(t *testing.T) {
	for _, c := range midStream {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script, stream(complete))
			policy, verdicts := watched(5)
			resp := askStream(t, u.through(&transport.Transport{Policy: policy, Whole: true}), u.URL)
			expectReply(t, resp, 200, complete)
			u.expect(t, 2)
			if v := verdicts(); len(v) != 2 || v[0].Kind == holdfast.OK || v[0].Rule != c.rule && c.rule != "" || v[1].Kind != holdfast.OK {
				t.Errorf("the verdicts are %+v", v)
			}
		})
		bubble(t, c.name+" goes to the fallback", func(t *testing.T) {
			u := serve(t, c.script, stream(complete))
			policy := &holdfast.Policy{Attempts: 1, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}}
			resp := askStream(t, u.through(&transport.Transport{Policy: policy, Whole: true, Events: true}), u.URL)
			expectReply(t, resp, 200, complete)
			u.expect(t, 2)
			if target := resp.Header.Get("Holdfast-Target"); target != "b" {
				t.Errorf("holdfast-target is %q", target)
			}
		})
		bubble(t, c.name+" for ever", func(t *testing.T) {
			u := serve(t, c.script)
			resp := askStream(t, u.through(&transport.Transport{Policy: &holdfast.Policy{Attempts: 2, Dice: half}, Whole: true}), u.URL)
			if got := text(t, resp); resp.StatusCode != c.final || !strings.Contains(got, `"error"`) || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %q, want %d", resp.StatusCode, got, c.final)
			}
			u.expect(t, 2)
		})
		bubble(t, c.name+", not whole", func(t *testing.T) {
			u := serve(t, c.script, stream(complete))
			resp := askStream(t, u.through(transport.New(nil, nil)), u.URL)
			if got, _ := failedRead(resp); got == complete {
				t.Error("it was repeated after content")
			}
			u.expect(t, 1)
		})
	}
}

func TestWholeStreamThatIsAllThereIsHandedOver(t *testing.T) {
	torn := complete[:len(complete)-14]
	for name, script := range map[string]http.HandlerFunc{
		"at once":                        stream(complete),
		"with an open connection behind": then(stream(complete), hang),
		"with a reset behind":            then(stream(complete), reset),
		"B64 the last event torn":        then(stream(torn), reset),
		"B64 the last event never comes": then(stream(begun+stop+reason), hang),
	} {
		bubble(t, name, func(t *testing.T) {
			u := serve(t, script)
			policy, verdicts := watched(1)
			resp := askStream(t, u.through(&transport.Transport{Policy: policy, Whole: true, Events: true}), u.URL)
			expectReply(t, resp, 200, complete)
			u.expect(t, 1)
			if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.OK {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
	bubble(t, "when it is complete, and not before", func(t *testing.T) {
		u := serve(t, then(stream(preamble), rest(80*time.Second), piece(delta), flush, rest(80*time.Second), piece(delta), flush, rest(80*time.Second), piece(stop+reason+end)))
		began := time.Now()
		resp := askStream(t, u.through(&transport.Transport{Whole: true, Hold: time.Second, MaxHeld: -1}), u.URL)
		if took := time.Since(began); took != 4*time.Minute {
			t.Errorf("it took %v, want 4m", took)
		}
		expectReply(t, resp, 200, complete)
	})
	bubble(t, "packed", func(t *testing.T) {
		packed := gzipped(preamble, delta, delta, stop, reason, end)
		u := serve(t, encoded("gzip", packed[:3]...), encoded("gzip", packed...))
		resp := askPacked(t, u, &transport.Transport{Whole: true})
		expectReply(t, resp, 200, strings.Join(packed, ""))
		u.expect(t, 2)
	})
}

func TestWholeStreamsAreBounded(t *testing.T) {
	long := preamble + strings.Repeat(delta, 100)
	for _, c := range []struct {
		most int
		live bool
	}{{len(long) / 2, true}, {-1, true}, {len(long), false}, {0, false}} {
		bubble(t, fmt.Sprint(c.most), func(t *testing.T) {
			u := serve(t, then(stream(long), rest(time.Second), piece(failing)), stream(complete))
			began := time.Now()
			resp := askStream(t, u.through(&transport.Transport{Whole: true, MaxAnswer: c.most}), u.URL)
			if waited := time.Since(began) > 0; waited == c.live {
				t.Errorf("handed over after %v", time.Since(began))
			}
			want := complete
			if c.live {
				want = long + failing
			}
			expectReply(t, resp, 200, want)
		})
	}
}

func TestRefusalInAWholeStream(t *testing.T) {
	refusing := begun + stop + refused + end
	targets := []holdfast.Target{{Name: "a", Model: "x"}, {Name: "b", Model: "y"}}
	bubble(t, "goes to the other model", func(t *testing.T) {
		u := serve(t, stream(refusing), stream(complete))
		policy := &holdfast.Policy{RefusalFallback: true, Targets: targets}
		resp := askStream(t, u.through(&transport.Transport{Policy: policy, Whole: true}), u.URL)
		expectReply(t, resp, 200, complete)
		u.expect(t, 2)
	})
	bubble(t, "is an answer if that one refuses too", func(t *testing.T) {
		u := serve(t, stream(refusing))
		policy := &holdfast.Policy{RefusalFallback: true, Targets: targets}
		resp := askStream(t, u.through(&transport.Transport{Policy: policy, Whole: true}), u.URL)
		if got := text(t, resp); resp.StatusCode != 200 || got != refusing {
			t.Errorf("got %d %q", resp.StatusCode, got)
		}
		u.expect(t, 2)
	})
	bubble(t, "is an answer where no other is to be asked", func(t *testing.T) {
		u := serve(t, stream(refusing), stream(complete))
		resp := askStream(t, u.through(&transport.Transport{Policy: &holdfast.Policy{Targets: targets}, Whole: true}), u.URL)
		expectReply(t, resp, 200, refusing)
		u.expect(t, 1)
	})
	bubble(t, "behind content stays where it is, not whole", func(t *testing.T) {
		u := serve(t, stream(begun, stop+refused+end), stream(complete))
		policy := &holdfast.Policy{RefusalFallback: true, Targets: targets}
		resp := askStream(t, u.through(&transport.Transport{Policy: policy}), u.URL)
		expectReply(t, resp, 200, refusing)
		u.expect(t, 1)
	})
}

func TestWholeStreamWithoutContentIsRepeated(t *testing.T) {
	bubble(t, "then an answer", func(t *testing.T) {
		u := serve(t, stream(start, reason, end), stream(complete))
		expectReply(t, askStream(t, u.through(&transport.Transport{Whole: true}), u.URL), 200, complete)
		u.expect(t, 2)
	})
	bubble(t, "and never is one", func(t *testing.T) {
		u := serve(t, then(stream(start, ping), hang))
		resp := askStream(t, u.through(&transport.Transport{Whole: true, Policy: &holdfast.Policy{Attempts: 1}}), u.URL)
		var timeout *transport.TimeoutError
		if !errors.As(transport.ErrorOf(resp), &timeout) || timeout.Timer != transport.FirstContent || resp.StatusCode != 504 {
			t.Errorf("got %d, %v", resp.StatusCode, transport.ErrorOf(resp))
		}
	})
}
