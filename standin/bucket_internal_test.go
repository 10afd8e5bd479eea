package standin

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ledgerBucket is a bucket in exact fractions, in the plainest words: the level is what
// was there, plus the refill, at most the limit.
type ledgerBucket struct {
	limit, hold int64
	level       *big.Rat
	at          time.Duration
}

func fraction(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (b *ledgerBucket) advance(now time.Duration) {
	if now <= b.at {
		return
	}
	gain := new(big.Rat).Mul(fraction(b.limit), big.NewRat(int64(now-b.at), int64(time.Minute)))
	b.level.Add(b.level, gain)
	if top := fraction(b.limit); b.level.Cmp(top) > 0 {
		b.level = top
	}
	b.at = now
}

// fits reports whether n can be taken: it is there, and on a short window no more
// than the window holds is out afterwards, unless the bucket is full.
func (b *ledgerBucket) fits(n int64) bool {
	if n > b.limit {
		return false
	}
	out := new(big.Rat).Sub(fraction(b.limit), b.level)
	return out.Cmp(fraction(max(b.hold, n)-n)) <= 0
}

func TestBucketAgreesWithExactFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1_000_000).Draw(t, "limit")
		hold := rapid.Int64Range(1, limit).Draw(t, "hold")
		var b bucket
		b.retune(0, limit, hold)
		model := &ledgerBucket{limit: limit, hold: hold, level: fraction(limit)}
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "elapsed"))
			n := rapid.Int64Range(0, limit+limit/4).Draw(t, "n")
			b.advance(now)
			model.advance(now)
			wait := b.wait(n)
			if (wait == 0) != model.fits(n) {
				t.Fatalf("at %v, %d of %d on a window of %d: wait %v, but the model says fits = %v with %s left", now, n, limit, hold, wait, model.fits(n), model.level)
			}
			if wait > 0 && wait != neverFits {
				early, due := *model, *model
				early.level, due.level = new(big.Rat).Set(model.level), new(big.Rat).Set(model.level)
				if early.advance(now + wait - 1); early.fits(n) {
					t.Fatalf("at %v, %d would fit before the wait of %v is over", now, n, wait)
				}
				if due.advance(now + wait); !due.fits(n) {
					t.Fatalf("at %v, %d does not fit after the wait of %v", now, n, wait)
				}
			}
			if (wait == neverFits) != (n > limit) {
				t.Fatalf("%d of %d: wait %v", n, limit, wait)
			}
			if wait == 0 || rapid.IntRange(0, 9).Draw(t, "debt") == 0 {
				b.take(n)
				model.level.Sub(model.level, fraction(n))
			}
			if left := b.remaining(); left > 0 && (fraction(left).Cmp(model.level) > 0 || fraction(left+1).Cmp(model.level) <= 0) {
				t.Fatalf("remaining %d of %s", left, model.level)
			}
		}
	})
}

func TestBucketLosesNothingToManySmallSteps(t *testing.T) {
	var often, once bucket
	often.retune(0, 7, 7)
	once.retune(0, 7, 7)
	often.take(1_000)
	once.take(1_000)
	end := 2*time.Hour + 3*time.Second + 1
	for at := time.Duration(0); at < end; at += 9_999_991 * time.Nanosecond {
		often.advance(at)
	}
	often.advance(end)
	once.advance(end)
	if often.taken != once.taken || often.back != once.back || once.taken != 1_000-7*120 {
		t.Errorf("after 2h of 7 a minute %d+%d are out in many steps, %d+%d in one; want %d", often.taken, often.back, once.taken, once.back, 1_000-7*120)
	}
}

func TestBucketStaysSaneAtTheEnds(t *testing.T) {
	var b bucket
	b.retune(0, maxRate, maxRate)
	for range 3_000 {
		b.take(1 << 62)
	}
	if b.taken != maxTaken {
		t.Errorf("taken %d, want the bound of %d", b.taken, int64(maxTaken))
	}
	b.retune(0, 1, 1)
	if got, want := b.taken, int64(maxTaken/maxRate); got != want {
		t.Errorf("after the change to 1 a minute %d are out, want %d", got, want)
	}
	b.retune(0, maxRate, maxRate)
	b.advance(1 << 62)
	if b.taken != 0 || b.full() != 0 {
		t.Errorf("after 146 years %d are out", b.taken)
	}
	b.take(5)
	b.advance(0)
	if b.taken != 5 {
		t.Errorf("a time that lies behind changed the bucket to %d", b.taken)
	}
	b.take(-7)
	if b.taken != 0 || b.remaining() != maxRate {
		t.Errorf("after giving back too much %d are out", b.taken)
	}
	if got := b.supply(1 << 62); got != maxTaken {
		t.Errorf("%d on offer in 146 years, want the bound of %d", got, int64(maxTaken))
	}
	if got := scaled(maxTaken, maxRate, 1); got != maxTaken {
		t.Errorf("scaled to %d, want the bound of %d", got, int64(maxTaken))
	}
	slow := bucket{}
	slow.retune(0, 1, 1)
	slow.take(1 << 62)
	if slow.full() != neverFits {
		t.Errorf("a debt of %d at 1 a minute is over in %v", slow.taken, slow.full())
	}
}

func TestBucketKeepsItsShareWhenTheLimitChanges(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		name             string
		limit, taken, to int64
		want             int64         // taken
		full             time.Duration // afterwards
	}{
		{"a quarter out of more", 1_000, 250, 4_000, 1_000, 15 * second},
		{"a quarter out of less", 1_000, 250, 100, 25, 15 * second},
		{"full", 1_000, 0, 10, 0, 0},
		{"empty", 1_000, 1_000, 10, 10, 60 * second},
		{"debt", 1_000, 3_000, 500, 1_500, 180 * second},
		{"rounded up", 1_000, 1, 10, 1, 6 * second},
		{"limit gone", 1_000, 700, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bucket
			b.retune(0, tt.limit, tt.limit)
			b.take(tt.taken)
			b.retune(0, tt.to, tt.to)
			if b.taken != tt.want || b.full() != tt.full {
				t.Errorf("%d out, full in %v; want %d, %v", b.taken, b.full(), tt.want, tt.full)
			}
		})
	}
}

func TestBucketThatGetsALimitStartsFull(t *testing.T) {
	var b bucket
	b.take(500)
	if w := b.wait(1 << 40); w != 0 {
		t.Errorf("wait %v without a limit", w)
	}
	b.retune(time.Hour, 60, 60)
	if b.remaining() != 60 || b.supply(time.Hour+time.Second) != 61 {
		t.Errorf("%d of 60 there and %d on offer after a second; want 60, 61", b.remaining(), b.supply(time.Hour+time.Second))
	}
}

func TestBucketNeverGivesMoreThanWasOnOffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 10_000).Draw(t, "limit")
		var b bucket
		b.retune(0, limit, limit)
		now, given := time.Duration(0), int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "elapsed"))
			b.advance(now)
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				limit = rapid.Int64Range(1, 10_000).Draw(t, "limit")
				b.retune(now, limit, limit)
			}
			if n := rapid.Int64Range(1, limit).Draw(t, "n"); b.wait(n) == 0 {
				b.take(n)
				given += n
			}
			if given > b.supply(now)+1 { // the parts of units of several limits may make one
				t.Fatalf("%d given of %d on offer at %v", given, b.supply(now), now)
			}
		}
	})
}
