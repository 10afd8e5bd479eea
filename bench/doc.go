// Package bench measures what protection costs when nothing fails, for Holdfast and for the libraries people would
// otherwise compose, side by side in one run on one machine. It is a module of its own so that nobody who uses
// Holdfast downloads its competitors.
//
// Every contender does the same work in the cheapest form its documentation offers:
//
//	go test -bench .                                                        one benchmark for each
//	HOLDFAST_BENCH_TABLE=1 go test -run TestTable -benchtime 100ms          the table of medians and ratios
package bench
