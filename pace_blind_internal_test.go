package holdfast

import (
	"testing"
	"time"
)

func TestBlindPaceChangesInSteps(t *testing.T) {
	const sec = time.Second
	type moment struct {
		after time.Duration
		sent  int64 // since the last one
		times int   // throttles
		want  int   // requests a minute afterwards
	}
	for _, row := range []struct {
		name    string
		limits  Limits
		moments []moment
	}{
		{"one throttle limits nothing", Limits{}, []moment{{0, 100, 1, 0}}},
		{"nor do some that are far apart", Limits{}, []moment{{0, 100, 1, 0}, {time.Minute, 3, 3, 0}, {time.Hour, 3, 3, 0}}},
		{"nor do many of one moment", Limits{}, []moment{{0, 100, 30, 0}, {sec, 10, 10, 0}, {5*sec - 1, 10, 10, 0}}},
		{"nor three in all", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 3, 3, 0}}},
		{"nor less than a third of what went", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 4, 0}}},
		{"what was accepted meanwhile does", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}}},
		{"many throttles are one step", Limits{}, []moment{{0, 100, 30, 0}, {6 * sec, 14, 30, 100}, {7 * sec, 9, 9, 100}, {11*sec - 1, 9, 9, 100}}},
		{"nothing accepted", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 4, 4, 10}, {12 * sec, 1, 1, 7}, {18 * sec, 1, 1, 6}, {time.Minute, 1, 1, 6}}},
		{"a later throttle takes a tenth", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}, {time.Minute, 100, 1, 90}}},
		{"soon after, what was accepted is left", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}, {12 * sec, 8, 1, 80}}},
		{"at least seven tenths", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}, {12 * sec, 2, 1, 70}}},
		{"at most nine", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}, {12 * sec, 20, 1, 90}}},
		{"one of many is chance", Limits{}, []moment{{0, 100, 1, 0}, {6 * sec, 14, 5, 100}, {3 * time.Minute, 201, 1, 100}}},
		{"a configured limit is too high", Limits{RequestsPerMinute: 60}, []moment{{0, 10, 1, 60}, {6 * sec, 12, 5, 54}, {12 * sec, 5, 1, 48}}},
		{"also one below the floor", Limits{RequestsPerMinute: 2}, []moment{{0, 1, 1, 2}, {6 * sec, 4, 4, 2}, {12 * sec, 4, 4, 2}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.limits.FollowHeaders = true
			p := NewPace(row.limits)
			for _, m := range row.moments {
				at := instant(m.after)
				p.blind.sent += m.sent
				for range m.times {
					p.throttle(at, at, at)
				}
				if got := p.Status(at.time()).Requests.PerMinute; got != m.want {
					t.Errorf("after %v: %d a minute, want %d", m.after, got, m.want)
				}
			}
		})
	}
}

// Throttles of attempts that were sent before the last step tell nothing new, however late they come.
func TestBlindPaceIgnoresOldNews(t *testing.T) {
	p := NewPace(Limits{FollowHeaders: true})
	at := func(d time.Duration) instant { return instant(d) }
	p.throttle(at(0), at(0), at(0))
	for range 4 {
		p.blind.sent += 3
		p.throttle(at(6*time.Second), at(5*time.Second), 0)
	}
	before := p.blind.rate
	for range 20 {
		p.throttle(at(20*time.Second), at(5*time.Second), 0)
	}
	if p.blind.rate != before || before == 0 {
		t.Errorf("%v a minute, want %v", p.blind.rate, before)
	}
}

// Only calls that wait for the guess raise it, and after ten quiet minutes nothing is left of it.
func TestBlindPaceRaisesForThoseWhoWait(t *testing.T) {
	p := NewPace(Limits{FollowHeaders: true})
	now := instant(0)
	for range 4 {
		for range 4 {
			p.blind.sent++
			p.throttle(now, now, now)
		}
		now = now.add(6 * time.Second)
	}
	guess := p.blind.rate
	for range 20 {
		if now = now.add(10 * time.Second); !p.allow(now, amounts{requests: 1}) {
			t.Fatal("a call that need not wait is refused")
		}
	}
	if p.blind.rate != guess || guess == 0 {
		t.Errorf("%v a minute after calls that did not wait, want %v", p.blind.rate, guess)
	}
	w, wait, ok := p.join(now, waiter{want: amounts{requests: 1}, deadline: never})
	if !ok || w == nil {
		t.Fatal("the second call does not wait")
	}
	if now = now.add(wait); p.blind.rate != guess {
		t.Error("raised before it waited")
	}
	if _, ok := p.poll(now, w); !ok || p.blind.rate <= guess || p.blind.rate > 1.01*guess {
		t.Errorf("%v a minute after one that waited, want a little more than %v", p.blind.rate, guess)
	}
	now = now.add(10 * time.Minute)
	for range 3 {
		if w, _, ok := p.join(now, waiter{want: amounts{requests: 1}, deadline: never}); w != nil || !ok {
			t.Error("the guess is not dropped")
		}
	}
}
