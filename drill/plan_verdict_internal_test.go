package drill

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"holdfast"
	"holdfast/standin"
)

// Every fault of the stand-in is judged as the library judges it on the wire: whole, and as a stream that was read to its end.
func TestEveryFaultHasItsVerdict(t *testing.T) {
	t.Parallel()
	want := map[standin.Kind][2]holdfast.Kind{
		standin.OK: {}, standin.SlowHeaders: {}, standin.Duplicate: {}, standin.Stall: {holdfast.Broken, holdfast.Broken},
		standin.HTTP: {holdfast.Terminal, holdfast.Terminal}, standin.SpendCap: {holdfast.Spent, holdfast.Spent}, standin.RampLimit: {holdfast.Throttled, holdfast.Throttled},
		standin.Empty: {holdfast.Broken, holdfast.Broken}, standin.HTML: {holdfast.Broken, holdfast.Broken}, standin.Timeout: {holdfast.Broken, holdfast.Broken},
		standin.Reset: {holdfast.Broken, holdfast.Broken}, standin.Lost: {holdfast.Broken, holdfast.Broken}, standin.Error: {holdfast.Overloaded, holdfast.Overloaded},
		standin.Cut: {holdfast.Broken, holdfast.Broken}, standin.Malformed: {holdfast.Broken, holdfast.OK}, standin.Nameless: {},
		standin.Refusal: {holdfast.Refused, holdfast.Refused}, standin.Truncation: {}, standin.Pause: {}, standin.ContextWindow: {}, standin.StopReason: {}, standin.HalfTool: {},
		standin.Refused: {holdfast.Broken, holdfast.Broken}, standin.Hang: {holdfast.Broken, holdfast.Broken},
	}
	for _, f := range standin.Faults() {
		kinds, known := want[f.Kind]
		if !known {
			t.Errorf("%s has no verdict here", f.Kind)
		}
		for i, stream := range []bool{false, true} {
			if got := meet(t, f.Kind, stream); got.Kind != kinds[i] {
				t.Errorf("%s, stream %v: %v by %s, want %v", f.Kind, stream, got.Kind, got.Rule, kinds[i])
			} else if refused := f.Kind == standin.Refused; got.NotSent != refused {
				t.Errorf("%s: not sent %v", f.Kind, got.NotSent)
			}
		}
	}
}

// meet is the verdict on one attempt that meets the fault, and is left after a minute.
func meet(t *testing.T, kind standin.Kind, stream bool) holdfast.Verdict {
	t.Helper()
	plan := standin.Plan{Reply: "one two three"}
	switch kind {
	case standin.Refused, standin.Hang:
		plan.Timeline = []standin.Incident{{Step: standin.Step{Kind: kind}}}
	case standin.HTTP:
		plan.Steps = []standin.Step{{Kind: kind, Status: http.StatusNotFound}}
	default:
		plan.Steps = []standin.Step{{Kind: kind}}
	}
	stage, err := standin.Rehearse(plan, planStart)
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	run := &planRun{traffic: Traffic{Plan: &plan, Stream: stream, Model: planModel}.withDefaults(), w: newWorld(), stage: stage}
	body, err := run.traffic.body(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := run.request(0, body)
	if got := bytes.Count(body, []byte{'.'}) + len(callName(0)); got != planInput*charsPerToken {
		t.Errorf("a prompt of %d characters", got)
	}
	v := stage.Arrive(planStart, req)
	for {
		if _, ok := v.Next(); !ok {
			break
		}
		v.Continue()
	}
	v.Leave(planStart.Add(time.Minute))
	return verdictOf(v, planStart)
}
