package transport

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast"
)

// What a caller says in his headers about how his call is to be carried.

// patienceOf is how long the caller waits for this call: what comes later comes too late. An SDK says how long it waits
// for the attempt that the request is to it. 0: he does not say, or not so that it can be understood.
func patienceOf(h http.Header) time.Duration {
	own, sdk := patience(h.Get("Holdfast-Deadline")), seconds(h.Get("X-Stainless-Timeout"))
	if own > 0 && sdk > 0 {
		return min(own, sdk)
	}
	return max(own, sdk)
}

// patience reads a duration as Go writes it, or a number of seconds.
func patience(s string) time.Duration {
	if s = strings.TrimSpace(s); s == "" {
		return 0
	}
	if d, err := time.ParseDuration(s); err == nil {
		return max(d, 0)
	}
	return seconds(s)
}

func seconds(s string) time.Duration {
	if s == "" { // as a rule, and errors cost something
		return 0
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) || n > math.MaxInt64/float64(time.Second)/2 {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// staysHome reports that the caller wants the first target's answer or none.
func staysHome(h http.Header) bool {
	return strings.EqualFold(strings.TrimSpace(h.Get("Holdfast-Fallback")), "off")
}

// home is the first target to be asked, with its pool.
func home(targets []holdfast.Target) []holdfast.Target {
	first := max(slices.IndexFunc(targets, func(t holdfast.Target) bool { return !t.OnRefusal }), 0)
	end := first + 1
	for pool := targets[first].Pool; pool != "" && end < len(targets) && targets[end].Pool == pool && !targets[end].OnRefusal; {
		end++
	}
	return targets[first:end:end]
}
