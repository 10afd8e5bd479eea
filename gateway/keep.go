package gateway

import (
	"context"
	"net/http"
	"time"

	"holdfast"
)

// answer is what went to the caller, for the saved answers.
type answer struct {
	body []byte
	over bool // it is too long to be kept
}

// mostKept is how long an answer may be to be kept for an outage.
const mostKept = 4 << 20

// capture keeps a copy of what goes to the caller, where good answers are kept.
func (c *call) capture(p []byte) {
	if c.route == nil || !c.route.saved || c.record.Status != http.StatusOK || !c.canBeSaved() {
		return
	}
	if c.answer == nil {
		c.answer = new(answer)
	}
	a := c.answer
	if a.over = a.over || len(a.body)+len(p) > mostKept; a.over {
		a.body = nil
		return
	}
	a.body = append(a.body, p...)
}

// keep gives a good live answer to the saved ones.
func (c *call) keep(resp *http.Response) {
	a := c.answer
	if a == nil || a.over || c.record.Source == holdfast.Saved {
		return
	}
	kept := &Saved{ContentType: resp.Header.Get("Content-Type"), Body: a.body, At: time.Now()} // its model is what the answer says
	err := c.s.settings.Saved.Keep(context.WithoutCancel(c.r.Context()), c.question(), kept)
	if err != nil && c.s.settings.Log != nil {
		c.s.settings.Log.Warn("an answer could not be saved", "trace", c.record.ID, "error", err.Error())
	}
}
