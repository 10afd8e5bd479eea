package standin

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// What a client may do without a warning.
const (
	// clockTolerance is how early an attempt may come after a wait, for clocks
	// that differ and timers that fire early.
	clockTolerance = 10 * time.Millisecond
	// meanAttempts is what the SDKs do by default when nothing but errors comes,
	// and maxAttempts what Claude Code does, the most patient client in wide use.
	meanAttempts, maxAttempts = 3.0, 11
	// fairEfficiency is the share of the billed tokens that is to arrive.
	fairEfficiency = 0.9
	// throttledShare is how many of its requests a client with a pace of its own
	// may lose to the limit.
	throttledShare = 0.05
)

func judgeAttempts(e evidence, r Report) Line {
	const name = "attempts"
	if r.Calls == 0 {
		return untested(name, "no call was made", "")
	}
	line := pass(name, "%.2f for each call, at most %d", r.AttemptsMean, r.AttemptsMax)
	if r.AttemptsMean <= meanAttempts && r.AttemptsMax <= maxAttempts {
		return line
	}
	line.Verdict = Warn
	line.Hint = "bound the attempts of a call and the share of retries in all traffic: under an outage every retry adds to the load"
	for _, w := range e.calls {
		if len(w.attempts) == r.AttemptsMax {
			for _, i := range w.attempts {
				line.Exchanges = append(line.Exchanges, e.journal[i].Number)
			}
			break
		}
	}
	return line
}

// judgeLayers finds a second retry loop around that of an SDK: the SDK counts
// its own attempts in a header, and starts at 0 when it is called anew.
func judgeLayers(e evidence, _ Report) Line {
	const name = "retry layers"
	counted, again := 0, map[int]bool{}
	for _, pair := range e.retries {
		if pair.next.SDKRetry > 0 {
			counted++
		}
		if pair.failed.SDKRetry > 0 && pair.next.SDKRetry == 0 {
			again[pair.next.Number] = true
		}
	}
	switch {
	case len(again) > 0:
		return warn(name, sorted(again), "leave retries to one layer: set the SDK's max retries to 0, or take the loop around it away",
			"an SDK that had used up its retries was called again for the same work %s", times(len(again)))
	case counted == 0:
		return untested(name, "no SDK retried by itself", "")
	}
	return pass(name, "the SDK retried %s and nobody retried around it", times(counted))
}

func judgeWaits(e evidence, r Report) Line {
	const name = "waits"
	if r.WaitsAsked == 0 {
		return untested(name, "no reply asked to wait before another attempt", "a step with retry_after would test it")
	}
	early, first := map[int]bool{}, wait{}
	for _, w := range e.waits {
		if w.early {
			if len(early) == 0 {
				first = w
			}
			early[w.next.Number] = true
		}
	}
	if len(early) == 0 {
		return pass(name, "all %d were honoured", r.WaitsAsked)
	}
	return warn(name, sorted(early), "read retry-after-ms and retry-after on every error and wait at least so long; calls with equal bodies are told apart by the header x-custom-id",
		"%d of %d were honoured; exchange %d came %v after %d had asked for %v",
		r.WaitsHonoured, r.WaitsAsked, first.next.Number, first.next.Arrived.Sub(first.reply.HeadersAt).Round(time.Millisecond), first.reply.Number, first.reply.Wait)
}

// terminal are the statuses that the same request gets again.
var terminal = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
}

func judgeTerminal(e evidence, _ Report) Line {
	isTerminal := func(x Exchange) bool {
		return slices.Contains(terminal, x.Status) && x.ShouldRetry != DoRetry && !x.atCap()
	}
	return e.judgeRepeats("terminal errors", isTerminal, "do not send again what was refused for what it is: 400, 401, 402, 403, 404, 413 and 422 stay")
}

func judgeSpendCaps(e evidence, _ Report) Line {
	return e.judgeRepeats("spend caps", Exchange.atCap, "a spent budget stays spent: tell it from a rate limit by error_code, stop, and use another account or tell a person")
}

func judgeAdvice(e evidence, _ Report) Line {
	against := func(x Exchange) bool { return x.ShouldRetry == DontRetry }
	return e.judgeRepeats("x-should-retry", against, "x-should-retry: false comes from a layer that has retried already; obey it above the status")
}

// judgeRepeats warns of attempts at what had ended in a way that no attempt with
// the same body and key can mend.
func (e evidence) judgeRepeats(name string, final func(Exchange) bool, hint string) Line {
	seen, repeated := 0, map[int]bool{}
	for _, w := range e.calls {
		for _, i := range w.attempts {
			if final(e.journal[i]) {
				seen++
			}
		}
	}
	for _, pair := range e.retries {
		if final(*pair.failed) && pair.failed.Digest == pair.next.Digest && pair.failed.Key == pair.next.Key {
			repeated[pair.next.Number] = true
		}
	}
	switch {
	case seen == 0:
		return untested(name, "none came up", "")
	case len(repeated) == 0:
		return pass(name, "none of %d was sent again", seen)
	}
	return warn(name, sorted(repeated), hint, "%d of %d were sent again unchanged", len(repeated), seen)
}

// capCodes are the codes of limits on money, of both dialects.
var capCodes = []string{
	"enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached", "linked_organization_billing_unavailable",
	"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
}

// atCap reports whether a limit on money refused the request.
func (e Exchange) atCap() bool { return e.Fault == SpendCap || slices.Contains(capCodes, e.Code) }

func judgePayment(e evidence, r Report) Line {
	const name = "payment"
	if r.TokensBilled == 0 {
		return untested(name, "nothing was billed", "")
	}
	var twice []int
	for _, w := range e.calls {
		if billed := w.billed(e.journal); len(billed) > 1 {
			twice = append(twice, billed[1:]...)
		}
	}
	if len(twice) == 0 {
		return pass(name, "every call was paid once")
	}
	slices.Sort(twice)
	return warn(name, twice, "keep what was answered before asking again, and do not resend after a lost reply what may have been done; calls with equal bodies are told apart by the header x-custom-id",
		"%s billed again for a call that was paid already: %d tokens", attempts(len(twice)), r.PaidTwice.Input+r.PaidTwice.Output)
}

func judgeCreation(e evidence, _ Report) Line {
	const name = "creation"
	created := 0
	for _, x := range e.journal {
		if x.Effect != "" {
			created++
		}
	}
	if created == 0 {
		return untested(name, "no batch or file was created", "")
	}
	var again []int
	for _, effect := range e.journal.repeatedEffects() {
		again = append(again, effect.Exchanges[1:]...)
	}
	if len(again) == 0 {
		return pass(name, "%d created, each once", created)
	}
	slices.Sort(again)
	return warn(name, again, "after an unknown outcome look at the list of what exists before creating it again", "%d of %d are there twice", len(again), created)
}

func judgeEfficiency(e evidence, r Report) Line {
	const name = "efficiency"
	if r.TokensBilled == 0 {
		return untested(name, "nothing was billed", "")
	}
	line := pass(name, "%.1f %% of the billed tokens arrived in a whole answer, %d of %d", 100*r.Efficiency, r.TokensDelivered, r.TokensBilled)
	avoidable := map[int]bool{} // what the stand-in cut off is not the client's fault
	for _, w := range e.calls {
		answered := false
		for _, i := range w.attempts {
			x := e.journal[i]
			if x.Billed() && (answered || x.impatient()) {
				avoidable[x.Number] = true
			}
			answered = answered || x.Delivered()
		}
	}
	if r.Efficiency < fairEfficiency && len(avoidable) > 0 {
		line.Verdict, line.Exchanges = Warn, sorted(avoidable)
		line.Hint = "these were left before their end, or asked for what had been answered"
	}
	return line
}

// silent are the faults that a client can only end by leaving.
var silent = []Kind{Timeout, Stall, Hang, SlowHeaders, Cut}

// impatient reports whether the client left a reply that was still coming.
func (e Exchange) impatient() bool {
	return e.ClosedBy == Client && !slices.Contains(silent, e.Fault)
}

func judgePatience(e evidence, _ Report) Line {
	const name = "patience"
	if len(e.journal) == 0 {
		return untested(name, "no request arrived", "")
	}
	left, tokens, stalled := map[int]bool{}, 0, 0
	for _, x := range e.journal {
		switch {
		case x.impatient():
			left[x.Number] = true
			tokens += x.Input + x.Output
		case x.ClosedBy == Client:
			stalled++
		}
	}
	if len(left) > 0 {
		return warn(name, sorted(left), "an answer that is left is paid for: time the silence between two events, not the whole stream, and give first tokens time",
			"%s left while the reply was coming; %d tokens were billed for them", requests(len(left)), tokens)
	}
	if stalled > 0 {
		return pass(name, "left %d silent replies and no other", stalled)
	}
	return pass(name, "no reply was left before its end")
}

func judgeLimits(e evidence, r Report) Line {
	const name = "rate limits"
	throttled := map[int]bool{}
	for _, x := range e.journal {
		if x.Fault == Throttled {
			throttled[x.Number] = true
		}
	}
	share := float64(len(throttled)) / float64(max(len(e.journal), 1))
	found := fmt.Sprintf("%.1f %% of the requests were refused by one", 100*share)
	used, limited := mostUsed(r.Limits)
	if limited {
		found += fmt.Sprintf(", and %.1f %% of what the busiest bucket had to give were used", 100*used)
	}
	switch {
	case share > throttledShare:
		return warn(name, sorted(throttled), "pace requests by the anthropic-ratelimit or x-ratelimit headers instead of finding the limit with refused ones", "%s", found)
	case len(throttled) == 0 && !limited:
		return untested(name, "no request met one", "limits in the plan would test it")
	}
	return pass(name, "%s", found)
}

// mostUsed is the share of the busiest bucket, if there is any with a limit.
func mostUsed(limits []LimitUse) (share float64, limited bool) {
	for _, use := range limits {
		for _, b := range []BucketUse{use.Requests, use.InputTokens, use.OutputTokens, use.Tokens} {
			if b.Limit > 0 {
				share, limited = max(share, b.Share), true
			}
		}
	}
	return share, limited
}

// warn reports what was found about some exchanges.
func warn(name string, numbers []int, hint, format string, args ...any) Line {
	return Line{Name: name, Verdict: Warn, Found: fmt.Sprintf(format, args...), Hint: hint, Exchanges: numbers}
}

func sorted(set map[int]bool) []int {
	numbers := make([]int, 0, len(set))
	for n := range set {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

func times(n int) string    { return counted(n, "time") }
func attempts(n int) string { return counted(n, "attempt") }
func requests(n int) string { return counted(n, "request") }

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
