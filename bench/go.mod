module holdfast/bench

go 1.26.0

require (
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/sony/gobreaker/v2 v2.4.0
	golang.org/x/time v0.16.0
	holdfast v0.0.0
)

require github.com/bits-and-blooms/bitset v1.24.4 // indirect

replace holdfast => ../
