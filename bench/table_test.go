package bench_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
)

// rounds is odd, so that the median is a figure that was measured.
const rounds = 7

// measured are one contender's figures, one for each round.
type measured struct {
	took   []float64 // nanoseconds per operation
	allocs int64
}

// TestTable prints what everybody's work costs. Times are facts of the machine and its load, so none is asserted: the
// contenders take turns in each round, and a ratio compares figures of the same round.
func TestTable(t *testing.T) {
	if os.Getenv("HOLDFAST_BENCH_TABLE") != "1" {
		t.Skip("takes a minute or more: HOLDFAST_BENCH_TABLE=1 go test -run TestTable -benchtime 100ms")
	}
	table := make([][]measured, len(works))
	for i, w := range works {
		table[i] = make([]measured, len(w.contenders))
	}
	for range rounds {
		for i, w := range works {
			for j, c := range w.contenders {
				r := testing.Benchmark(c.run)
				if r.N == 0 {
					t.Fatalf("%s, %s: did not do its work", w.name, c.name)
				}
				m := &table[i][j]
				m.took = append(m.took, float64(r.T.Nanoseconds())/float64(r.N))
				m.allocs = r.AllocsPerOp()
			}
		}
	}
	write(os.Stdout, table)
}

func write(w io.Writer, table [][]measured) {
	fmt.Fprintf(w, "Medians and minima of %d rounds of %s. The ratio is theirs to ours, the median of the rounds' ratios.\n\n",
		rounds, flag.Lookup("test.benchtime").Value)
	fmt.Fprintln(w, "| work | contender | ns/op | least | allocs/op | ratio |\n| --- | --- | --: | --: | --: | --: |")
	for i, row := range works {
		ours := table[i][0].took
		for j, c := range row.contenders {
			m := table[i][j]
			fmt.Fprintf(w, "| %s | %s | %.1f | %.1f | %d | %.2f |\n",
				row.name, c.name, median(m.took), slices.Min(m.took), m.allocs, median(quotients(m.took, ours)))
		}
	}
}

// quotients divides round by round.
func quotients(theirs, ours []float64) []float64 {
	each := make([]float64, len(theirs))
	for i := range theirs {
		each[i] = theirs[i] / ours[i]
	}
	return each
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		name    string
		figures []float64
		want    float64
	}{
		{"one round", []float64{3}, 3},
		{"an outlier counts no more than any other", []float64{2, 900, 1}, 2},
		{"of an even number, the upper", []float64{1, 2, 3, 4}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := median(row.figures); got != row.want {
				t.Errorf("median = %v, want %v", got, row.want)
			}
		})
	}
}

// Every contender must do its work at least once, or its figure would be that of a refusal.
func TestContendersWork(t *testing.T) {
	before := flag.Lookup("test.benchtime").Value.String()
	t.Cleanup(func() { _ = flag.Set("test.benchtime", before) })
	if err := flag.Set("test.benchtime", "100x"); err != nil {
		t.Fatal(err)
	}
	for _, w := range works {
		for _, c := range w.contenders {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				if r := testing.Benchmark(c.run); r.N != 100 {
					t.Errorf("did its work %d of 100 times", r.N)
				}
			})
		}
	}
}
