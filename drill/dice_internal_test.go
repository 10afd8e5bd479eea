package drill

import (
	"testing"
	"time"
)

func TestDiceFallAsCPythonsDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seed uint64
		want []float64
	}{
		{1, []float64{0.13436424411240122}},
		{18, []float64{0.18126486333322134, 0.6614305484952444, 0.33455970316750006, 0.19793960416252043, 0.4895153390481155, 0.49403467910717525}},
		{0, []float64{0.8444218515250481}},
		{1 << 40, []float64{0.1036394562812375}},
	} {
		roll := dice(c.seed)
		for i, want := range c.want {
			if got := roll(); got != want {
				t.Errorf("seed %d, draw %d is %v, want %v", c.seed, i+1, got, want)
			}
		}
	}
}

func TestWhatHappensTogetherHappensInTheOrderPlanned(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var order []int
	w.after(time.Second, func() { order = append(order, 3) })
	w.after(0, func() {
		order = append(order, 1)
		w.after(time.Second, func() { order = append(order, 4) })
		w.after(-time.Second, func() { order = append(order, 2) }) // the past is now
	})
	off := w.after(time.Hour, func() { order = append(order, 5) })
	w.callOff(off)
	w.callOff(off) // twice is once
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, n := range order {
		if n != i+1 {
			t.Fatalf("order is %v", order)
		}
	}
	if len(order) != 4 || w.now != time.Second {
		t.Errorf("%d things happened until %v; what was called off must not move time", len(order), w.now)
	}
}

func TestElapsedHasAtLeastOneDecimalAndAtMostTwo(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0.0", 665275 * time.Microsecond: "0.67", 20098970 * time.Microsecond: "20.1", 738825 * time.Microsecond: "0.74", 2 * time.Second: "2.0", 100 * time.Second: "100.0",
	} {
		if got := decimals(d, 2); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
