package standin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Check is one thing that a test expects of a client. It returns nil, or an
// error that says what was found instead and names the exchanges by number. The
// functions that return a Check are ready ones; any other function will do too.
type Check func(Journal) error

// Check returns everything that the checks find, nil when that is nothing.
func (j Journal) Check(checks ...Check) error {
	found := make([]error, 0, len(checks))
	for _, check := range checks {
		found = append(found, check(j))
	}
	return errors.Join(found...)
}

// T is the part of testing.TB that Expect needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Expect reports to the test what the checks find, and returns whether that is
// nothing:
//
//	standin.Expect(t, server.Journal(),
//		standin.Attempts("SHP-1", 3),
//		standin.WaitsHonoured(0),
//		standin.PaidOnce())
//
// With a library of assertions, use Journal.Check:
//
//	require.NoError(t, server.Journal().Check(standin.PaidOnce()))
func Expect(t T, j Journal, checks ...Check) bool {
	t.Helper()
	good := true
	for _, check := range checks {
		if err := check(j); err != nil {
			t.Errorf("%v", err)
			good = false
		}
	}
	return good
}

// Requests expects so many exchanges in all.
func Requests(n int) Check {
	return func(j Journal) error {
		if len(j) != n {
			return fmt.Errorf("standin: %d requests arrived, want %d%s", len(j), n, listed(j))
		}
		return nil
	}
}

// Attempts expects so many exchanges of one job, which is a custom id or a key
// in Plan.Jobs; "" are the exchanges that have neither.
func Attempts(job string, n int) Check {
	return func(j Journal) error {
		if of := j.of(job); len(of) != n {
			return fmt.Errorf("standin: %s took %d attempts, want %d%s", named(job), len(of), n, listed(of))
		}
		return nil
	}
}

// Gaps expects these times between the arrivals of one job, named as in
// Attempts. Each may differ by the tolerance in either direction; 0 and below
// expect it exactly, which is right in a synctest bubble.
func Gaps(job string, tolerance time.Duration, want ...time.Duration) Check {
	return func(j Journal) error {
		of := j.of(job)
		got := of.Gaps()
		if len(got) != len(want) {
			return fmt.Errorf("standin: %s has %d gaps %v, want %d%s", named(job), len(got), got, len(want), listed(of))
		}
		for i := range got {
			if (got[i] - want[i]).Abs() > max(tolerance, 0) {
				return fmt.Errorf("standin: %s waited %v between exchanges %d and %d, want %v (± %v)",
					named(job), got[i], of[i].Number, of[i+1].Number, want[i], max(tolerance, 0))
			}
		}
		return nil
	}
}

// SameBody expects that all attempts of a job have the same body, byte for
// byte. Jobs are named as in Attempts; none means every job that has a name.
func SameBody(jobs ...string) Check {
	return func(j Journal) error {
		first := map[string]Exchange{}
		var found []error
		for _, e := range j {
			job := e.job()
			if (len(jobs) > 0 && !slices.Contains(jobs, job)) || (len(jobs) == 0 && job == "") {
				continue
			}
			one, seen := first[job]
			if !seen {
				first[job] = e
			} else if one.Digest != e.Digest {
				found = append(found, fmt.Errorf("standin: %s has another body in exchange %d than in %d", named(job), e.Number, one.Number))
			}
		}
		return errors.Join(found...)
	}
}

// PaidOnce expects that no call was billed more than once and that nothing was
// created twice. What a call is, is said at Account.
func PaidOnce() Check {
	return func(j Journal) error {
		var found []error
		for _, w := range j.works() {
			billed := w.billed(j)
			if len(billed) > 1 {
				found = append(found, fmt.Errorf("standin: %s was paid %d times, in %s", w.key, len(billed), exchanges(billed)))
			}
		}
		for _, e := range j.repeatedEffects() {
			found = append(found, fmt.Errorf("standin: job %s created %s with one body, in %s", e.Job, strings.Join(e.IDs, " and "), exchanges(e.Exchanges)))
		}
		return errors.Join(found...)
	}
}

// WaitsHonoured expects that the next attempt at a call does not arrive before
// the wait is over that a reply to it asked for, from the headers of that reply.
// An attempt may be early by the tolerance, for clocks and waits in whole
// seconds; 0 and below allow nothing.
func WaitsHonoured(tolerance time.Duration) Check {
	return func(j Journal) error {
		var found []error
		for _, w := range j.waits(j.works(), tolerance) {
			if w.early {
				found = append(found, fmt.Errorf("standin: exchange %d of %s came %v after exchange %d, which had asked to wait %v",
					w.next.Number, w.key, w.next.Arrived.Sub(w.reply.HeadersAt), w.reply.Number, w.reply.Wait))
			}
		}
		return errors.Join(found...)
	}
}

// NothingOpen expects that every reply has ended.
func NothingOpen() Check {
	return func(j Journal) error {
		if open := j.Where(Exchange.Open); len(open) > 0 {
			return fmt.Errorf("standin: %d requests are still open%s", len(open), listed(open))
		}
		return nil
	}
}

// AtMost expects that never more than n requests were open at once.
func AtMost(n int) Check {
	return func(j Journal) error {
		if most, at := j.concurrency(); most > n {
			return fmt.Errorf("standin: %d requests were open at once when exchange %d arrived, want at most %d", most, at, n)
		}
		return nil
	}
}

// LimitUsed expects that at least this share of what a bucket had to give was
// used: of what it held at the beginning and what flowed in since. Of several
// buckets, keys and model groups the one that was used most counts:
//
//	standin.Expect(t, server.Journal(), standin.LimitUsed(server.LimitsUsed(), 0.97))
func LimitUsed(used []LimitUse, share float64) Check {
	return func(Journal) error {
		most := 0.0
		for _, u := range used {
			most = max(most, u.Requests.Share, u.InputTokens.Share, u.OutputTokens.Share, u.Tokens.Share)
		}
		if most < share {
			return fmt.Errorf("standin: %.1f %% of the limit were used, want at least %.1f %%", 100*most, 100*share)
		}
		return nil
	}
}

// job is the name of the job, "" without one.
func (e Exchange) job() string { return cmp.Or(e.CustomID, e.Job) }

func (j Journal) of(job string) Journal {
	return j.Where(func(e Exchange) bool { return e.job() == job })
}

// billed are the numbers of the attempts that have a bill.
func (w *work) billed(j Journal) (numbers []int) {
	for _, i := range w.attempts {
		if j[i].Billed() {
			numbers = append(numbers, j[i].Number)
		}
	}
	return numbers
}

// wait is a reply that asked for one, and what came next.
type wait struct {
	key   workKey
	reply *Exchange
	next  *Exchange // nil: nothing yet
	early bool      // next came before the wait was over
}

// waits lists the replies that asked for a wait before the next attempt.
func (j Journal) waits(works []*work, tolerance time.Duration) (all []wait) {
	for _, w := range works {
		for n, i := range w.attempts {
			if j[i].Wait <= 0 || j[i].Status < 400 {
				continue
			}
			asked := wait{key: w.key, reply: &j[i]}
			later := w.attempts[n+1:]
			// What arrived before the reply went out was on its way already.
			at, _ := slices.BinarySearchFunc(later, asked.reply.HeadersAt, func(k int, t time.Time) int { return j[k].Arrived.Compare(t) })
			if at < len(later) {
				asked.next = &j[later[at]]
				asked.early = asked.next.Arrived.Before(asked.reply.HeadersAt.Add(asked.reply.Wait - max(tolerance, 0)))
			}
			all = append(all, asked)
		}
	}
	return all
}

// concurrency returns the most exchanges that were open at once, and the number
// of the one that made them so many.
func (j Journal) concurrency() (most, number int) {
	ends := make([]time.Time, 0, len(j))
	for _, e := range j {
		if !e.Open() {
			ends = append(ends, e.Departed)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	ended := 0
	for i, e := range j {
		for ended < len(ends) && !ends[ended].After(e.Arrived) {
			ended++
		}
		if open := i + 1 - ended; open > most {
			most, number = open, e.Number
		}
	}
	return most, number
}

// listedAtMost is how many exchanges an error names.
const listedAtMost = 12

// exchanges names exchanges by their numbers.
func exchanges(numbers []int) string {
	noun := "exchanges "
	if len(numbers) == 1 {
		noun = "exchange "
	}
	return noun + numerals(numbers)
}

func numerals(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers[:min(len(numbers), listedAtMost)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	if more := len(numbers) - listedAtMost; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

func listed(j Journal) string {
	if len(j) == 0 {
		return ""
	}
	numbers := make([]int, len(j))
	for i, e := range j {
		numbers[i] = e.Number
	}
	return ": " + exchanges(numbers)
}

func named(job string) string {
	if job == "" {
		return "what has no job"
	}
	return "job " + job
}
