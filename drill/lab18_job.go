package drill

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast"
	"holdfast/turn"
)

// What a job may end as, beside what its turn may: human_review, truncated and the other words of turn.Outcome.
const (
	jobCompleted = "completed"
	jobFailed    = "failed"
	jobDeferred  = "deferred_circuit_open"
	jobDeadline  = "deadline_exceeded"
)

const (
	tokensCap   = 1024
	tokensRaise = 4
	followUps   = 6
	// The models go by their part in the lab; which ones they are is for whoever asks a real endpoint.
	firstModel, fallbackModel = "first", "fallback"
	// answerTokens is how long simulated answers are: longer than 60 tokens, not longer than 240.
	answerTokens = 200
)

// outcome is one line of the lab's result.
type outcome struct {
	Job      string        `json:"job"`
	Outcome  string        `json:"outcome"`
	Attempts int           `json:"attempts"`
	Elapsed  time.Duration `json:"-"`
	Seconds  float64       `json:"elapsed_s"`
	Remarks  []string      `json:"remarks,omitempty"`
}

// line is the published shape: job, outcome, attempts, elapsed.
func (o *outcome) line() string {
	return fmt.Sprintf("%s %s attempts=%d elapsed %ss", o.Job, o.Outcome, o.Attempts, decimals(o.Elapsed, 2))
}

// spoken is what an attempt got.
type spoken struct {
	verdict holdfast.Verdict
	hang    bool
	answer  turn.Response // what decides in an answer
}

// labJob is a job with the faults that it has still to meet.
type labJob struct {
	name     string
	steps    []step
	settings jobSettings
}

// turns is how far the lab carries a turn. A real endpoint's pause is reported, since sending it back takes the text of the
// answer, which the lab never sees.
func (l *lab) turns() *turn.Policy {
	p := &turn.Policy{Factor: tokensRaise, Cap: tokensCap, FollowUps: followUps, FallbackModel: fallbackModel}
	if l.live != nil {
		p.Pauses = -1
	}
	return p
}

// run carries a job to its end: as many calls as its turn takes.
func (l *lab) run(ctx context.Context, j *labJob) outcome {
	start := l.now()
	out := outcome{Job: j.name}
	policy := l.policy
	if j.settings.Deadline != nil {
		policy.Deadline = orElse(j.settings.Deadline, 0)
	}
	whole := policy.Deadline
	request := LiveRequest{Job: j.name, MaxTokens: given(j.settings.MaxTokens, tokensCap)}
	course := turn.NewCourse(l.turns(), firstModel, int64(request.MaxTokens))
	for out.Outcome == "" {
		if spent := l.now().Sub(start); whole > 0 && course.Requests() > 1 {
			if spent >= whole {
				out.Outcome = jobDeadline
				break
			}
			policy.Deadline = whole - spent
		}
		l.job, l.sentBefore = j.name, out.Attempts
		trace := l.call(ctx, &policy, func(ctx context.Context) (spoken, error) { return l.ask(ctx, j, request) })
		out.Attempts += trace.Sent()
		if l.failure != nil {
			break // the run is over, and this call with it
		}
		if trace.Reason == holdfast.ErrAttempts && l.opened {
			// Its last attempt opened the circuit: like all that come after, it is asked again when that rests no more.
			trace.Reason = holdfast.ErrOpen
		}
		if out.answered(&trace) {
			out.follow(course.Settle(l.last.answer), &request)
		}
	}
	out.Elapsed = l.now().Sub(start)
	out.Seconds = seconds(out.Elapsed)
	return out
}

// answered reports whether a call got an answer, which may be a refusal. Otherwise the call's end is its job's.
func (o *outcome) answered(trace *holdfast.Trace) bool {
	switch trace.Reason {
	case nil:
	case holdfast.ErrOpen:
		o.Outcome = jobDeferred
		return false
	case holdfast.ErrDeadline:
		o.Outcome = jobDeadline
		return false
	default:
		o.Outcome = jobFailed
		o.remark("%s", strings.TrimPrefix(trace.Reason.Error(), "holdfast: "))
		return false
	}
	attempts := trace.Attempts()
	v := attempts[len(attempts)-1].Verdict
	if v.Kind != holdfast.OK && v.Kind != holdfast.Refused {
		o.Outcome = jobFailed
		o.remark("%s, status %d", v.Type, v.Status)
		return false
	}
	return true
}

// follow does what the turn wants next: it ends the job, or changes the request of the call that follows.
func (o *outcome) follow(next turn.Next, request *LiveRequest) {
	switch {
	case next.Action != turn.End:
		request.MaxTokens, request.Fallback = int(next.MaxTokens), next.Model == fallbackModel
	case next.Outcome.Done():
		o.Outcome = jobCompleted
		return
	default:
		o.Outcome = next.Outcome.String()
	}
	o.remark("%s", next.Why)
}

func (o *outcome) remark(format string, args ...any) {
	o.Remarks = append(o.Remarks, fmt.Sprintf(format, args...))
}

// ask makes one attempt: the job's next fault, or an answer.
func (l *lab) ask(ctx context.Context, j *labJob, request LiveRequest) (s spoken, err error) {
	defer func() { l.last = s }()
	if len(j.steps) == 0 {
		return l.answer(ctx, request)
	}
	st := j.steps[0]
	j.steps = j.steps[1:]
	switch st.Kind {
	case "timeout":
		return spoken{hang: true}, nil
	case "http":
		return l.fault(j, &st), nil
	}
	return answered(stopReasons[st.Kind], st.Category, ""), nil
}

// fault is a reply of the plan with a status that is none of success.
func (l *lab) fault(j *labJob, st *step) spoken {
	a := status(*st.Status).id(fmt.Sprintf("req_%s_%d", strings.ToLower(j.name), l.requests))
	if st.RetryAfter != nil {
		a = a.after(strconv.FormatFloat(*st.RetryAfter, 'f', -1, 64))
	}
	return spoken{verdict: l.counted(a.verdict(l.now()))}
}

// answer is what an attempt without a fault gets.
func (l *lab) answer(ctx context.Context, request LiveRequest) (spoken, error) {
	if l.live == nil {
		if request.MaxTokens < answerTokens {
			return answered("max_tokens", "", ""), nil
		}
		return answered("end_turn", "", ""), nil
	}
	reply, err := l.live(ctx, request)
	if err != nil {
		return spoken{}, err
	}
	l.answers++
	return answered(reply.StopReason, reply.Category, reply.RequestID), nil
}

// answered is an answer that ended for a reason of the Messages API.
func answered(stop, category, requestID string) spoken {
	s := spoken{answer: turn.Response{StopReason: stop, Category: category}, verdict: holdfast.Verdict{RequestID: requestID}}
	if stop == "refusal" {
		s.verdict.Kind, s.verdict.Status, s.verdict.Code, s.verdict.Rule = holdfast.Refused, 200, category, "answer-refused"
	}
	return s
}

// counted makes the plan's breaker hear of every attempt that may be retried, throttles and conflicts included: its rule
// is stricter than the library's, for which those say nothing about an upstream's health.
func (l *lab) counted(v holdfast.Verdict) holdfast.Verdict {
	if l.ownPolicy {
		return v
	}
	if v.Kind == holdfast.Throttled {
		v.Kind = holdfast.Overloaded
	}
	v.Neutral = false
	return v
}
