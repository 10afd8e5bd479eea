package standin

import "net/http"

var emptyFault = &fault{
	Fault: Fault{
		Kind: Empty,
		What: "a 200 without a body",
		Doc: `A 200 with a content-type of JSON and not one byte of body, as from a proxy that lost its upstream. A client that
takes the status for success hands an empty answer on. Nothing is billed.`,
	},
	instead: func(a *reply) { a.send(http.StatusOK, "application/json", nil) },
}
