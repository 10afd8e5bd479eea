package holdfast

import "time"

// BreakerStatus is what there is to see of a [Breaker] at one moment.
type BreakerStatus struct {
	State State
	// Until, with Open, is when a probe may go, with HalfOpen when the lease of the probe that is out ends, and with
	// Closed when the ramp is over. Zero: nothing is waited for.
	Until time.Time
	// Cooldown of the present opening; 0 when closed.
	Cooldown time.Duration
	// Streak is the number of failures in a row.
	Streak int
}

// Status returns what there is to see at the given time, and changes nothing. Zero time: now.
func (b *Breaker) Status(now time.Time) BreakerStatus {
	at := when(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := BreakerStatus{State: b.state, Streak: b.streak}
	switch b.state {
	case Open:
		s.Until, s.Cooldown = b.until.time(), b.cooldown
	case HalfOpen:
		if s.Cooldown = b.cooldown; b.probes >= b.settings.Probes {
			s.Until = b.until.time()
		}
	default:
		if at < b.ramped {
			s.Until = b.ramped.time()
		}
	}
	return s
}

// PaceStatus is what there is to see of a [Pace] at one moment.
type PaceStatus struct {
	// Held is how long nobody may send because the upstream said so. 0: it did not.
	Held time.Duration
	// Spent is how long the credential has no money, as far as the upstream says. 0: it has.
	Spent time.Duration
	// Rejected is how long other credentials of the pool are preferred, because this one was rejected. 0: they are not.
	Rejected time.Duration
	// Queued is the number of calls that wait for permission.
	Queued int
	// Requests, Input, Output and Tokens are the levels of the limits. Tokens are input and output together, a limit
	// that is learnt only.
	Requests, Input, Output, Tokens Level
}

// Level is how much a limit has to give.
type Level struct {
	// PerMinute is the limit; 0: none.
	PerMinute int
	// Left can be taken at once. Negative: a debt, which is paid before anybody goes.
	Left int
}

// Status returns what there is to see at the given time, and takes nothing. Zero time: now.
func (p *Pace) Status(now time.Time) PaceStatus {
	at := when(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	return PaceStatus{
		Held: max(p.held.sub(at), 0), Spent: p.poor(at), Rejected: max(p.rested.sub(at), 0), Queued: p.queued,
		Requests: p.buckets[requests].level(at), Input: p.buckets[inputTokens].level(at), Output: p.buckets[outputTokens].level(at),
		Tokens: p.buckets[allTokens].level(at),
	}
}

func (b *bucket) level(now instant) Level {
	if b.interval == 0 {
		return Level{}
	}
	missing := max(b.full.sub(now), 0)
	return Level{PerMinute: int(int64(time.Minute) / b.interval), Left: int((b.capacity - int64(missing)) / b.interval)}
}

// BudgetStatus is what there is to see of a [Budget] at one moment.
type BudgetStatus struct{ Level, Capacity float64 }

// Status returns what is left at the given time, and of how much. Zero time: now.
func (b *Budget) Status(now time.Time) BudgetStatus {
	level := b.Level(now)
	return BudgetStatus{Level: level, Capacity: float64(b.configured().Capacity)}
}

// ReasonWord is a reason in the one word that headers and metrics have for it: open, pace, deadline, budget, server-wait,
// spent, rejected, no-retry, attempts or cancelled. Nil gives "", any other error "other".
func ReasonWord(reason error) string {
	switch reason {
	case nil:
		return ""
	case ErrOpen:
		return "open"
	case ErrPace:
		return "pace"
	case ErrDeadline:
		return "deadline"
	case ErrBudget:
		return "budget"
	case ErrServerWait:
		return "server-wait"
	case ErrSpent:
		return "spent"
	case ErrRejected:
		return "rejected"
	case ErrNoRetry:
		return "no-retry"
	case ErrAttempts:
		return "attempts"
	case ErrCancelled:
		return "cancelled"
	}
	return "other"
}
