// Package holdfast keeps LLM calls working when the API does not: rate limits, overload, outages, timeouts, cut
// streams, refusals, spend caps.
//
//	policy := holdfast.Policy{
//		Deadline: 30 * time.Second,
//		Breaker:  holdfast.NewBreaker(holdfast.BreakerSettings{}),
//		Budget:   holdfast.NewBudget(holdfast.BudgetSettings{}),
//	}
//	msg, trace, err := holdfast.Do(ctx, &policy, func(ctx context.Context) (*anthropic.Message, error) {
//		return client.Messages.New(ctx, params) // a client that does not retry by itself
//	})
//
// A [Policy] serves all calls to one API, from any number of goroutines. [Do] asks, in this order: is there time left, is
// the [Breaker] closed, does the [Pace] permit, and after a failure: may it be repeated ([Judge]), are attempts left, does
// the wait fit before the deadline, does the [Budget] pay for it. The [Trace] tells what happened.
//
// Where the first API does not answer, the targets of [Policy] are asked in order: another key, another model, or Claude at another
// provider, for which package provider has transports; and then a saved answer, with [SavedAnswers].
//
// It never sleeps only to give up, never shortens a wait the server asked for, never repeats what a caller has already
// seen, never hides a terminal error, starts no goroutine, logs nothing, and keeps no prompt, answer or key.
package holdfast
