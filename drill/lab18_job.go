package drill

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast"
)

// What a job may end as.
const (
	jobCompleted = "completed"
	jobFailed    = "failed"
	jobDeferred  = "deferred_circuit_open"
	jobDeadline  = "deadline_exceeded"
	jobReview    = "human_review" // refused by the fallback model too
	jobTruncated = "truncated"    // max_tokens cannot be raised further
)

const (
	tokensCap   = 1024
	tokensRaise = 4
	followUps   = 6
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
	stop    string // stop reason of an answer
}

// labJob is a job with the faults that it has still to meet.
type labJob struct {
	name     string
	steps    []step
	settings jobSettings
}

// run carries a job to its end: as many calls as its answer needs.
func (l *lab) run(ctx context.Context, j *labJob) outcome {
	start := l.now()
	out := outcome{Job: j.name}
	policy := l.policy
	if j.settings.Deadline != nil {
		policy.Deadline = orElse(j.settings.Deadline, 0)
	}
	whole := policy.Deadline
	request := LiveRequest{Job: j.name, MaxTokens: given(j.settings.MaxTokens, tokensCap)}
	for follow := 0; out.Outcome == ""; follow++ {
		if spent := l.now().Sub(start); whole > 0 && follow > 0 {
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
		out.conclude(&trace, l.last, &request, follow)
	}
	out.Elapsed = l.now().Sub(start)
	out.Seconds = seconds(out.Elapsed)
	return out
}

// conclude decides what a call's end means for its job. It leaves the outcome empty, and changes the request, when another
// call shall follow.
func (o *outcome) conclude(trace *holdfast.Trace, last spoken, request *LiveRequest, follow int) {
	switch trace.Reason {
	case nil:
	case holdfast.ErrOpen:
		o.Outcome = jobDeferred
		return
	case holdfast.ErrDeadline:
		o.Outcome = jobDeadline
		return
	default:
		o.Outcome = jobFailed
		o.remark("%s", strings.TrimPrefix(trace.Reason.Error(), "holdfast: "))
		return
	}
	attempts := trace.Attempts()
	v := attempts[len(attempts)-1].Verdict
	switch {
	case v.Kind == holdfast.Refused && request.Fallback:
		o.Outcome = jobReview
		o.remark("refused by the fallback model too")
	case v.Kind == holdfast.Refused:
		request.Fallback = true
		o.remark("refusal, category %s, fallback model", orUnknown(v.Code))
	case v.Kind != holdfast.OK:
		o.Outcome = jobFailed
		o.remark("%s, status %d", v.Type, v.Status)
	case last.stop == "max_tokens" && (request.MaxTokens >= tokensCap || follow >= followUps):
		o.Outcome = jobTruncated
		o.remark("max_tokens at %d", request.MaxTokens)
	case last.stop == "max_tokens":
		raised := min(request.MaxTokens*tokensRaise, tokensCap)
		o.remark("max_tokens at %d, budget raised to %d", request.MaxTokens, raised)
		request.MaxTokens = raised
	default:
		o.Outcome = jobCompleted
	}
}

func (o *outcome) remark(format string, args ...any) {
	o.Remarks = append(o.Remarks, fmt.Sprintf(format, args...))
}

func orUnknown(category string) string {
	if category == "" {
		return "unknown"
	}
	return category
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
	case "refusal":
		return refusal(st.Category), nil
	}
	a := status(*st.Status).id(fmt.Sprintf("req_%s_%d", strings.ToLower(j.name), l.requests))
	if st.RetryAfter != nil {
		a = a.after(strconv.FormatFloat(*st.RetryAfter, 'f', -1, 64))
	}
	return spoken{verdict: l.counted(a.verdict(l.now()))}, nil
}

// answer is what an attempt without a fault gets.
func (l *lab) answer(ctx context.Context, request LiveRequest) (spoken, error) {
	if l.live == nil {
		if request.MaxTokens < answerTokens {
			return spoken{stop: "max_tokens"}, nil
		}
		return spoken{stop: "end_turn"}, nil
	}
	reply, err := l.live(ctx, request)
	if err != nil {
		return spoken{}, err
	}
	l.answers++
	if reply.StopReason == "refusal" {
		return refusal(reply.Category), nil
	}
	return spoken{stop: reply.StopReason, verdict: holdfast.Verdict{RequestID: reply.RequestID}}, nil
}

func refusal(category string) spoken {
	return spoken{stop: "refusal", verdict: holdfast.Verdict{Kind: holdfast.Refused, Status: 200, Code: category, Rule: "answer-refused"}}
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
