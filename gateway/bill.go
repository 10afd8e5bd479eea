package gateway

import (
	"net/http"
	"strings"
)

// bill is what is known of the cost of an answer that nobody has counted to its end.
type bill struct {
	request  int  // bytes of the request, which is gone by then
	open     bool // the final counts have not come
	produced int  // tokens of output that went out, an estimate
}

// bytesPerToken is for the input, of which much is no text but the JSON around it.
const bytesPerToken = 4

// reckon puts into the record what a call is billed that did not come to its end: the provider has worked, whoever broke it off.
func (c *call) reckon() {
	r := &c.record
	if !c.bill.open || r.Outcome != Left && r.Outcome != Cut || !c.billed() {
		return
	}
	r.Partial = true
	r.Output = max(r.Output, c.bill.produced)
	if r.Input+r.CacheRead+r.CacheWrite == 0 {
		r.Input = (c.bill.request + bytesPerToken - 1) / bytesPerToken
	}
}

// billed reports whether a model works for the call.
func (c *call) billed() bool {
	return asksModel(c) && c.r.Method == http.MethodPost && !strings.HasSuffix(c.r.URL.Path, "/count_tokens")
}
