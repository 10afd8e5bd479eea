package batch

import "fmt"

// Split cuts the requests into as few runs, in their order, as fit both bounds of a batch, [MaxRequests] and [MaxBytes].
// The runs are parts of requests and not copies. Custom ids must be unique over all of them, so that results of several
// batches never mix. The error is an [*InvalidError] that names every request which fits in no batch or has a mistake.
//
// It never sends anything, never changes a request and never reorders them.
func Split(requests []Request) ([][]Request, error) {
	in := inspect("", requests)
	in.fit(MaxBytes)
	if err := in.err(); err != nil {
		return nil, err
	}
	return runs(requests, in.sizes, MaxRequests, MaxBytes), nil
}

// fit adds the requests that are too large for any batch.
func (in *inspection) fit(bytes int) {
	for i, n := range in.sizes {
		if bodyFrame+n > bytes {
			in.wrong(fmt.Sprintf("requests[%d]", i), "takes %d bytes, of at most %d", n, bytes-bodyFrame)
		}
	}
}

func runs(requests []Request, sizes []int, most, bytes int) (all [][]Request) {
	for from := 0; from < len(requests); {
		to := from + fitting(sizes[from:], most, bytes)
		all = append(all, requests[from:to:to])
		from = to
	}
	return all
}

// fitting is how many of the first requests fit into a batch: one at least.
func fitting(sizes []int, most, bytes int) int {
	total := bodyFrame
	for i, n := range sizes {
		if i > 0 {
			total++ // the comma
		}
		if total += n; i > 0 && (i == most || total > bytes) {
			return i
		}
	}
	return len(sizes)
}
